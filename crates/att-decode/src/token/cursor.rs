//! Steps through an RDNA stream token by token, in stream order.
//!
//! Token dumps step over the leftovers of gfx1250 (see the tables) by their nominal length, the public decoder by
//! whole bytes; [`RdnaCursor::next`] makes dumps, the decoder's own loop does as the public one. Hardware sends none.

use super::entry::Table;
use super::iter::Token;
use super::kind::TokenKind;
use super::tables::table;
use super::timestamp::Timestamp;
use crate::bits::{load16, load16_padded};
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
        }
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
        while let Some(wide) = load16(data, (self.bit >> 3) as usize) {
            let raw = (wide >> (self.bit & 7)) as u64;
            let entry = self.table[usize::from(raw as u8)];
            if entry.special || self.continues {
                // The tail needs no care while sixteen bytes are left: no token reaches that far.
                match self.step(raw, (wide >> (self.bit & 7) >> 64) as u8) {
                    Some(token) => return Some(token),
                    None => continue,
                }
            }
            let bit_offset = self.bit;
            self.bit += u64::from(entry.bits);
            self.time = self.time.wrapping_add(entry.delta(raw));
            return Some(Token {
                kind: entry.kind,
                bits: entry.bits,
                high: 0,
                bit_offset,
                time: self.time,
                raw,
            });
        }
        self.next_near_end(data)
    }

    /// One step of any kind: `None` for padding.
    fn step(&mut self, raw: u64, high: u8) -> Option<Token> {
        let bit_offset = self.bit;
        if self.continues && raw & 1 == 1 {
            self.bit += 8;
            let kind = TokenKind::WaveStartExtByte;
            return Some(Token { kind, bits: 8, high: 0, bit_offset, time: self.time, raw });
        }
        let entry = self.table[usize::from(raw as u8)];
        self.bit += u64::from(entry.bits);
        if entry.kind == TokenKind::Nop {
            return None;
        }
        self.continues = entry.kind == TokenKind::WaveStartExt && Self::is_strict(self.generation);
        if entry.kind == TokenKind::Timestamp {
            self.time = self.time.wrapping_add(Timestamp::decode(self.generation, raw).step);
        }
        self.time = self.time.wrapping_add(entry.delta(raw));
        let high = if entry.bits > 64 { high } else { 0 };
        Some(Token { kind: entry.kind, bits: entry.bits, high, bit_offset, time: self.time, raw })
    }

    /// The last bytes: what lies behind the end reads as zero.
    #[cold]
    fn next_near_end(&mut self, data: &[u8]) -> Option<Token> {
        let end = data.len() as u64 * 8;
        while !self.done {
            let wide = load16_padded(data, (self.bit >> 3) as usize) >> (self.bit & 7);
            let raw = wide as u64;
            self.done = self.bit + WINDOW_BITS >= end && raw == 0;
            if self.done {
                return None;
            }
            if let Some(token) = self.step(raw, (wide >> 64) as u8) {
                return Some(token);
            }
        }
        None
    }
}
