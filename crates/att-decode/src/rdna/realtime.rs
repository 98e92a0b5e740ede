//! Samples of the real-time clock on RDNA.

use crate::emit::{Block, Emitter};
use crate::generation::Generation;
use crate::quirks;
use crate::record::{RealtimeSample, Record, RecordKind};

/// Two ways of storing a sample. Which one holds depends on generation and on the place in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storing {
    /// Append.
    Plain,
    /// Average with the last sample unless both clocks have moved on.
    Merging,
}

impl Storing {
    /// The way of the main part of a chunk, or of its tail.
    pub(crate) const fn at(generation: Generation, is_in_main: bool) -> Self {
        match quirks::merges_samples(generation, is_in_main) {
            true => Storing::Merging,
            false => Storing::Plain,
        }
    }
}

/// The block that samples wait in.
pub(crate) type Samples = Block<RealtimeSample>;

/// An empty block.
pub(crate) fn samples() -> Samples {
    Block::new(RecordKind::Realtime, |samples| Record::Realtime(samples))
}

/// Stores a sample; a value of 0 is none.
pub(crate) fn store(samples: &mut Samples, storing: Storing, time: i64, value: u64, out: &mut Emitter<'_>) {
    if value == 0 {
        return;
    }
    if storing == Storing::Merging
        && let Some(last) = samples.last_mut()
        && (last.realtime_clock >= value || last.shader_clock >= time)
    {
        last.realtime_clock = u64::midpoint(last.realtime_clock, value);
        last.shader_clock = last.shader_clock.wrapping_add(time) / 2;
        return;
    }
    samples.push(RealtimeSample { shader_clock: time, realtime_clock: value, reserved: 0 }, out);
}
