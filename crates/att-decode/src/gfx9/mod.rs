//! gfx9: MI200, MI300 and MI350.
//!
//! [`Gfx9Decoder`] reads a chunk once. The reading loop is in `read`, the clock with its resets in `clock`, what a
//! token does in `state`, a wave of the target in `wave`, streamed counters in `perf`.

mod clock;
mod fifo;
mod perf;
mod read;
mod state;
mod wave;

pub(crate) use state::Gfx9Decoder;
