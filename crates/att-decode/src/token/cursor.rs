//! Steps through an RDNA stream token by token, in stream order.
//!
//! Token dumps step over the leftovers of gfx1250 (see the tables) by their nominal length, the public decoder by
//! whole bytes; [`RdnaCursor::next`] makes dumps, the decoder's own loop does as the public one. Hardware sends none.

use super::entry::{Table, lookup, padding};
use super::iter::Token;
use super::kind::TokenKind;
use super::tables::table;
use super::timestamp::Timestamp;
use crate::bits::{Wide, bits, window, window_padded};
use crate::generation::Generation;

/// Bits of the window that the hardware format is defined over.
pub(crate) const WINDOW_BITS: u64 = 64;

/// Position and clock in an RDNA stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RdnaCursor {
    /// Bit offset of the next token.
    pub(crate) bit: u64,
    /// Bit offset behind the window of the last token; 0 before the first.
    pub(crate) window_end: u64,
    /// Shader clock after the last token.
    pub(crate) time: i64,
    /// Inside the byte-wise continuation of a WAVE_START_EXT.
    pub(crate) continues: bool,
    /// The chunk is finished: a token was cut off, or only padding is left.
    pub(crate) done: bool,
    generation: Generation,
    table: &'static Table,
    /// Bits of a unit.
    unit: u64,
}

impl RdnaCursor {
    pub(crate) fn new(generation: Generation) -> Self {
        RdnaCursor {
            bit: 0,
            window_end: 0,
            time: 0,
            continues: false,
            done: false,
            generation,
            table: table(generation),
            unit: Self::unit(generation),
        }
    }

    /// Bits that positions and padding count in.
    pub(crate) const fn unit(generation: Generation) -> u64 {
        if matches!(generation, Generation::Gfx1250) { 8 } else { 4 }
    }

    /// Whether a WAVE_START_EXT is continued byte by byte and a token cut off at the end is dropped.
    pub(crate) const fn is_strict(generation: Generation) -> bool {
        matches!(generation, Generation::Gfx12 | Generation::Gfx1250)
    }

    /// First bit offset of a token that the fast loop leaves to the careful one.
    pub(crate) const fn fast_end(bytes: usize) -> u64 {
        // Twice the window, and the unit of the widest generation.
        (bytes as u64 * 8).saturating_sub(2 * WINDOW_BITS + 8)
    }

    /// Whether the next token is read by the rules of the main part of a chunk that ends at bit `end`, not by those
    /// of its tail. The window looked at is that of the token before.
    pub(crate) const fn is_in_main(&self, end: u64) -> bool {
        match self.generation {
            Generation::Gfx1250 => self.window_end / 8 + 9 < end / 8,
            _ => self.window_end + WINDOW_BITS < end,
        }
    }

    /// The next token other than padding.
    #[inline]
    pub(crate) fn next(&mut self, data: &[u8]) -> Option<Token> {
        while let Some(raw) = window(data, self.bit) {
            if let Some(token) = self.step(data, raw) {
                return Some(token);
            }
        }
        self.next_near_end(data)
    }

    /// Hands every token to `f`. Position and clock stay in registers on the way.
    #[inline(always)]
    pub(crate) fn fold<B>(mut self, data: &[u8], mut value: B, mut f: impl FnMut(B, Token) -> B) -> B {
        let table = self.table;
        let mut cursor = self;
        while let Some(wide) = Wide::load(data, (cursor.bit >> 3) as usize) {
            let shift = (cursor.bit & 7) as u32;
            let entry = *lookup(table, wide.low(shift));
            if entry.is_special() || cursor.continues {
                if let Some(token) = cursor.step(data, wide.window(shift)) {
                    value = f(value, token);
                }
                continue;
            }
            let raw = wide.window(shift + u32::from(entry.pad));
            let bit_offset = cursor.bit + u64::from(entry.pad);
            cursor.bit += u64::from(entry.step);
            cursor.time = cursor.time.wrapping_add(i64::from(entry.delta));
            let (kind, bits) = (entry.kind, entry.step - entry.pad);
            value = f(value, Token { kind, bits, high: 0, bit_offset, time: cursor.time, raw });
        }
        self = cursor;
        while let Some(token) = self.next_near_end(data) {
            value = f(value, token);
        }
        value
    }

    /// One step of any kind: no token for padding.
    #[inline(always)]
    fn step(&mut self, data: &[u8], raw: u64) -> Option<Token> {
        let bit_offset = self.bit;
        if self.continues && raw & 1 == 1 {
            self.bit += 8;
            let kind = TokenKind::WaveStartExtByte;
            return Some(Token { kind, bits: 8, high: 0, bit_offset, time: self.time, raw });
        }
        if is_padding(raw) {
            self.bit += padding(raw, self.unit);
            return None;
        }
        let entry = *lookup(self.table, raw);
        self.bit += u64::from(entry.step);
        self.continues = entry.kind == TokenKind::WaveStartExt && Self::is_strict(self.generation);
        let step = match entry.kind {
            TokenKind::Timestamp => Timestamp::decode(self.generation, raw).step,
            kind => i64::from(entry.delta) + late_delta(self.generation, kind, raw),
        };
        self.time = self.time.wrapping_add(step);
        let high = if entry.step > 64 { window_padded(data, bit_offset + 64) as u8 } else { 0 };
        Some(Token { kind: entry.kind, bits: entry.step, high, bit_offset, time: self.time, raw })
    }

    /// The last bytes: what lies behind the end reads as zero.
    #[cold]
    fn next_near_end(&mut self, data: &[u8]) -> Option<Token> {
        let end = data.len() as u64 * 8;
        while !self.done {
            let raw = window_padded(data, self.bit);
            self.done = self.bit + WINDOW_BITS >= end && raw == 0;
            if !self.done
                && let Some(token) = self.step(data, raw)
            {
                return Some(token);
            }
        }
        None
    }
}

/// Whether a window begins with padding, on every generation of RDNA.
#[inline(always)]
pub(crate) const fn is_padding(raw: u64) -> bool {
    raw & 0xf == 0
}

/// The part of a time increment that lies behind the bits which tables are indexed by.
#[inline(always)]
pub(crate) const fn late_delta(generation: Generation, kind: TokenKind, raw: u64) -> i64 {
    match (generation, kind) {
        (Generation::Gfx1250, TokenKind::MediumTime) => bits(raw, 8, 16) as i64,
        (Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12, TokenKind::Misc) => {
            bits(raw, 7, 16) as i64
        }
        _ => 0,
    }
}
