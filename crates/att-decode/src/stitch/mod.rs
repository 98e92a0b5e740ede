//! Gives the instructions of a wave their program counters.
//!
//! A trace says what kind of unit issued an instruction and when, not where it stands. The stitcher walks the
//! program from the places where the counter is known and matches program lines with trace instructions in order.
//! The rules are those of the public decoder (`source/stitch/stitch.cpp`), to the letter.

mod gaps;
mod lines;
mod lookahead;
mod matching;
mod walk;

pub(crate) use gaps::insert_gaps;
pub(crate) use lines::Lines;
pub(crate) use walk::{Chip, stitch};
