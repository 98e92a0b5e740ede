//! What the owner is told, and what it wants done.

use std::sync::Arc;

use wavescope_core::actor::Reply;
use wavescope_core::{AqlPacket, ContextId, LossReason, QueueId};

use crate::{BufferId, DeviceError, Error, LeaseTerms, Need, TraceId};

/// A context's face to the owner. Called on the owner's thread: hand over and return, never wait.
pub trait TraceClient: Send + Sync {
    /// The stop packet of `trace` retired, so its data may be read: a worker does, and reports
    /// [`Message::SlotCopied`]. Or the trace was lost: then nothing may be read and nothing is reported.
    fn ended(&self, trace: TraceId, outcome: Result<(), LossReason>);

    /// The slot is free again: the next dispatch of the context may run.
    fn release(&self, trace: TraceId);
}

/// How a trace reaches the GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Around a dispatch, on the application's queue. Interception lets one run at a time.
    Dispatch {
        /// The queue.
        queue: QueueId,
    },
    /// On the owner's own queue, around whatever runs meanwhile.
    Device {
        /// Starts it: the start packet, then markers.
        start: Vec<AqlPacket>,
        /// Stops it.
        stop: Vec<AqlPacket>,
    },
}

/// The answer to a request that only succeeds or fails.
pub type Done = Reply<Result<(), Error>>;

/// One message to the owner. All of them share one mailbox: their order matters.
pub enum Message {
    /// A context says what it needs. Final before the first [`Acquire`](Self::Acquire).
    Register {
        /// The context.
        context: ContextId,
        /// The runtime's handle of the agent, which must not change.
        agent_handle: u64,
        /// Its need.
        need: Need,
        /// Whether the need can be met.
        reply: Done,
    },
    /// A context takes a lease.
    Acquire {
        /// The context.
        context: ContextId,
        /// The runtime's handle of the agent.
        agent_handle: u64,
        /// Whom to tell about the context's traces.
        client: Arc<dyn TraceClient>,
        /// What the lease comes with.
        reply: Reply<Result<LeaseTerms, Error>>,
    },
    /// A context wants the address of a shared buffer.
    Resolve {
        /// The context.
        context: ContextId,
        /// The buffer.
        buffer: BufferId,
        /// Bytes that it needs of it.
        bytes: u64,
        /// The address, the same for every context.
        reply: Reply<Result<u64, Error>>,
    },
    /// A context starts: it wants to be the one that traces the agent.
    Claim {
        /// The context.
        context: ContextId,
        /// Refused at once while another one traces.
        reply: Done,
    },
    /// A trace begins. For a dispatch this precedes its packets.
    Begin {
        /// The trace.
        trace: TraceId,
        /// How it reaches the GPU.
        source: Source,
        /// Answered when the start packets retired, or, for a dispatch, at once.
        reply: Option<Done>,
    },
    /// More packets for a device trace that runs, like code-object markers.
    Insert {
        /// The trace.
        trace: TraceId,
        /// The packets.
        packets: Vec<AqlPacket>,
        /// Answered when they retired.
        reply: Done,
    },
    /// A device trace shall stop.
    Stop {
        /// The trace.
        trace: TraceId,
        /// Answered when its data were copied.
        reply: Done,
    },
    /// The stop packet of a dispatch is in its queue.
    StopSubmitted {
        /// The trace.
        trace: TraceId,
    },
    /// The stop packet of a dispatch retired, or never will.
    StopRetired {
        /// The trace.
        trace: TraceId,
        /// What became of it.
        outcome: Result<(), LossReason>,
    },
    /// A worker has copied the trace's data out of the slot.
    SlotCopied {
        /// The trace.
        trace: TraceId,
    },
    /// Interception has nothing of the context in flight on a queue.
    Drained {
        /// The context.
        context: ContextId,
        /// The queue.
        queue: QueueId,
    },
    /// A context stops. No further [`Begin`](Self::Begin) comes: its hook was quiesced.
    Unhook {
        /// The context.
        context: ContextId,
        /// Answered when nothing of it is in flight any more; then the hook may go for good.
        reply: Done,
    },
    /// A lease was dropped.
    LeaseDropped {
        /// The context.
        context: ContextId,
    },
    /// Everything ends.
    Shutdown {
        /// Answered when the resources are released.
        reply: Reply<Result<ShutdownReport, Error>>,
    },
    /// What a [`Device`](crate::Device) reports.
    Device(DeviceEvent),
}

/// Names one batch on the submission queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubmissionId(pub u64);

