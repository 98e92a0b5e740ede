//! The reading loop of gfx9.

use super::clock::{Ahead, Clock, MISC_RESET, MISC_TYPE, look_ahead};
use super::state::Gfx9Decoder;
use crate::bits::{BLOCK_BYTES, bits, block8, fill, load16_padded};
use crate::error::Error;
use crate::options::Recovery;
use crate::record::{Loss, LossKind};
use crate::session::Outside;
use crate::token::TokenKind;
use crate::token::gfx9::{GFX9_CLOCKS_PER_TICK, GFX9_KIND_BITS, cut_off, entry, gfx9_bytes, gfx9_name};

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

/// Bytes of the longest token.
const LONGEST: usize = 8;

/// What is known of the chunk.
#[derive(Clone, Copy)]
struct Chunk<'a> {
    /// The data at hand, the chunk from its byte `base` on.
    data: &'a [u8],
    base: u64,
    /// They end where the chunk ends.
    is_last: bool,
}

/// Place and clock of the loop.
struct At {
    /// Byte of the data at which the block begins.
    origin: usize,
    /// Byte of the next token in the block.
    byte: usize,
    counter: i64,
}

impl At {
    /// The same place and clock with a block that begins at the next token.
    fn next_block(&mut self) {
        self.origin += std::mem::take(&mut self.byte);
    }
}

