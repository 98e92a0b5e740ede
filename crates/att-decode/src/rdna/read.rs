//! The fast loop: one pass over the bytes, clock and position in registers.

use super::codes::RECENT;
use super::form::{Form, GFX10, GFX11, GFX12, GFX1250, generation};
use super::order::Quiet;
use super::realtime::{Storing, store};
use super::state::{Delivered, RdnaDecoder};
use crate::bits::{Wide, bits};
use crate::generation::Generation;
use crate::session::Outside;
use crate::token::timestamp::Timestamp;
use crate::token::{RdnaCursor, TokenKind, WINDOW_BITS, lookup, table};

/// Bytes that the fast loop leaves over, so that the tokens whose place near the end matters stay out of it.
const LEFT_OVER: usize = 9;

impl RdnaDecoder {
    /// Decodes what can be decoded of `data`, the chunk from its byte `base` on. Unless `is_last`, the end of the
    /// data is not the end of the chunk, and the last bytes are left for the next call. Returns the number of bytes
    /// that are not needed any more.
    pub(crate) fn run(&mut self, data: &[u8], base: u64, is_last: bool, out: &mut Outside<'_>) -> usize {
        self.is_last = is_last;
        loop {
            if !self.is_careful() {
                match self.generation {
                    Generation::Gfx10 | Generation::Gfx9 => self.run_fast::<GFX10>(data, base, out),
                    Generation::Gfx11 => self.run_fast::<GFX11>(data, base, out),
                    Generation::Gfx12 => self.run_fast::<GFX12>(data, base, out),
                    Generation::Gfx1250 => self.run_fast::<GFX1250>(data, base, out),
                }
            }
            if !self.step(data, base, out) {
                break;
            }
        }
        if is_last {
            if RdnaCursor::is_strict(self.generation) {
                self.run_tail(data, base, out);
            } else {
                self.run_tail_in_order(data, base, out);
            }
        }
        // The window of the last token is looked at once more in the tail.
        let needed = self.cursor.window_end.saturating_sub(WINDOW_BITS) / 8;
        (needed.saturating_sub(base) as usize).min(data.len())
    }

    /// Whether the next token is more than the fast loop can take.
    fn is_careful(&self) -> bool {
        self.cursor.continues || self.is_attentive || !self.header.is_native_to(self.generation)
    }

    /// Takes tokens up to one that needs a careful step, or the end of the data.
    fn run_fast<const F: Form>(&mut self, data: &[u8], base: u64, out: &mut Outside<'_>) {
        let table = table(generation::<F>());
        let origin = base * 8;
        let data = data.get(..data.len().saturating_sub(LEFT_OVER)).unwrap_or_default();
        let start = self.cursor.bit - origin;
        let (mut bit, mut last) = (start, start);
        let mut time = self.cursor.time;
        let mut quiet = self.quiet;
        while let Some(wide) = Wide::load(data, (bit >> 3) as usize) {
            let shift = (bit & 7) as u32;
            let entry = lookup(table, wide.low(shift));
            if entry.is_special() {
                break;
            }
            let raw = wide.window(shift + u32::from(entry.pad));
            last = bit + u64::from(entry.pad);
            bit += u64::from(entry.step);
            time = time.wrapping_add(i64::from(entry.delta));
            if entry.kind.is_quiet() {
                if F < GFX12 && entry.kind != TokenKind::Time {
                    quiet = Quiet { time, bit: origin + last };
                }
                continue;
            }
            let mut token = Delivered { kind: entry.kind, raw, time, bit: origin + last };
            if F < GFX12 {
                self.hold::<F>(token, quiet.time, out);
                continue;
            }
            match token.kind {
                TokenKind::ValuInst if F == GFX1250 => token.raw = self.recent_slot(token.raw),
                TokenKind::Inst if F == GFX1250 => self.touch_recent(token.raw),
                _ => {}
            }
            self.apply::<F>(token, false, out);
        }
        if bit != start {
            self.cursor.window_end = origin + last + WINDOW_BITS;
        }
        self.cursor.bit = origin + bit;
        self.cursor.time = time;
        self.quiet = quiet;
    }

    /// Takes a TIMESTAMP; returns the clock after it.
    #[inline]
    pub(super) fn timestamp(&mut self, raw: u64, time: i64, storing: Storing, out: &mut Outside<'_>) -> i64 {
        let stamp = Timestamp::decode(self.generation, raw);
        let time = time.wrapping_add(stamp.step);
        self.loss_pending |= stamp.lost;
        store(&mut self.realtime, storing, time, stamp.sample, &mut out.emitter);
        self.is_attentive = self.loss_pending || self.realtime.is_full();
        time
    }

    /// A gfx1250 VALU_INST in the form of the other generations.
    #[inline]
    pub(super) fn recent_slot(&mut self, raw: u64) -> u64 {
        u64::from(self.recent.take(raw)) << 7
    }

    /// An INST of gfx1250 that makes its wave a recent one.
    #[inline]
    pub(super) fn touch_recent(&mut self, raw: u64) {
        let code = bits(raw, 12, 20) as u8;
        if (RECENT.0..=RECENT.1).contains(&code) {
            self.recent.touch(bits(raw, 7, 12) as u8);
        }
    }
}
