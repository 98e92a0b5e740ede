//! Why a trace, or its resources, could not be had.

use std::time::Duration;

use wavescope_core::{AgentId, Conflict, ContextId, InterceptionError};

use crate::{BufferId, DeviceError, Need, TraceId};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A need that grows what is already allocated: register every context before the first one acquires.
    #[error(
        "{context} needs {} buffers of {} bytes on {agent}, whose slots were already made smaller",
        need.buffers.max(1), need.buffer_bytes
    )]
    GrowthRefused {
        /// The late context.
        context: ContextId,
        /// The agent.
        agent: AgentId,
        /// What it needs.
        need: Need,
    },
    /// The runtime's handle of the agent is not the one of the first registration.
    #[error("{agent} was registered as {registered:#x} and is now {given:#x}")]
    HandleChanged {
        /// The agent.
        agent: AgentId,
        /// The first handle.
        registered: u64,
        /// The one given now.
        given: u64,
    },
    /// Nobody said what the context needs.
    #[error("{context} did not register for {agent}")]
    NotRegistered {
        /// The context.
        context: ContextId,
        /// The agent.
        agent: AgentId,
    },
    /// The context holds no lease.
    #[error("{context} holds no lease on {agent}")]
    NotLeased {
        /// The context.
        context: ContextId,
        /// The agent.
        agent: AgentId,
    },
    /// A buffer beyond those that were registered.
    #[error("{agent} has no {buffer}")]
    NoSuchBuffer {
        /// The agent.
        agent: AgentId,
        /// The buffer asked for.
        buffer: BufferId,
    },
    /// A request larger than its buffer.
    #[error("{context} wants {wanted} bytes of {buffer} on {agent}, which has {size}")]
    BufferTooSmall {
        /// The context.
        context: ContextId,
        /// The agent.
        agent: AgentId,
        /// The buffer.
        buffer: BufferId,
        /// Bytes asked for.
        wanted: u64,
        /// Bytes it has.
        size: u64,
    },
    /// Another context is tracing the agent: stop it first.
    #[error("{contender} cannot trace {agent}: {holder} is tracing it")]
    Busy {
        /// The agent.
        agent: AgentId,
        /// The context that traces.
        holder: ContextId,
        /// The refused context.
        contender: ContextId,
    },
    /// A trace of a context that did not claim the agent first.
    #[error("{context} has not claimed {agent}")]
    NotClaimed {
        /// The context.
        context: ContextId,
        /// The agent.
        agent: AgentId,
    },
    /// No such trace is in progress.
    #[error("{trace} is not in progress on {agent}")]
    UnknownTrace {
        /// The agent.
        agent: AgentId,
        /// The trace.
        trace: TraceId,
    },
    /// The trace was stopped before it started.
    #[error("{trace} on {agent} was stopped before it started")]
    Cancelled {
        /// The agent.
        agent: AgentId,
        /// The trace.
        trace: TraceId,
    },
    /// More traces than the owner has places for.
    #[error("{in_use} traces are in flight on {agent}, and no more fit")]
    TooManyTraces {
        /// The agent.
        agent: AgentId,
        /// Traces in flight.
        in_use: usize,
    },
    /// A batch that never fits the submission queue.
    #[error("{packets} packets do not fit the submission queue of {agent}, which has {size}")]
    BatchTooLarge {
        /// The agent.
        agent: AgentId,
        /// Packets of the batch.
        packets: usize,
        /// Packets of the queue.
        size: usize,
    },
    /// The GPU did not answer; nothing more is traced on this agent, and memory it may write is kept.
    #[error("{agent} did not answer within {waited:?}")]
    AgentSilent {
        /// The agent.
        agent: AgentId,
        /// How long was waited.
        waited: Duration,
    },
    /// Dispatches of the context did not drain; they keep their lease.
    #[error("{in_flight} traces of {context} on {agent} did not end within {waited:?}")]
    DrainTimedOut {
        /// The context.
        context: ContextId,
        /// The agent.
        agent: AgentId,
        /// Traces that have not ended.
        in_flight: usize,
        /// How long was waited.
        waited: Duration,
    },
    /// A stop of the service failed, and it holds everything still: stop it again.
    #[error("{context} was not stopped to the end: stop it again")]
    NotStopped {
        /// The context.
        context: ContextId,
    },
    /// Contexts still hold leases: drop them, then shut down again.
    #[error("{agent} is still leased by {}", names(contexts))]
    StillLeased {
        /// The agent.
        agent: AgentId,
        /// Who holds leases.
        contexts: Vec<ContextId>,
    },
    /// The owner is shutting down or has ended.
    #[error("the trace owner of {0} is shut down")]
    ShutDown(AgentId),
    /// The runtime refused.
    #[error("{agent}: {source}")]
    Device {
        /// The agent.
        agent: AgentId,
        /// What it said.
        #[source]
        source: DeviceError,
    },
    /// An agent that the services were not told about.
    #[error("{0} is not known")]
    UnknownAgent(AgentId),
    /// A code object or trace needs a packet program that could not be made.
    #[error(transparent)]
    Program(#[from] wavescope_aql_profile::Error),
    /// Another context holds what this one claims.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// Interception refused, its dispatches did not retire in time, or a decision callback did not return.
    #[error(transparent)]
    Interception(#[from] InterceptionError),
    /// An actor is gone or silent.
    #[error(transparent)]
    Core(#[from] wavescope_core::Error),
}

fn names(contexts: &[ContextId]) -> String {
    contexts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
