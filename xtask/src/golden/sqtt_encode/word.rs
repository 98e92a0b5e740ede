//! Bits of a stream, which remember who read them.

use std::cell::Cell;

/// Up to 120 bits from some place of a stream on; missing ones are zero.
pub(super) struct Word {
    bits: u128,
    read: Cell<u128>,
}

impl Word {
    /// The bits from bit `at` of `bytes` on.
    pub(super) fn at(bytes: &[u8], at: u64) -> Self {
        let mut window = [0; 16];
        let rest = bytes.get((at / 8) as usize..).unwrap_or(&[]);
        let count = rest.len().min(16);
        window[..count].copy_from_slice(&rest[..count]);
        Self { bits: u128::from_le_bytes(window) >> (at % 8), read: Cell::new(0) }
    }

    /// The same with other bits below bit 64.
    pub(super) fn with_low(&self, low: u64) -> Self {
        Self { bits: self.bits & !mask(64) | u128::from(low), read: Cell::new(0) }
    }

    /// Bits `from..to`.
    pub(super) fn f(&self, from: u32, to: u32) -> u64 {
        self.read.set(self.read.get() | mask(to - from) << from);
        (self.bits >> from & mask(to - from)) as u64
    }

    /// The same of at most eight bits.
    pub(super) fn small(&self, from: u32, to: u32) -> u8 {
        self.f(from, to) as u8
    }

    /// One bit.
    pub(super) fn bit(&self, at: u32) -> bool {
        self.f(at, at + 1) == 1
    }

    /// The lowest bits, without reading them.
    pub(super) fn low(&self, bits: u32) -> u128 {
        self.bits & mask(bits)
    }

    /// Of the lowest bits, those that nobody read.
    pub(super) fn unread(&self, bits: u32) -> u128 {
        self.bits & mask(bits) & !self.read.get()
    }
}

const fn mask(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_from_any_place_and_remember_their_reader() {
        let word = Word::at(&[0xF0, 0x5A, 0x03], 4);
        assert_eq!((word.f(0, 4), word.small(4, 12)), (0xF, 0x5A));
        assert_eq!(word.unread(16), 0x3000);
        assert!(word.bit(12) && word.unread(16) == 0x2000);
        assert_eq!(Word::at(&[1], 64).low(64), 0);
    }
}
