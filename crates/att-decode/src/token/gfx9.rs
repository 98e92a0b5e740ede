//! Steps through a gfx9 stream token by token, in stream order.

use super::entry::{Entry, lookup};
use super::iter::Token;
use super::kind::TokenKind;
use super::tables::{GFX9, GFX9_ROWS};
use crate::bits::{load8, load16_padded};

/// gfx9 counts time in units of four clocks.
pub(crate) const GFX9_CLOCKS_PER_TICK: i64 = 4;

/// Times are kept in 49 bits.
pub(crate) const GFX9_TIME_MASK: i64 = (1 << 49) - 1;

/// Entry of the token that begins with these bits.
#[inline(always)]
pub(crate) fn entry(raw: u64) -> Entry {
    *lookup(&GFX9, raw)
}

/// Bits that name a token.
pub(crate) const GFX9_KIND_BITS: u64 = 0xf;

/// What the low four bits of a token of a kind are: loops match on them, with constants made of the table's rows.
pub(crate) const fn gfx9_name(kind: TokenKind) -> u64 {
    GFX9_ROWS[row_of(kind)].prefix().0 as u64
}

/// Bytes of a token of a kind.
pub(crate) const fn gfx9_bytes(kind: TokenKind) -> usize {
    GFX9_ROWS[row_of(kind)].bits as usize / 8
}

const fn row_of(kind: TokenKind) -> usize {
    let mut row = 0;
    while GFX9_ROWS[row].kind as u8 != kind as u8 {
        row += 1;
    }
    row
}

/// Position and clock in a gfx9 stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gfx9Cursor {
    /// Byte offset of the next token.
    pub(crate) byte: usize,
    /// Clock after the last token, resets not applied.
    pub(crate) time: i64,
}

impl Gfx9Cursor {
    /// At the software header.
    pub(crate) fn new() -> Self {
        Gfx9Cursor { byte: 0, time: 0 }
    }

    /// The next token; the first is the software header.
    #[inline]
    pub(crate) fn next(&mut self, data: &[u8]) -> Option<Token> {
        let raw = match load8(data, self.byte) {
            Some(raw) => raw,
            None => cut_off(data, self.byte)?,
        };
        let bit_offset = self.byte as u64 * 8;
        if self.byte == 0 {
            self.byte = 8;
            let kind = TokenKind::SwHeader;
            return Some(Token { kind, bits: 64, high: 0, bit_offset, time: 0, raw });
        }
        let entry = entry(raw);
        let length = entry.step;
        self.byte += usize::from(length) / 8;
        self.time += GFX9_CLOCKS_PER_TICK * i64::from(entry.delta);
        let time = self.time & GFX9_TIME_MASK;
        Some(Token { kind: entry.kind, bits: length, high: 0, bit_offset, time, raw })
    }
}

/// The token at `byte` if the fewer than eight bytes left hold all of it.
#[cold]
pub(crate) fn cut_off(data: &[u8], byte: usize) -> Option<u64> {
    let raw = load16_padded(data, byte) as u64;
    let needed = usize::from(entry(raw).step) / 8;
    (data.len().saturating_sub(byte) >= needed).then_some(raw)
}