/// What a token means for those behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// They are next.
    On,
    /// More data must come first; the token is not taken.
    Waits,
    /// The token was refused, see `refused`.
    Refused,
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
        let chunk = Chunk { data, base, is_last };
        let mut at = At { origin: (self.byte - base) as usize, byte: 0, counter: self.clock.counter };
        let result = loop {
            match self.run_tokens(chunk, &mut at, out) {
                Way::On | Way::Waits => break Ok(()),
                Way::Refused => {
                    if let Err(error) = self.refuse(chunk, &mut at, out) {
                        break Err(error);
                    }
                }
            }
        };
        at.next_block();
        self.byte = base + at.origin as u64;
        self.clock.counter = at.counter;
        result.map(|()| at.origin.min(data.len()))
    }

    /// Takes all tokens, or those before one that is refused or waits.
    fn run_tokens(&mut self, chunk: Chunk<'_>, at: &mut At, out: &mut Outside<'_>) -> Way {
        let way = self.run_blocks(chunk, at, out);
        if way != Way::On || !chunk.is_last {
            return way;
        }
        at.next_block();
        while let Some(raw) = cut_off(chunk.data, at.origin) {
            match self.token(raw, chunk, at, out) {
                Way::On => at.next_block(),
                way => return way,
            }
        }
        Way::On
    }

    /// Takes the tokens that have the longest token's bytes behind their start.
    fn run_blocks(&mut self, chunk: Chunk<'_>, at: &mut At, out: &mut Outside<'_>) -> Way {
        let mut block = [0; BLOCK_BYTES + 16];
        let mut here = At { ..*at };
        let mut way = Way::On;
        loop {
            here.next_block();
            let limit = (chunk.data.len() + 1).saturating_sub(here.origin + LONGEST).min(BLOCK_BYTES);
            if limit == 0 || way != Way::On {
                break;
            }
            fill(&mut block, chunk.data, here.origin);
            while here.byte < limit {
                let raw = block8(&block, here.byte);
                let plain = plain_miscs(raw);
                if plain > 0 {
                    here.counter += GFX9_CLOCKS_PER_TICK * misc_ticks(raw, plain);
                    here.byte += 2 * plain as usize;
                    continue;
                }
                way = self.token(raw, chunk, &mut here, out);
                if way != Way::On {
                    break;
                }
            }
        }
        *at = here;
        way
    }

    /// Takes a token. One that is refused is not stepped over.
    #[inline(always)]
    fn token(&mut self, raw: u64, chunk: Chunk<'_>, at: &mut At, out: &mut Outside<'_>) -> Way {
        const MISC: u64 = gfx9_name(TokenKind::Misc);
        const TIME: u64 = gfx9_name(TokenKind::Time);
        const REG: u64 = gfx9_name(TokenKind::Reg);
        const WAVE_START: u64 = gfx9_name(TokenKind::WaveStart);
        const WAVE_ALLOC: u64 = gfx9_name(TokenKind::WaveAlloc);
        const REG_CS: u64 = gfx9_name(TokenKind::RegCs);
        const WAVE_END: u64 = gfx9_name(TokenKind::WaveEnd);
        const INST: u64 = gfx9_name(TokenKind::Inst);
        const INST_PC: u64 = gfx9_name(TokenKind::InstPc);
        const SHADER_DATA: u64 = gfx9_name(TokenKind::ShaderData9);
        const ISSUE: u64 = gfx9_name(TokenKind::Issue);
        const PERF: u64 = gfx9_name(TokenKind::Perf);
        const REG_CS_PRIV: u64 = gfx9_name(TokenKind::RegCsPriv);
        let counter = at.counter + GFX9_CLOCKS_PER_TICK * bits(raw, 4, 5) as i64;
        let time = Clock::token_time(counter);
        let (is_accepted, bytes) = match raw & GFX9_KIND_BITS {
            ISSUE => (self.issue(raw, time), const { gfx9_bytes(TokenKind::Issue) }),
            INST => (self.inst(raw, time), const { gfx9_bytes(TokenKind::Inst) }),
            WAVE_START => (self.wave_start(raw, time, out), const { gfx9_bytes(TokenKind::WaveStart) }),
            WAVE_END => (self.wave_end(raw, time, out), const { gfx9_bytes(TokenKind::WaveEnd) }),
            REG_CS | REG_CS_PRIV => (self.reg_cs(raw, time, out), const { gfx9_bytes(TokenKind::RegCs) }),
            REG => (self.reg(raw, time, out), const { gfx9_bytes(TokenKind::Reg) }),
            INST_PC => (self.inst_pc(raw), const { gfx9_bytes(TokenKind::InstPc) }),
            SHADER_DATA => (self.shader_data(raw, time, out), const { gfx9_bytes(TokenKind::ShaderData9) }),
            PERF => (self.perf(raw, time, out), const { gfx9_bytes(TokenKind::Perf) }),
            WAVE_ALLOC => (self.has_place(raw), const { gfx9_bytes(TokenKind::WaveAlloc) }),
            MISC => return self.misc(raw, chunk, at, out),
            TIME => {
                let place = chunk.base + (at.origin + at.byte) as u64;
                if place == self.used_up {
                    self.used_up = 0;
                } else {
                    at.counter = counter;
                }
                at.byte += const { gfx9_bytes(TokenKind::Time) };
                return Way::On;
            }
            // Pipeline events, of one length.
            _ => (true, const { gfx9_bytes(TokenKind::Event) }),
        };
        if !is_accepted {
            return Way::Refused;
        }
        at.counter = counter;
        at.byte += bytes;
        Way::On
    }

    /// A MISC token that is more than a step of the clock.
    #[inline(always)]
    fn misc(&mut self, raw: u64, chunk: Chunk<'_>, at: &mut At, out: &mut Outside<'_>) -> Way {
        let place = at.origin + at.byte;
        match self.typed_misc(raw, chunk, place, at.counter, out) {
            Some(counter) => {
                at.counter = counter;
                at.byte += const { gfx9_bytes(TokenKind::Misc) };
                Way::On
            }
            None => Way::Waits,
        }
    }

    /// A MISC token with a type: the counter behind it, or `None` if more data must come first.
    #[inline(never)]
    fn typed_misc(
        &mut self,
        raw: u64,
        chunk: Chunk<'_>,
        place: usize,
        counter: i64,
        out: &mut Outside<'_>,
    ) -> Option<i64> {
        let at = chunk.base + place as u64;
        let then = counter + GFX9_CLOCKS_PER_TICK * misc_ticks(raw, 1);
        if bits(raw, MISC_TYPE.0, MISC_TYPE.1) != MISC_RESET {
            self.misc_event(raw, Clock::token_time(then), at, out);
            return Some(then);
        }
        if at == self.used_up {
            self.used_up = 0;
            return Some(counter);
        }
        self.reset(chunk, place + const { gfx9_bytes(TokenKind::Misc) }, then)
    }

    /// A time reset before byte `next`: the counter behind it, or `None` if more data must come first.
    #[cold]
    fn reset(&mut self, chunk: Chunk<'_>, next: usize, counter: i64) -> Option<i64> {
        let Chunk { data, base, is_last } = chunk;
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

    /// Data that no hardware writes: the end of the chunk, or a gap in it.
    #[cold]
    fn refuse(&mut self, chunk: Chunk<'_>, at: &mut At, out: &mut Outside<'_>) -> Result<(), Error> {
        let place = at.origin + at.byte;
        let raw = load16_padded(chunk.data, place) as u64;
        let entry = entry(raw);
        let counter = at.counter + GFX9_CLOCKS_PER_TICK * i64::from(entry.delta);
        let (byte_offset, bytes) = (chunk.base + place as u64, u64::from(entry.step) / 8);
        let time = Clock::token_time(counter);
        out.emitter.loss(Loss { kind: LossKind::Invalid, byte_offset, bytes, time });
        if let Some(refusal) = self.refused.take()
            && out.recovery == Recovery::AsPublicDecoder
        {
            return Err(refusal.at(byte_offset));
        }
        self.mark_lossy();
        at.counter = counter;
        at.byte += bytes as usize;
        Ok(())
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
