//! Bit packing, least significant bit first.

/// Collects bits into dwords.
#[derive(Clone, Debug, Default)]
pub struct BitWriter {
    dwords: Vec<u32>,
    partial: u64,
    /// Bits in `partial`, below 32.
    used: u32,
}

impl BitWriter {
    /// Appends the low `bits` bits of `value`; at most 128.
    pub fn push(&mut self, value: u128, bits: u32) {
        if bits > 64 {
            self.push_word(value as u64, 64);
            self.push_word((value >> 64) as u64, bits - 64);
        } else {
            self.push_word(value as u64, bits);
        }
    }

    fn push_word(&mut self, value: u64, bits: u32) {
        if bits > 32 {
            self.push_half(value as u32, 32);
            self.push_half((value >> 32) as u32, bits - 32);
        } else {
            self.push_half(value as u32, bits);
        }
    }

    fn push_half(&mut self, value: u32, bits: u32) {
        let part = u64::from(value) & ((1 << bits) - 1);
        self.partial |= part << self.used;
        self.used += bits;
        if self.used >= 32 {
            self.dwords.push(self.partial as u32);
            self.partial >>= 32;
            self.used -= 32;
        }
    }

    /// Bits written and not taken yet.
    pub fn bits(&self) -> u64 {
        self.dwords.len() as u64 * 32 + u64::from(self.used)
    }

    /// Fills up with zeros to a multiple of `bytes` bytes of what was not taken yet.
    pub fn pad(&mut self, bytes: u64) {
        let bits = self.bits().next_multiple_of(bytes * 8) - self.bits();
        (0..bits / 64).for_each(|_| self.push(0, 64));
        self.push(0, (bits % 64) as u32);
    }

    /// Takes the full dwords as far as they make whole groups of `group`.
    pub fn take(&mut self, group: usize) -> Vec<u32> {
        self.take_most(group, usize::MAX)
    }

    /// The same, at most `most` dwords.
    pub(crate) fn take_most(&mut self, group: usize, most: usize) -> Vec<u32> {
        let rest = self.dwords.split_off((self.dwords.len() / group * group).min(most));
        std::mem::replace(&mut self.dwords, rest)
    }
}

/// A field of a token: where it begins and its value. Values wider than the field are the caller's mistake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) at: u32,
    pub(crate) bits: u32,
    pub(crate) value: u128,
}

/// Shorthand for [`Field`].
pub(crate) const fn field(at: u32, bits: u32, value: u128) -> Field {
    Field { at, bits, value }
}

/// Puts fields together; bits beyond a field's width are cut, as a register field would.
pub(crate) fn assemble(fields: &[Field]) -> u128 {
    fields.iter().fold(0, |word, field| {
        let mask = if field.bits >= 128 { u128::MAX } else { (1 << field.bits) - 1 };
        word | (field.value & mask) << field.at
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_each_other_from_the_lowest_bit() {
        let mut writer = BitWriter::default();
        writer.push(0x5, 4);
        writer.push(0xAB, 8);
        writer.push(0x1_2345_6789, 36);
        writer.push(0xFFFF, 16);
        assert_eq!(writer.bits(), 64);
        assert_eq!(writer.take(1), [0x5678_9AB5, 0xFFFF_1234]);
    }

    #[test]
    fn padding_reaches_the_boundary_and_no_further() {
        let mut writer = BitWriter::default();
        writer.push(1, 1);
        writer.pad(32);
        assert_eq!(writer.bits(), 256);
        writer.pad(32);
        assert_eq!(writer.take(1), [1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
