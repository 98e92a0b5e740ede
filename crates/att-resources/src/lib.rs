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

//! # Field reports
//!
//! What users of such tools reported, and the test that holds this crate to it (`services` and the others are its test
//! programs, `suite` that of `wavescope-tests`).
//!
//! | report | here |
//! |---|---|
//! | a trace that starts before the runtime is there is dropped, or hangs the GPU (rocm-systems 8007, 8943) | a service is made from an agent of the runtime's table, so none can start before it; all sizes are registered before the first starts: `owner_setup` |
//! | the traced compute unit is harvested, or gets no wave (rocm-systems 1336) | the trace is whole and has no wave in detail: `on_software_gpu::trace_of_a_harvested_unit_is_whole_and_has_no_wave_in_detail` |
//! | overlapping contexts (rocm-systems 9934, 11831) | `services::device::contexts_conflict_exactly_where_their_agents_intersect`, `owner_traces::second_context_is_refused_at_once_and_named`, `loom_owner::second_context_is_refused_while_the_first_is_active` |
//! | a buffer is written while its consumer reads it (rocm-systems 3233, 8144, 10954, 9954) | `loom_owner::stop_retires_and_data_are_copied_before_the_next_begin`, `services::ending::slow_client_gets_every_chunk_whole_and_in_order`, `owner_traces::dispatch_that_ran_before_the_slot_was_copied_is_lost_not_mixed` |
//! | control bits that should not be set (rocm-systems 9092) | the reviewed table in `wavescope-aql-profile`: `control_words` |
//! | tracing hangs the GPU (tinygrad 9278) | `on_software_gpu::engine_that_stays_busy_is_an_error_in_time_and_leaves_the_application_alone`, `suite::faults::tracing_on_a_queue_that_hangs_ends_with_a_named_error_and_keeps_the_slot` |
//! | memory grows with contexts | `services::contexts_of_different_sizes_share_one_queue_and_one_slot` |

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
