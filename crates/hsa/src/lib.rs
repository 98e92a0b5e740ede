//! Safe owning handles over a *saved* HSA API table: memory, signals, queues, agents, times.
//!
//! [`Hsa`] is the runtime; [`Memory`], [`HsaSignal`] and [`HsaQueue`] belong to it and are released when dropped.
//! Every call goes through the entries that were there before anybody replaced one, so nothing here is ever seen
//! by our own hooks. Errors name the call and keep the raw status.
//!
//! This crate checks what the runtime does not (room in a queue, ranges, time limits) and does not know what is
//! measured with it.
//!
//! ```no_run
//! use wavescope_core::AgentId;
//! use wavescope_hsa::{Hsa, HsaQueue, Memory, MemoryKind};
//!
//! # fn table() -> *const hsa_sys::HsaApiTable { std::ptr::null() }
//! // SAFETY: `table` is what the runtime handed to `OnLoad`.
//! let hsa = unsafe { Hsa::from_table(table(), None) }?;
//! let queue = HsaQueue::new(&hsa, AgentId(0), 64)?;
//! let commands = Memory::allocate(&hsa, AgentId(0), MemoryKind::Commands, 4096)?;
//! # Ok::<(), wavescope_hsa::Error>(())
//! ```

mod agent;
mod code;
mod device_copy;
mod error;
mod memory;
mod queue;
mod runtime;
mod signal;
mod table;

pub use agent::GpuAgent;
pub use code::{CodeStorage, ExecutableCode, KernelSymbol};
pub use error::Error;
pub use memory::{Memory, MemoryKind};
pub use queue::HsaQueue;
pub use runtime::Hsa;
pub use signal::HsaSignal;
pub use table::SavedTable;
