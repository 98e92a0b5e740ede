//! From rows as a person reads them to the 256-entry table that the cursor reads.

use super::kind::TokenKind;

/// What the next eight bits of a stream say: everything needed to step over a token and keep the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(8))]
pub(crate) struct Entry {
    /// Kind of the token.
    pub(crate) kind: TokenKind,
    /// Bits to advance: `bits` rounded up to the unit of the generation.
    pub(crate) step: u8,
    /// First bit of the time increment.
    pub(crate) shift: u8,
    /// Constant part of the time increment.
    pub(crate) add: u8,
    /// Mask of the time increment after the shift; 0 where there is none.
    pub(crate) mask: u16,
    /// Length of the token.
    pub(crate) bits: u8,
    /// Whether the cursor has more to do than step and add.
    pub(crate) special: bool,
}

impl Entry {
    const UNSET: Entry =
        Entry { kind: TokenKind::Unknown, step: 0, shift: 0, add: 0, mask: 0, bits: 0, special: false };

    /// Clock cycles this token adds before it takes its own time.
    #[inline(always)]
    pub(crate) const fn delta(self, window: u64) -> i64 {
        ((window >> self.shift) & self.mask as u64) as i64 + self.add as i64
    }
}

/// A table of all 256 prefixes.
pub(crate) type Table = [Entry; 256];

/// One row of a generation's description.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) kind: TokenKind,
    /// Binary number; its last digit is bit 0 of the token.
    pub(crate) pattern: &'static str,
    /// Length in bits.
    pub(crate) bits: u8,
    /// Bit range of the time increment, empty where there is none.
    pub(crate) delta: (u8, u8),
    /// Constant added on top.
    pub(crate) add: u8,
}

/// A row without constant time part.
pub(crate) const fn row(kind: TokenKind, pattern: &'static str, bits: u8, delta: (u8, u8)) -> Row {
    Row { kind, pattern, bits, delta, add: 0 }
}

/// No time increment.
pub(crate) const NO_DELTA: (u8, u8) = (0, 0);

impl Row {
    /// Value and mask of the pattern.
    pub(crate) const fn prefix(&self) -> (u8, u8) {
        let digits = self.pattern.as_bytes();
        let (mut value, mut at) = (0, 0);
        while at < digits.len() {
            value = value << 1 | (digits[at] - b'0');
            at += 1;
        }
        (value, (0xffu16 >> (8 - digits.len())) as u8)
    }

    const fn entry(&self, unit: u8) -> Entry {
        let width = self.delta.1 - self.delta.0;
        Entry {
            kind: self.kind,
            step: self.bits.div_ceil(unit) * unit,
            shift: self.delta.0,
            add: self.add,
            mask: (1u16 << width) - 1,
            bits: self.bits,
            special: matches!(
                self.kind,
                TokenKind::Nop | TokenKind::Timestamp | TokenKind::WaveStartExt | TokenKind::NewPc12
            ),
        }
    }
}

/// Expands rows to a table. Evaluated at compile time; a gap or an overlap of patterns does not compile.
pub(crate) const fn build(rows: &[Row], unit: u8) -> Table {
    let mut table = [Entry::UNSET; 256];
    let mut at = 0;
    while at < rows.len() {
        let (value, mask) = rows[at].prefix();
        let mut prefix = 0;
        while prefix < 256 {
            if prefix as u8 & mask == value {
                assert!(table[prefix].step == 0, "two rows claim one prefix");
                table[prefix] = rows[at].entry(unit);
            }
            prefix += 1;
        }
        at += 1;
    }
    let mut prefix = 0;
    while prefix < 256 {
        assert!(table[prefix].step != 0, "a prefix belongs to no row");
        prefix += 1;
    }
    table
}
