//! Command buffers with symbolic addresses, and the AQL packet that carries them.

mod carrier;
mod dialect;
mod emitter;
mod relocation;
mod upload;

pub(crate) use carrier::carrier;
pub(crate) use emitter::{Emitter, Symbol, Value};
pub use relocation::{Commands, Form, Relocation};
pub(crate) use upload::upload;
