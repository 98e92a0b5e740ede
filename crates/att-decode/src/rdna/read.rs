//! The reading loop: one pass over the bytes, clock and position in registers.

use super::codes::RECENT;
use super::damage::Way;
use super::realtime::{Storing, store};
use super::state::{Delivered, RdnaDecoder};
use crate::bits::{Wide, bits, load16_padded, window_padded};
use crate::generation::Generation;
use crate::options::Recovery;
use crate::record::{Loss, LossKind};
use crate::session::Outside;
use crate::token::timestamp::Timestamp;
use crate::token::{RdnaCursor, TokenKind, WINDOW_BITS, is_padding, late_delta, lookup, padding, table};

impl RdnaDecoder {
    /// Decodes what can be decoded of `data`, the chunk from its byte `base` on. Unless `is_last`, the end of the
    /// data is not the end of the chunk, and the last bytes are left for the next call. Returns the number of bytes
    /// that are not needed any more.
    pub(crate) fn run(&mut self, data: &[u8], base: u64, is_last: bool, out: &mut Outside<'_>) -> usize {
        self.is_last = is_last;
        match self.generation {
            Generation::Gfx10 | Generation::Gfx9 => self.run_main::<GFX10>(data, base, out),
            Generation::Gfx11 => self.run_main::<GFX11>(data, base, out),
            Generation::Gfx12 => self.run_main::<GFX12>(data, base, out),
            Generation::Gfx1250 => self.run_main::<GFX1250>(data, base, out),
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

    fn run_main<const G: u8>(&mut self, data: &[u8], base: u64, out: &mut Outside<'_>) {
        let generation = generation::<G>();
        let table = table(generation);
        let origin = base * 8;
        let end = RdnaCursor::fast_end(data.len());
        let mut bit = self.cursor.bit - origin;
        let mut time = self.cursor.time;
        let mut continues = self.cursor.continues;
        let mut last = bit;
        let resyncs = out.recovery == Recovery::Resync;
        while bit < end
            && let Some(wide) = Wide::load(data, (bit >> 3) as usize)
        {
            let shift = (bit & 7) as u32;
            let entry = lookup(table, wide.low(shift));
            if entry.is_special() || continues {
                let raw = wide.window(shift);
                last = bit;
                if continues && raw & 1 == 1 {
                    bit += 8;
                    continue;
                }
                if is_padding(raw) {
                    let unit = RdnaCursor::unit(generation);
                    bit += padding(raw, unit);
                    last = bit - unit;
                    continue;
                }
                let entry = lookup(table, raw);
                let may_be_damage = entry.kind == TokenKind::Unknown
                    || resyncs && matches!(entry.kind, TokenKind::Header | TokenKind::Timestamp);
                if may_be_damage {
                    match self.look_at_damage((entry.kind, raw), data, (bit, base), time, out) {
                        Way::Ahead => {}
                        Way::At(next) => {
                            bit = next;
                            continues = false;
                            continue;
                        }
                        Way::Wait => break,
                    }
                }
                continues = G >= GFX12 && entry.kind == TokenKind::WaveStartExt;
                bit += u64::from(entry.step).next_multiple_of(RdnaCursor::unit(generation));
                time = time.wrapping_add(i64::from(entry.delta) + late_delta(generation, entry.kind, raw));
                let mut token = Delivered { kind: entry.kind, raw, time, bit: origin + last };
                match entry.kind {
                    TokenKind::Time => continue,
                    TokenKind::Timestamp => {
                        time = self.timestamp(raw, time, Storing::at(generation, true), out);
                        continue;
                    }
                    TokenKind::NewPc12 => token.raw = window_padded(data, last + 8),
                    _ => {}
                }
                self.deliver_from::<G>(token, out);
                continue;
            }
            let raw = wide.window(shift + u32::from(entry.pad));
            last = bit + u64::from(entry.pad);
            bit += u64::from(entry.step);
            time = time.wrapping_add(i64::from(entry.delta));
            if entry.kind == TokenKind::Time {
                continue;
            }
            self.deliver_from::<G>(Delivered { kind: entry.kind, raw, time, bit: origin + last }, out);
        }
        if origin + bit != self.cursor.bit {
            self.cursor.window_end = origin + last + WINDOW_BITS;
        }
        self.cursor.bit = origin + bit;
        self.cursor.time = time;
        self.cursor.continues = continues;
    }

    /// Hands a token on, at once or in order.
    #[inline(always)]
    fn deliver_from<const G: u8>(&mut self, mut token: Delivered, out: &mut Outside<'_>) {
        if G < GFX12 {
            return self.hold(token, out);
        }
        match token.kind {
            TokenKind::ValuInst if G == GFX1250 => token.raw = self.recent_slot(token.raw),
            TokenKind::Inst if G == GFX1250 => self.touch_recent(token.raw),
            _ => {}
        }
        self.take(token, out);
    }

    /// Takes a TIMESTAMP; returns the clock after it.
    #[inline]
    pub(super) fn timestamp(&mut self, raw: u64, time: i64, storing: Storing, out: &mut Outside<'_>) -> i64 {
        let stamp = Timestamp::decode(self.generation, raw);
        let time = time.wrapping_add(stamp.step);
        self.loss_pending |= stamp.lost;
        store(&mut self.realtime, storing, time, stamp.sample, &mut out.emitter);
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

    /// The last bytes of gfx12 and gfx1250: what lies behind the end reads as zero, a token cut off is dropped.
    fn run_tail(&mut self, data: &[u8], base: u64, out: &mut Outside<'_>) {
        let end = (base + data.len() as u64) * 8;
        let table = table(self.generation);
        loop {
            let at = self.cursor.bit;
            let is_in_main = self.cursor.is_in_main(end);
            let wide = load16_padded(data, (at / 8 - base) as usize) >> (at & 7);
            let raw = wide as u64;
            if at + WINDOW_BITS >= end && raw == 0 {
                return;
            }
            self.cursor.window_end = at + WINDOW_BITS;
            if self.cursor.continues && raw & 1 == 1 {
                self.cursor.bit += 8;
                continue;
            }
            if is_padding(raw) {
                self.cursor.bit += RdnaCursor::unit(self.generation);
                if self.cursor.bit > end {
                    return;
                }
                continue;
            }
            let entry = lookup(table, raw);
            let step = u64::from(entry.step).next_multiple_of(RdnaCursor::unit(self.generation));
            if at + step > end {
                return self.cut_off(at, end, out);
            }
            self.cursor.bit += step;
            self.cursor.continues = entry.kind == TokenKind::WaveStartExt;
            let step = i64::from(entry.delta) + late_delta(self.generation, entry.kind, raw);
            self.cursor.time = self.cursor.time.wrapping_add(step);
            let mut token = Delivered { kind: entry.kind, raw, time: self.cursor.time, bit: at };
            match entry.kind {
                TokenKind::Time | TokenKind::Timestamp => {
                    if entry.kind == TokenKind::Timestamp {
                        let storing = Storing::at(self.generation, is_in_main);
                        token.time = self.timestamp(raw, token.time, storing, out);
                        self.cursor.time = token.time;
                    }
                    // Quirk: only the tail of gfx1250 hands these two on, while a loss waits to be told.
                    if self.generation != Generation::Gfx1250 || !self.loss_pending || is_in_main {
                        continue;
                    }
                }
                TokenKind::NewPc12 if self.shifts_new_pc(at, end) => token.raw = (wide >> 8) as u64,
                TokenKind::ValuInst if self.generation == Generation::Gfx1250 => {
                    token.raw = self.recent_slot(raw);
                }
                TokenKind::Inst if self.generation == Generation::Gfx1250 => self.touch_recent(raw),
                _ => {}
            }
            self.take(token, out);
        }
    }

    /// The chunk ends inside a token.
    #[cold]
    fn cut_off(&mut self, at: u64, end: u64, out: &mut Outside<'_>) {
        let (byte_offset, bytes) = (at / 8, end / 8 - at / 8);
        out.emitter.loss(Loss { kind: LossKind::CutOff, byte_offset, bytes, time: self.cursor.time });
    }

    /// Whether enough is left behind the window to read a NEW_PC where it stands.
    ///
    /// Quirk: near the end of a chunk the fields are read eight bits too early.
    fn shifts_new_pc(&self, at: u64, end: u64) -> bool {
        let behind = end.saturating_sub(at + WINDOW_BITS);
        if self.generation == Generation::Gfx1250 { behind >= 8 } else { behind > WINDOW_BITS }
    }
}

const GFX10: u8 = 10;
const GFX11: u8 = 11;
const GFX12: u8 = 12;
const GFX1250: u8 = 13;

const fn generation<const G: u8>() -> Generation {
    match G {
        GFX10 => Generation::Gfx10,
        GFX11 => Generation::Gfx11,
        GFX12 => Generation::Gfx12,
        _ => Generation::Gfx1250,
    }
}
