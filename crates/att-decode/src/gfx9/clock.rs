//! The clock of a gfx9 stream, which is set by TIME tokens after resets.
//!
//! A reset (a MISC token) asks for the next TIME token. The public decoder reads ahead for it and delivers what stands
//! between later, with times counted from the new clock. Here the same comes about without a queue: the TIME token is
//! looked up where it stands and stepped over when its turn comes.

use crate::bits::{bits, load8};
use crate::token::TokenKind;
use crate::token::gfx9::{GFX9_TIME_MASK, cut_off, entry};

/// Bits of the MISC token that hold its type.
pub(super) const MISC_TYPE: (u8, u8) = (13, 16);
/// MISC type of a time reset.
pub(super) const MISC_RESET: u64 = 1;

/// What reading ahead from a reset found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ahead {
    /// A TIME token: where, and its time.
    Time { byte: usize, time: i64 },
    /// Another reset. It vanishes with its increment.
    Reset { byte: usize },
    /// Neither up to the end of the data, or of what may be looked at.
    End { scanned_to: usize },
}

/// Looks for the next TIME or reset token from `byte` on.
pub(super) fn look_ahead(data: &[u8], mut byte: usize) -> Ahead {
    while let Some(raw) = load8(data, byte).or_else(|| cut_off(data, byte)) {
        let entry = entry(raw);
        match entry.kind {
            TokenKind::Time => return Ahead::Time { byte, time: bits(raw, 16, 64) as i64 },
            TokenKind::Misc if bits(raw, MISC_TYPE.0, MISC_TYPE.1) == MISC_RESET => {
                return Ahead::Reset { byte };
            }
            _ => byte += usize::from(entry.step) / 8,
        }
    }
    Ahead::End { scanned_to: byte }
}

/// Shader clock and the base that absolute times are counted from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clock {
    /// Clocks since the first time.
    pub(super) counter: i64,
    /// Absolute time of counter 0, 0 while unknown.
    base: i64,
}

impl Clock {
    /// Time a token takes at this counter.
    #[inline(always)]
    pub(super) const fn token_time(counter: i64) -> i64 {
        counter & GFX9_TIME_MASK
    }

    /// Sets the counter by an absolute time. It never goes back.
    pub(super) fn set(&mut self, absolute: i64) {
        /// What the first time is ahead of the counter.
        const FIRST_LEAD: i64 = 4;
        if self.base == 0 {
            self.base = absolute - self.counter + FIRST_LEAD;
        }
        if absolute > self.base {
            self.counter = (absolute - self.base) & !3;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_lies_four_clocks_back_and_later_ones_are_absolute() {
        let mut clock = Clock { counter: 1020, base: 0 };
        clock.set(5_000_000);
        assert_eq!(clock.counter, 1016);
        clock.set(5_000_107);
        assert_eq!(clock.counter, 1120);
        clock.set(1);
        assert_eq!(clock.counter, 1120);
    }

    #[test]
    fn looking_ahead_stops_at_time_reset_and_end() {
        let time = [0x01, 0, 7, 0, 0, 0, 0, 0];
        let ahead = [&[0x00, 0x00, 0x0a, 0x00][..], &time].concat();
        assert_eq!(look_ahead(&ahead, 0), Ahead::Time { byte: 4, time: 7 });
        assert_eq!(look_ahead(&[0, 0, 0x00, 0x20, 0, 0], 0), Ahead::Reset { byte: 2 });
        assert_eq!(look_ahead(&ahead[..11], 0), Ahead::End { scanned_to: 4 });
    }
}
