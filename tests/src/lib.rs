//! A testbed for whole-system tests: a software machine, interception in its table, an application on top, and the
//! services as a profiler would set them up.
//!
//! Judges are the launch geometry ([`waves`]) and the placement log ([`Placement`]), never the code under test.
#![expect(clippy::expect_used, reason = "a testbed that cannot be set up fails the test")]

mod bed;
mod geometry;
mod placement;
mod services;

pub use bed::Bed;
pub use geometry::waves;
pub use placement::Placement;
pub use services::{Counted, Traces, What, count, trace};

/// The README's Rust example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
