//! Bits to bytes, the lowest first.

/// Bytes under construction.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits used of the last byte, 0 if all are.
    used: u8,
}

impl BitWriter {
    /// Appends the low `count` bits of a value.
    pub(super) fn push(&mut self, mut value: u128, mut count: u32) {
        while count > 0 {
            if self.used == 0 {
                self.bytes.push(0);
            }
            let room = 8 - u32::from(self.used);
            let taken = room.min(count);
            let bits = (value & ((1 << taken) - 1)) as u8;
            if let Some(last) = self.bytes.last_mut() {
                *last |= bits << self.used;
            }
            value >>= taken;
            count -= taken;
            self.used = (self.used + taken as u8) % 8;
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_each_other_bit_by_bit() {
        let mut out = BitWriter::default();
        out.push(0x5, 4);
        out.push(0xabc, 12);
        out.push(1, 1);
        assert_eq!(out.into_bytes(), [0xc5, 0xab, 0x01]);
    }
}
