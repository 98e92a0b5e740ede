//! The thread trace (SQTT) of a device: one unit per shader engine, programmed by its registers.
//!
//! The model reports events with their cycles, also future ones ([`Traces::launch`]); a unit that is on encodes them in
//! order of time into its generation's tokens. The encoder shares no table with any decoder: tokens are typed values
//! here and become bits here.

mod bits;
mod event;
mod gfx9;
mod gfx9_stream;
mod programming;
mod rdna;
mod rdna_stream;
#[cfg(test)]
mod tests;
mod traces;
mod unit;

pub(crate) use event::DispatchRegisters;
pub(crate) use traces::{Moment, Traces};
pub(crate) use unit::Output;
