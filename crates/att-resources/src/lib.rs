//! The per-agent owner actor of thread-trace resources, and the trace services on top of it.
//!
//! Heavy resources (submission queue, GPU output slots, host staging) exist once per GPU agent, whatever the
//! number of contexts. [`Owner`] is the pure state machine that sequences their use, [`OwnerActor`] its thread,
//! [`AgentOwner`] the handle, [`Lease`] a context's share, and [`Device`] the seam to the GPU ([`HsaDevice`] in
//! products). [`DispatchTrace`] traces the dispatches that a callback chooses, [`DeviceTrace`]
//! everything on an agent between a start and a stop.
//!
//! This crate must not know counters.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//! use wavescope_aql_profile::{AgentShape, Builtin, Memory, TraceConfig, TraceParameter};
//! use wavescope_att_resources::{
//!     AgentOwner, Decision, Delivery, DispatchTrace, DispatchTraceSetup, HsaDevice, Limits, TracedAgent,
//! };
//! use wavescope_core::{AgentId, ClaimTable, ContextId, Interception, Overflow, record_stream};
//! use wavescope_hsa::Hsa;
//!
//! # fn run(hsa: Hsa, agent_handle: u64, interception: Arc<dyn Interception>, memory: Arc<dyn Memory>)
//! # -> Result<(), wavescope_att_resources::Error> {
//! let device = HsaDevice::new(hsa, AgentId(0));
//! let slots = device.slots();
//! let owner = AgentOwner::new(AgentId(0), Box::new(device), Limits::default());
//! let mut parameters = vec![TraceParameter::target(1), TraceParameter::se_mask(1)];
//! parameters.extend(TraceParameter::buffer_size(64 << 20));
//! let shape = AgentShape::new("gfx942", 8, 32, 304, 1);
//! let config = TraceConfig::from(parameters);
//! let (sink, chunks) = record_stream(64, Overflow::Block);
//! let trace = DispatchTrace::new(DispatchTraceSetup {
//!     context: ContextId(1),
//!     agents: vec![TracedAgent { owner, agent_handle, shape, config, memory, slots }],
//!     programs: Arc::new(Builtin),
//!     interception,
//!     claims: Arc::new(ClaimTable::new()),
//!     decide: Arc::new(|dispatch| Decision::StartAndStop { user_data: dispatch.id.0 }),
//!     serialize_all: false,
//!     delivery: Delivery::Stream(sink),
//! })?;
//! trace.start()?;
//! // ... the application dispatches kernels ...
//! trace.stop(Duration::from_secs(10))?;
//! while let Some(chunk) = chunks.try_recv() {
//!     println!("engine {}: {} bytes", chunk.shader_engine, chunk.data.len());
//! }
//! # Ok(())
//! # }
//! ```

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
pub use service::{
    Decide, Decision, Delivery, DeviceTrace, DeviceTraceSetup, DispatchTrace, DispatchTraceSetup,
    TraceSummary, TracedAgent,
};
pub use slot_memory::SlotMemory;
