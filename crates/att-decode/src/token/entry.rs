//! From rows as a person reads them to the table that the reading loops index.
//!
//! Eight bits name a token. The table is indexed by twelve, so that the time increment of nearly every token is part
//! of the entry and costs the loop one addition. Where padding is a nibble, an entry that begins with one nibble of it
//! is that of the token behind, since every third token of a real stream has padding before it. What does not fit is
//! marked special.

use super::kind::TokenKind;

/// What the next bits of a stream say: everything needed to step over a token and keep the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(4))]
pub(crate) struct Entry {
    /// Kind of the token.
    pub(crate) kind: TokenKind,
    /// Bits to step: padding in front and the token.
    pub(crate) step: u8,
    /// Clock cycles to add before the token takes its own time; for a special token not all of them.
    pub(crate) delta: u8,
    /// Bits of padding in front, or [`Entry::SPECIAL`].
    pub(crate) pad: u8,
}

impl Entry {
    /// There is more to do than step and add `delta`.
    pub(crate) const SPECIAL: u8 = 0x80;

    /// Whether there is more to do than step and add `delta`. There is no padding in front then.
    #[inline(always)]
    pub(crate) const fn is_special(self) -> bool {
        self.pad & Self::SPECIAL != 0
    }
}

/// Bits that a table is indexed by.
pub(crate) const INDEX_BITS: u8 = 12;

/// A table of all prefixes.
pub(crate) type Table = [Entry; 1 << INDEX_BITS];

/// The entry of a window. By reference, since loading each field costs less than taking a loaded entry apart.
#[inline(always)]
pub(crate) fn lookup(table: &Table, window: u64) -> &Entry {
    &table[window as usize & ((1 << INDEX_BITS) - 1)]
}

/// Bits of padding at the start of a window that begins with padding, in whole units of which each is padding.
#[inline(always)]
pub(crate) const fn padding(window: u64, unit: u64) -> u64 {
    let zeros = window.trailing_zeros() as u64 & !(unit - 1);
    if zeros == 0 { unit } else { zeros }
}

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

    /// The entry of a prefix that begins with this row's token, or with padding and then the token.
    const fn entry(&self, prefix: usize, unit: u8, pad: u8) -> Entry {
        let (from, to) = self.delta;
        let fits = to + pad <= INDEX_BITS;
        let increment = if fits { prefix >> (from + pad) & ((1 << (to - from)) - 1) } else { 0 };
        let has_own_rule = matches!(
            self.kind,
            TokenKind::Nop
                | TokenKind::Timestamp
                | TokenKind::WaveStartExt
                | TokenKind::NewPc12
                | TokenKind::Header
                | TokenKind::Unknown
        );
        let is_special = has_own_rule || !fits || !self.bits.is_multiple_of(unit);
        assert!(
            pad > 0 || !is_special || !self.kind.is_quiet(),
            "loops step over quiet tokens by their entry"
        );
        Entry {
            kind: self.kind,
            step: self.bits + pad,
            delta: increment as u8 + self.add,
            pad: if is_special { Entry::SPECIAL } else { pad },
        }
    }
}

/// Index of the row that each eight-bit prefix begins with. A gap or an overlap of patterns does not compile.
const fn owners(rows: &[Row]) -> [usize; 256] {
    let mut owners = [usize::MAX; 256];
    let mut at = 0;
    while at < rows.len() {
        let (value, mask) = rows[at].prefix();
        // All prefixes that end with the pattern.
        let mut prefix = value as usize;
        while prefix < 256 {
            assert!(owners[prefix] == usize::MAX, "two rows claim one prefix");
            owners[prefix] = at;
            prefix += mask as usize + 1;
        }
        at += 1;
    }
    let mut prefix = 0;
    while prefix < 256 {
        assert!(owners[prefix] != usize::MAX, "a prefix belongs to no row");
        prefix += 1;
    }
    owners
}

/// Bits of padding that a table takes together with the token behind.
pub(crate) const NIBBLE: u8 = 4;

/// Expands rows to a table. Evaluated at compile time.
pub(crate) const fn build(rows: &[Row], unit: u8) -> Table {
    let unset = Entry { kind: TokenKind::Unknown, step: 0, delta: 0, pad: 0 };
    let mut table = [unset; 1 << INDEX_BITS];
    let owners = owners(rows);
    let mut prefix = 0;
    while prefix < 1 << INDEX_BITS {
        let row = &rows[owners[prefix & 0xff]];
        table[prefix] = row.entry(prefix, unit, 0);
        if unit == NIBBLE && matches!(row.kind, TokenKind::Nop) {
            let behind = rows[owners[prefix >> NIBBLE & 0xff]].entry(prefix, unit, NIBBLE);
            if !behind.is_special() {
                table[prefix] = behind;
            }
        }
        prefix += 1;
    }
    table
}
