//! The end of a chunk on gfx12 and gfx1250.

use super::realtime::Storing;
use super::state::{Delivered, RdnaDecoder};
use crate::bits::load16_padded;
use crate::generation::Generation;
use crate::quirks;
use crate::record::{Loss, LossKind};
use crate::session::Outside;
use crate::token::{RdnaCursor, TokenKind, WINDOW_BITS, is_padding, late_delta, lookup, table};

impl RdnaDecoder {
    /// The last bytes of gfx12 and gfx1250: what lies behind the end reads as zero, a token cut off is dropped.
    pub(super) fn run_tail(&mut self, data: &[u8], base: u64, out: &mut Outside<'_>) {
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
            let entry = *lookup(table, raw);
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
                    let tells_loss = quirks::TAIL_TELLS_LOSS_BY_CLOCK_TOKENS.contains(&self.generation);
                    if !tells_loss || !self.loss_pending || is_in_main {
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
    fn shifts_new_pc(&self, at: u64, end: u64) -> bool {
        end.saturating_sub(at + WINDOW_BITS) >= quirks::new_pc_needs_behind(self.generation)
    }
}
