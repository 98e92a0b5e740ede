//! HSA API-table hooks, packet rewriting and completion

mod agent;
mod application_queues;
mod code_objects;
mod device;
mod engine;
mod error;
#[cfg(not(loom))]
mod fault;
#[cfg(loom)]
pub mod fault;
mod flight;
mod front;
mod hsa_device;
mod interceptor;
mod packets;
mod patch;
mod program_memory;
mod queue;
mod reaper;
mod rewrite;
mod runtime_queue;
mod serializer;
mod snapshot;
mod subscribers;
mod table;
mod technique;
mod thread_mark;
mod times;
mod transition;

pub use code_objects::{CodeObject, CodeObjectListener, Kernel};
pub use device::{Device, Signal, SignalKind};
pub use engine::{Engine, QueueHandle};
pub use error::Error;
pub use hsa_device::HsaDevice;
pub use interceptor::{Interceptor, Options};
pub use program_memory::ProgramMemory;
pub use technique::Technique;
