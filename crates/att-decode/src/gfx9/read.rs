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

/// Bits of four MISC tokens that are zero where a token is a MISC without type: most of what a gfx9 stream holds.
const PLAIN_MISCS: u64 = 0xe00f_e00f_e00f_e00f;

/// How many of the four 16-bit units of a window are MISC tokens without type, up to the first that is none.
#[inline(always)]
const fn plain_miscs(raw: u64) -> u32 {
    (raw & PLAIN_MISCS).trailing_zeros() / 16
}

/// Sum of the increments of the first `count` units of a window, which are MISC tokens.
#[inline(always)]
const fn misc_ticks(raw: u64, count: u32) -> i64 {
    const TICKS: u64 = 0x0ff0_0ff0_0ff0_0ff0;
    let mine = (raw & TICKS) << (64 - 16 * count);
    // The product adds all four units up in the highest one.
    ((mine >> 4).wrapping_mul(0x0001_0001_0001_0001) >> 48) as i64
}

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
            let plain = plain_miscs(raw);
            if plain > 0 && byte + 8 <= data.len() {
                counter += GFX9_CLOCKS_PER_TICK * misc_ticks(raw, plain);
                byte += 2 * plain as usize;
                continue;
            }
            let entry = entry(raw);
            let at = base + byte as u64;
            let next = byte + usize::from(entry.step) / 8;
            let then = counter + GFX9_CLOCKS_PER_TICK * i64::from(entry.delta);
            match entry.kind {
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
                    self.take(kind, raw, time, at, out);
                    if let Some(error) = self.refused {
                        self.refused = None;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_plain_miscs_are_counted_and_summed() {
        let unit = |ticks: u64| ticks << 4;
        let window = |units: [u64; 4]| units.iter().rev().fold(0, |window, unit| window << 16 | unit);
        let all = window([unit(255), unit(255), unit(255), unit(255)]);
        assert_eq!((plain_miscs(all), misc_ticks(all, 4)), (4, 1020));
        let issue = 0x000d;
        let two = window([unit(1), unit(7), issue, unit(9)]);
        assert_eq!((plain_miscs(two), misc_ticks(two, 2)), (2, 8));
        let reset = 1 << 13;
        assert_eq!(plain_miscs(window([reset, 0, 0, 0])), 0);
        assert_eq!(plain_miscs(window([unit(3), reset, 0, 0])), 1);
    }
}
