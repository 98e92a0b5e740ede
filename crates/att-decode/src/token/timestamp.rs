//! What a TIMESTAMP token of RDNA does: a step of the clock, a loss mark or a sample of the real-time clock.

use crate::bits::bits;
use crate::generation::Generation;

/// Meaning of one TIMESTAMP token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timestamp {
    /// Cycles to add to the clock.
    pub(crate) step: i64,
    /// Packets were lost before this token.
    pub(crate) lost: bool,
    /// A sample of the real-time clock; 0 is none.
    pub(crate) sample: u64,
}

impl Timestamp {
    /// Decodes the token for a generation.
    #[inline]
    pub(crate) const fn decode(generation: Generation, raw: u64) -> Self {
        let (lost, realtime, value) = match generation {
            Generation::Gfx10 | Generation::Gfx9 => return Self::decode_gfx10(raw),
            Generation::Gfx11 => (bits(raw, 8, 9), bits(raw, 9, 10), bits(raw, 12, 48)),
            Generation::Gfx12 | Generation::Gfx1250 => (bits(raw, 8, 9), bits(raw, 7, 8), bits(raw, 12, 64)),
        };
        match (realtime, lost) {
            (0, lost) => Timestamp { step: value as i64, lost: lost == 1, sample: 0 },
            (_, 0) => Timestamp { step: 0, lost: false, sample: value },
            _ => Timestamp { step: 0, lost: false, sample: 0 },
        }
    }

    const fn decode_gfx10(raw: u64) -> Self {
        let value = bits(raw, 16, 64);
        match bits(raw, 14, 16) {
            1 => Timestamp { step: value as i64, lost: false, sample: 0 },
            2 => Timestamp { step: 0, lost: false, sample: value },
            _ => Timestamp { step: 0, lost: false, sample: 0 },
        }
    }
}
