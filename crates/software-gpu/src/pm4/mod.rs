//! The command processor: runs PM4 command buffers.
//!
//! A buffer is compiled once into a [`Program`] and kept per queue; while its bytes stay the same it is replayed.
//! Running it ([`execute`](execute::execute)) changes the [`RegisterFile`] and what the registers control, one copy
//! per XCC as PRED_EXEC and GRBM_GFX_INDEX select. It can pause (idle and memory waits) and go on later.

mod cache;
mod execute;
mod program;
mod registers;
mod role;

pub(crate) use cache::{Cache, Run};
pub(crate) use execute::{Command, CommandFault, Context, Outcome, Stores, gates};
pub(crate) use registers::{RegisterFile, Selection};
pub(crate) use role::Roles;
