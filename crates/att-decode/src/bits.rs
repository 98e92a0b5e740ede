//! The one place where bits are taken out of bytes: wide little-endian loads and bit fields.

/// A run of bits inside a 64-bit window, known at compile time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    shift: u8,
    mask: u64,
}

impl Field {
    /// The field of bits `from..to`.
    pub(crate) const fn new(from: u8, to: u8) -> Self {
        Field { shift: from, mask: if to - from == 64 { u64::MAX } else { (1 << (to - from)) - 1 } }
    }

    /// Value of the field in `window`.
    #[inline(always)]
    pub(crate) const fn get(self, window: u64) -> u64 {
        (window >> self.shift) & self.mask
    }

    /// Value of a field known to be at most eight bits wide.
    #[inline(always)]
    pub(crate) const fn byte(self, window: u64) -> u8 {
        self.get(window) as u8
    }

    /// Whether a one-bit field is set.
    #[inline(always)]
    pub(crate) const fn flag(self, window: u64) -> bool {
        self.get(window) != 0
    }
}

/// Bits `from..to` of `window`.
#[inline(always)]
pub(crate) const fn bits(window: u64, from: u8, to: u8) -> u64 {
    Field::new(from, to).get(window)
}

/// Nine bytes: every window that begins in the first one, or at the second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide {
    low: u64,
    ninth: u8,
}

impl Wide {
    /// The nine bytes from `byte` on, if the data reaches that far.
    #[inline(always)]
    pub(crate) fn load(data: &[u8], byte: usize) -> Option<Wide> {
        let bytes = data.get(byte..)?.first_chunk::<9>()?;
        let (low, _) = bytes.split_first_chunk::<8>()?;
        Some(Wide { low: u64::from_le_bytes(*low), ninth: bytes[8] })
    }

    /// The low bits of the window at bit `shift`, `shift` of them missing at the top.
    #[inline(always)]
    pub(crate) const fn low(self, shift: u32) -> u64 {
        self.low >> shift
    }

    /// The window at bit `shift`, which is at most 8.
    #[inline(always)]
    pub(crate) const fn window(self, shift: u32) -> u64 {
        // The ninth byte is shifted twice, since a shift by 64 is none.
        self.low >> shift | ((self.ninth as u64) << 1) << (63 - shift)
    }
}

/// Bytes in which windows of a [`Block`] may begin.
pub(crate) const BLOCK_BYTES: usize = 256;

/// A stretch of data of fixed size. Loads from it need no check of their own, since every place in its first
/// [`BLOCK_BYTES`] has nine bytes.
pub(crate) type Block = [u8; BLOCK_BYTES + 16];

/// Copies the data from `byte` on; what lies behind their end reads as zero. A copy on the stack is cheaper to load from
/// than the data themselves.
#[inline]
pub(crate) fn fill(block: &mut Block, data: &[u8], byte: usize) {
    let rest = data.get(byte..).unwrap_or_default();
    match rest.first_chunk() {
        Some(whole) => *block = *whole,
        None => {
            *block = [0; BLOCK_BYTES + 16];
            block[..rest.len()].copy_from_slice(rest);
        }
    }
}

impl Wide {
    /// Nine bytes of a block from the one on that bit `bit` is in. Bits count modulo the size of the block.
    #[inline(always)]
    pub(crate) fn in_block(block: &Block, bit: u64) -> Wide {
        let byte = (bit >> 3) as usize % BLOCK_BYTES;
        let mut low = [0; 8];
        low.copy_from_slice(&block[byte..byte + 8]);
        Wide { low: u64::from_le_bytes(low), ninth: block[byte + 8] }
    }
}

/// Eight bytes of a block. Bytes count modulo the size of the block.
#[inline(always)]
pub(crate) fn block8(block: &Block, byte: usize) -> u64 {
    let byte = byte % BLOCK_BYTES;
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&block[byte..byte + 8]);
    u64::from_le_bytes(bytes)
}

/// The 64-bit window whose bit 0 is bit `bit` of the data, if nine bytes are left there.
#[inline(always)]
pub(crate) fn window(data: &[u8], bit: u64) -> Option<u64> {
    Wide::load(data, (bit >> 3) as usize).map(|wide| wide.window((bit & 7) as u32))
}

/// Eight bytes from `byte` on, if the data reaches that far.
#[inline(always)]
pub(crate) fn load8(data: &[u8], byte: usize) -> Option<u64> {
    data.get(byte..)?.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Up to sixteen bytes from `byte` on; what lies behind the end reads as zero.
pub(crate) fn load16_padded(data: &[u8], byte: usize) -> u128 {
    let rest = data.get(byte..).unwrap_or_default();
    let mut padded = [0; 16];
    let len = rest.len().min(16);
    padded[..len].copy_from_slice(&rest[..len]);
    u128::from_le_bytes(padded)
}

/// The 64-bit window whose bit 0 is bit `bit` of the data; what lies behind the end reads as zero.
pub(crate) fn window_padded(data: &[u8], bit: u64) -> u64 {
    (load16_padded(data, (bit >> 3) as usize) >> (bit & 7)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_agree_at_every_bit() {
        let data: Vec<u8> = (1..=40).map(|i: u8| i.wrapping_mul(37)).collect();
        let bit = |at: u64| data.get((at / 8) as usize).map_or(0, |b| u64::from(b >> (at % 8) & 1));
        for at in 0..(data.len() as u64 * 8 + 70) {
            let expected = (0..64).fold(0, |word, i| word | bit(at + i) << i);
            assert_eq!(window_padded(&data, at), expected, "bit {at}");
            if at + 72 <= data.len() as u64 * 8 {
                assert_eq!(window(&data, at), Some(expected), "bit {at}");
            }
        }
    }

    #[test]
    fn blocks_give_the_windows_of_the_data() {
        let data: Vec<u8> = (0..700u32).map(|i| ((i * i) >> 3) as u8).collect();
        let mut block = [0; BLOCK_BYTES + 16];
        for first in [0, 256, 500, 690, 800] {
            fill(&mut block, &data, first);
            for bit in 0..BLOCK_BYTES as u64 * 8 {
                let shift = (bit & 7) as u32;
                let expected = window_padded(&data, first as u64 * 8 + bit);
                assert_eq!(Wide::in_block(&block, bit).window(shift), expected, "byte {first}, bit {bit}");
            }
        }
    }

    #[test]
    fn fields_cover_the_word() {
        assert_eq!(bits(u64::MAX, 0, 64), u64::MAX);
        assert_eq!(bits(0xabcd, 4, 12), 0xbc);
    }
}
