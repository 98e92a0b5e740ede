//! The reading loop of gfx9.

use super::clock::{Ahead, Clock, MISC_RESET, MISC_TYPE, look_ahead};
use super::state::Gfx9Decoder;
use crate::bits::{bits, load8};
use crate::error::Error;
use crate::options::Recovery;
use crate::record::{Loss, LossKind};
use crate::session::Outside;
use crate::token::TokenKind;
use crate::token::gfx9::{GFX9_CLOCKS_PER_TICK, cut_off, entry};

impl Gfx9Decoder {
    /// Decodes what can be decoded of `data`, the chunk from its byte `base` on. Unless `is_last`, the end of the
    /// data is not the end of the chunk, and the last bytes are left for the next call. Returns the number of bytes
    /// that are not needed any more.
    pub(crate) fn run(
        &mut self,
        data: &[u8],
        base: u64,
        is_last: bool,
        out: &mut Outside<'_>,
    ) -> Result<usize, Error> {
        let mut byte = (self.byte - base) as usize;
        let mut counter = self.clock.counter;
        let result = loop {
            let raw = match load8(data, byte) {
                Some(raw) => raw,
                None if !is_last => break Ok(()),
                None => match cut_off(data, byte) {
                    Some(raw) => raw,
                    None => break Ok(()),
                },
            };
            let entry = entry(raw);
            let at = base + byte as u64;
            let next = byte + usize::from(entry.step) / 8;
            let then = counter + GFX9_CLOCKS_PER_TICK * i64::from(entry.delta);
            match entry.kind {
                TokenKind::Misc if bits(raw, MISC_TYPE.0, MISC_TYPE.1) == 0 => counter = then,
                TokenKind::Misc if bits(raw, MISC_TYPE.0, MISC_TYPE.1) == MISC_RESET => {
                    if at == self.used_up {
                        self.used_up = 0;
                    } else {
                        let Some(counter_set) = self.reset(data, base, next, then, is_last) else {
                            break Ok(());
                        };
                        counter = counter_set;
                    }
                }
                TokenKind::Time => {
                    if at == self.used_up {
                        self.used_up = 0;
                    } else {
                        counter = then;
                    }
                }
                kind => {
                    counter = then;
                    let time = Clock::token_time(counter);
                    if let Err(error) = self.take(kind, raw, time, at, out) {
                        let bytes = (next - byte) as u64;
                        let loss = Loss { kind: LossKind::Invalid, byte_offset: at, bytes, time };
                        out.emitter.loss(loss);
                        if out.recovery == Recovery::AsPublicDecoder {
                            break Err(error);
                        }
                        self.mark_lossy();
                    }
                }
            }
            byte = next;
        };
        self.byte = base + byte as u64;
        self.clock.counter = counter;
        result.map(|()| byte.min(data.len()))
    }

    /// A time reset before byte `next`: the counter behind it, or `None` if more data must come first.
    #[cold]
    fn reset(&mut self, data: &[u8], base: u64, next: usize, counter: i64, is_last: bool) -> Option<i64> {
        let from = next.max(self.scanned_to.saturating_sub(base) as usize);
        self.clock.counter = counter;
        match look_ahead(data, from) {
            Ahead::Time { byte, time } => {
                self.used_up = base + byte as u64;
                self.clock.set(time);
            }
            Ahead::Reset { byte } => self.used_up = base + byte as u64,
            Ahead::End { scanned_to } if !is_last => {
                self.scanned_to = base + scanned_to as u64;
                return None;
            }
            Ahead::End { .. } => {}
        }
        self.scanned_to = 0;
        Some(self.clock.counter)
    }
}