/// The outcome of an effect on the device.
#[derive(Debug)]
pub enum DeviceEvent {
    /// The submission queue exists, or could not be had.
    QueueCreated(Result<(), DeviceError>),
    /// A buffer was allocated, or could not be.
    Allocated {
        /// The buffer.
        buffer: BufferId,
        /// The raw address.
        result: Result<u64, DeviceError>,
    },
    /// The runtime did not take a batch.
    SubmissionRefused {
        /// The batch.
        submission: SubmissionId,
        /// Why.
        error: DeviceError,
    },
    /// The last packet of a batch retired, or never will.
    SubmissionEnded {
        /// The batch.
        submission: SubmissionId,
        /// Whether it retired.
        result: Result<(), DeviceError>,
    },
    /// The time allowed to the GPU has passed.
    Expired,
}

/// What a shutdown did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShutdownReport {
    /// Traces that were in progress.
    pub cut_short: Vec<TraceId>,
    /// Buffers that the GPU may still write and that are kept for good.
    pub leaked: Vec<BufferId>,
}

/// What the owner wants done, in this order.
pub enum Effect {
    /// Create the submission queue and report.
    CreateQueue {
        /// Its size.
        packets: usize,
    },
    /// Allocate a buffer and report.
    Allocate {
        /// The buffer.
        buffer: BufferId,
        /// Bytes, with the room that alignment and cache flushes need.
        bytes: u64,
    },
    /// Enqueue packets on the submission queue; report when they retired.
    Submit {
        /// Names them.
        submission: SubmissionId,
        /// The packets.
        packets: Vec<AqlPacket>,
    },
    /// Tell a context that its trace ended.
    Ended {
        /// The context's face.
        client: Arc<dyn TraceClient>,
        /// The trace.
        trace: TraceId,
        /// Whether its data may be read.
        outcome: Result<(), LossReason>,
    },
    /// Tell a context that its next dispatch may run.
    Release {
        /// The context's face.
        client: Arc<dyn TraceClient>,
        /// The trace whose data were copied.
        trace: TraceId,
    },
    /// Answer a request.
    Answer(Answer),
    /// Destroy the submission queue.
    DestroyQueue,
    /// Free a buffer.
    Free {
        /// The buffer.
        buffer: BufferId,
        /// Its raw address.
        address: u64,
    },
    /// Keep a buffer for good.
    Leak {
        /// The buffer.
        buffer: BufferId,
        /// Its raw address.
        address: u64,
    },
    /// Report [`DeviceEvent::Expired`] when the time allowed to the GPU has passed from now on.
    ArmTimer,
    /// Do not.
    DisarmTimer,
    /// Somebody broke the protocol: log it.
    Report(Violation),
    /// End the actor.
    Exit,
}

/// An answer on its way.
pub enum Answer {
    /// To a request that succeeds or fails.
    Done(Done, Result<(), Error>),
    /// To an [`Message::Acquire`].
    Terms(Reply<Result<LeaseTerms, Error>>, Result<LeaseTerms, Error>),
    /// To a [`Message::Resolve`].
    Address(Reply<Result<u64, Error>>, Result<u64, Error>),
    /// To a [`Message::Shutdown`].
    Report(Reply<Result<ShutdownReport, Error>>, Result<ShutdownReport, Error>),
}

impl Answer {
    /// Sends it.
    pub fn send(self) {
        match self {
            Self::Done(reply, result) => reply.send(result),
            Self::Terms(reply, result) => reply.send(result),
            Self::Address(reply, result) => reply.send(result),
            Self::Report(reply, result) => reply.send(result),
        }
    }
}

/// A message that a correct client or interceptor never sends. The state did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// An event about a trace that is not in progress, or not at this point.
    #[error("{event} for {trace}, which is not waiting for it")]
    Unexpected {
        /// The event.
        event: &'static str,
        /// The trace.
        trace: TraceId,
    },
    /// A trace of a context that does not hold the agent, or after its unhook.
    #[error("{0} began without a claim")]
    Unclaimed(TraceId),
    /// A queue said to be drained with work in flight.
    #[error("{queue} was said to be drained with {in_flight} traces of {context} in flight")]
    NotDrained {
        /// The queue.
        queue: QueueId,
        /// The context.
        context: ContextId,
        /// Its traces on that queue.
        in_flight: usize,
    },
    /// A trace retired while another one's data were in the slot: interception let it run too early.
    #[error("{0} ran before the slot was copied; its data are lost")]
    Overrun(TraceId),
    /// A lease was given back while traces are in progress; it is kept until they end.
    #[error("{context} gave a lease back with {in_flight} traces in flight")]
    LeaseInUse {
        /// The context.
        context: ContextId,
        /// Its traces.
        in_flight: usize,
    },
    /// More leases were given back than taken.
    #[error("{0} gave back a lease that it does not hold")]
    LeaseUnderflow(ContextId),
}
