//! The thread trace (SQTT) of a device: one unit per shader engine, programmed by its registers.
//!
//! The model reports events with their cycles, also future ones ([`Traces::launch`]); a unit that is on encodes them in
//! order of time into its generation's tokens. Tokens become bits in [`crate::sqtt`].

mod event;
mod gfx9_stream;
mod instructions;
mod programming;
mod rdna_stream;
mod samples;
mod store;
mod traces;
mod unit;
mod walking;

pub(crate) use event::DispatchRegisters;
pub(crate) use samples::Plan;
pub(crate) use store::Output;
pub(crate) use traces::{Moment, Traces};
