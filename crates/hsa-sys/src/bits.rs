//! Bit-fields of C in a 32-bit word: on x86-64 Linux the first declared lies in the lowest bits.

/// `width` bits of `word` from bit `shift` on.
pub(crate) const fn get(word: u32, shift: u32, width: u32) -> u32 {
    (word >> shift) & mask(width)
}

/// `word` with those bits replaced by the low bits of `value`.
pub(crate) const fn set(word: u32, shift: u32, width: u32, value: u32) -> u32 {
    word & !(mask(width) << shift) | (value & mask(width)) << shift
}

const fn mask(width: u32) -> u32 {
    u32::MAX >> (u32::BITS - width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_changes_only_its_bits_and_get_reads_them_back() {
        assert_eq!(set(0xffff_ffff, 4, 8, 0), 0xffff_f00f);
        assert_eq!(set(0, 4, 8, 0xabc), 0xbc0);
        assert_eq!(get(0xabcd_1234, 16, 16), 0xabcd);
        assert_eq!(get(set(0, 0, 32, 0xdead_beef), 0, 32), 0xdead_beef);
    }
}
