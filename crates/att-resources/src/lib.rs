//! The per-agent owner actor of thread-trace resources, and the trace services on top of it.
//!
//! Heavy resources (submission queue, GPU output slots, host staging) exist once per GPU agent, whatever the
//! number of contexts. [`Owner`] is the pure state machine that sequences their use, [`OwnerActor`] its thread,
//! [`Device`] the seam to the GPU.
//!
//! This crate must not know counters.

mod actor;
mod device;
mod error;
#[cfg(loom)]
pub mod fault;
#[cfg(not(loom))]
mod fault;
mod handle;
mod hsa_device;
mod ids;
mod need;
mod owner;
mod service;
mod slot_memory;

pub use actor::OwnerActor;
pub use device::{Completion, Device, DeviceError, SlotReader};
pub use error::Error;
pub use handle::{AgentOwner, Lease, Limits};
pub use hsa_device::{HsaDevice, HsaSlots};
pub use ids::{BufferId, TraceId};
pub use need::{LeaseTerms, Need, SlotSizes};
pub use owner::{
    Answer, DeviceEvent, Done, Effect, Message, Owner, QUEUE_PACKETS, ShutdownReport, Source, SubmissionId,
    TraceClient, Violation,
};
pub use service::{Decide, Decision, Delivery, DispatchTrace, DispatchTraceSetup, TraceSummary, TracedAgent};
pub use slot_memory::SlotMemory;
