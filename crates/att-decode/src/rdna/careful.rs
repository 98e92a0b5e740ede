//! One careful step: whatever the fast loop does not take.

use super::damage::Way;
use super::form::BY_HEADER;
use super::realtime::Storing;
use super::state::{Delivered, RdnaDecoder};
use crate::bits::{window, window_padded};
use crate::generation::Generation;
use crate::options::Recovery;
use crate::session::Outside;
use crate::token::{RdnaCursor, TokenKind, WINDOW_BITS, is_padding, late_delta, lookup, padding, table};

impl RdnaDecoder {
    /// Takes one token, a run of padding or a byte that continues a start. False if the data at hand end first.
    pub(super) fn step(&mut self, data: &[u8], base: u64, out: &mut Outside<'_>) -> bool {
        let bit = self.cursor.bit - base * 8;
        if bit >= RdnaCursor::fast_end(data.len()) {
            return false;
        }
        let Some(raw) = window(data, bit) else { return false };
        self.cursor.window_end = self.cursor.bit + WINDOW_BITS;
        if self.cursor.continues && raw & 1 == 1 {
            self.cursor.bit += 8;
            return true;
        }
        if is_padding(raw) {
            let unit = RdnaCursor::unit(self.generation);
            self.cursor.bit += padding(raw, unit);
            self.cursor.window_end = self.cursor.bit - unit + WINDOW_BITS;
            return true;
        }
        self.step_over_token(raw, data, base, out)
    }

    #[inline]
    fn step_over_token(&mut self, raw: u64, data: &[u8], base: u64, out: &mut Outside<'_>) -> bool {
        let at = self.cursor.bit;
        let entry = *lookup(table(self.generation), raw);
        let may_be_damage = match entry.kind {
            TokenKind::Unknown => true,
            TokenKind::Header | TokenKind::Timestamp => out.recovery == Recovery::Resync,
            _ => false,
        };
        if may_be_damage {
            match self.look_at_damage((entry.kind, raw), data, (at - base * 8, base), self.cursor.time, out) {
                Way::Ahead => {}
                Way::At(next) => {
                    self.cursor.bit = base * 8 + next;
                    self.cursor.continues = false;
                    return true;
                }
                Way::Wait => return false,
            }
        }
        let is_strict = RdnaCursor::is_strict(self.generation);
        self.cursor.continues = is_strict && entry.kind == TokenKind::WaveStartExt;
        self.cursor.bit += u64::from(entry.step).next_multiple_of(RdnaCursor::unit(self.generation));
        let delta = i64::from(entry.delta) + late_delta(self.generation, entry.kind, raw);
        self.cursor.time = self.cursor.time.wrapping_add(delta);
        let mut token = Delivered { kind: entry.kind, raw, time: self.cursor.time, bit: at };
        match entry.kind {
            TokenKind::Time => return true,
            TokenKind::Timestamp => {
                self.take_timestamp(raw, out);
                return true;
            }
            TokenKind::NewPc12 => token.raw = window_padded(data, at - base * 8 + 8),
            TokenKind::ValuInst if self.generation == Generation::Gfx1250 => {
                token.raw = self.recent_slot(raw)
            }
            TokenKind::Inst if self.generation == Generation::Gfx1250 => self.touch_recent(raw),
            _ => {}
        }
        if is_strict {
            self.take(token, out);
        } else {
            token.time = token.time.wrapping_sub(i64::from(token.kind == TokenKind::WaveReady));
            self.holds_header |= token.kind == TokenKind::Header;
            self.hold::<BY_HEADER>(token, self.quiet.time, out);
        }
        true
    }

    fn take_timestamp(&mut self, raw: u64, out: &mut Outside<'_>) {
        let was_lossy = self.loss_pending;
        let storing = Storing::at(self.generation, true);
        self.cursor.time = self.timestamp(raw, self.cursor.time, storing, out);
        if self.loss_pending && !was_lossy && !RdnaCursor::is_strict(self.generation) {
            self.hold_quiet(out);
        }
    }
}
