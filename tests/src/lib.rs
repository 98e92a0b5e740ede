//! A testbed for whole-system tests: a machine, interception in its runtime's table, an application on top, and the
//! services as a profiler would set them up. [`on_both_faces!`] runs a test on the in-process runtime and on the real
//! ROCm runtime above the software GPU.
//!
//! Judges are the launch geometry ([`waves`]) and the placement log ([`Placement`]), never the code under test.
#![expect(clippy::expect_used, clippy::panic, reason = "a testbed that cannot be set up fails the test")]

mod bed;
mod code;
mod decoded;
mod face;
mod geometry;
mod placement;
mod resources;
mod services;
mod twin;
mod walked;

pub use bed::{Bed, FAULT_PATIENCE, PATIENCE};
pub use code::run_code;
pub use decoded::{Decoded, Place, decode, is_detailed, on_engine, place};
pub use face::{TARGETS, Way, in_process, on_rocr};
pub use geometry::waves;
pub use placement::{Placed, PlacedWave, Placement, Walk};
pub use resources::Resources;
pub use services::{Counted, Traces, What, count, device_trace, total, trace};
pub use twin::Twin;
pub use walked::{WalkedWave, decode_walks, loaded, relative, walked};

/// The README's Rust example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
