//! Where and when waves run.
//!
//! A *place* is what a work-group must fit into: a compute unit on gfx9, a WGP (two compute units, four SIMDs) on
//! gfx10 and later. Time is kept in device cycles; a slot, its registers and the group's LDS are free again at the
//! end of what held them, so placing looks at ends only and never plays through the time between.

mod chip;
mod placer;
#[cfg(test)]
mod tests;
mod unit;

pub(crate) use chip::{Chip, Position};
pub(crate) use placer::{Launch, Placed, Placer};

/// Cycles are multiples of this: the unit of gfx9 traces, and of a SIMD's issue there.
pub(crate) const GRAIN: u64 = 4;

/// A wave in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wave {
    /// Number of its work-group in the dispatch.
    pub(crate) workgroup: u64,
    /// First cycle.
    pub(crate) start: u64,
    /// First cycle after it.
    pub(crate) end: u64,
    /// Index of its place in [`Chip`].
    pub(crate) place: u16,
    pub(crate) simd: u8,
    pub(crate) slot: u8,
    /// Active lanes, of how many.
    pub(crate) lanes: u8,
    pub(crate) size: u8,
    /// Whether it is the first wave of its work-group.
    pub(crate) first: bool,
    /// Number of its walk in the dispatch.
    pub(crate) walk: u32,
}

/// Knows how long waves live.
pub(crate) trait Lifetimes {
    /// Number of the walk that the waves of a work-group take, and the cycles that each of them lives; `None`: nobody
    /// knows.
    fn of_group(&mut self, workgroup: u64, waves: u32, waves_of_simd: u32) -> (u32, Option<u64>);
}
