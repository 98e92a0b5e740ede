//! The owner of an agent's trace resources: a pure state machine.
//!
//! [`Owner::step`] takes a message and returns effects; it has no thread, clock or HSA call in it. An actor
//! ([`OwnerActor`](crate::OwnerActor)) feeds it from a mailbox and performs the effects.
//!
//! # State
//!
//! *Contexts* register, acquire leases, and one of them *claims* the agent while it is started. Registered sizes
//! may grow until the first lease; from then on buffers may exist, and growth is refused. The claim of a context
//! goes with its last lease, which counts until its last trace has ended.
//!
//! *Traces* of the claiming context move through stages. Only one trace of the device runs at a time; dispatches
//! wait on the GPU, where interception lets the next one run when the owner releases the one before.
//!
//! ```text
//! dispatch:  Begin ──▶ Running ─StopSubmitted─▶ Stopping ─StopRetired─▶ Copying ─SlotCopied─▶ released
//! device:    Begin ──▶ Waiting ─(slot free: submit start)─▶ Starting ─(retired)─▶ Running
//!                      ─Stop (submit stop)─▶ Stopping ─(retired)─▶ Copying ─SlotCopied─▶ released
//! ```
//!
//! A lost trace leaves from any stage: its data are not read. If the GPU may still write its slot, the agent is
//! *silent*: nothing more starts on it and its output slots are leaked at the end.
//!
//! *Submissions* to the one queue go one at a time: the next is enqueued when the one before retired, so
//! two batches never overrun the queue.
//!
//! *Ending.* [`Message::Unhook`] is answered when no trace of the context is left and each of its queues was
//! reported drained. [`Message::Shutdown`] admits nothing new, stops device traces, waits for the rest, wants
//! all leases back, destroys the queue, and then frees the buffers. Each wait on the GPU is bounded by the timer.

mod ending;
mod message;
mod setup;
mod slots;
mod submission;
mod trace;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use wavescope_core::actor::Reply;
use wavescope_core::{AgentId, ContextId, QueueId};

pub use message::{
    Answer, DeviceEvent, Done, Effect, Message, ShutdownReport, Source, SubmissionId, TraceClient, Violation,
};

use crate::fault::{self, Fault};
use crate::{BufferId, Error, LeaseTerms, Need, TraceId};
use slots::Slots;
use submission::Submissions;
use trace::Trace;

/// Packets of the one submission queue.
pub const QUEUE_PACKETS: usize = 512;

/// What the owner knows about one agent.
pub struct Owner {
    agent: AgentId,
    /// How long the GPU may take; only named in errors here, the clock is the actor's.
    patience: Duration,
    /// The runtime's handle of the agent, from the first registration.
    agent_handle: Option<u64>,
    contexts: BTreeMap<ContextId, Context>,
    slots: Slots,
    /// A lease was given: sizes are final.
    is_final: bool,
    queue: Queue,
    /// Requests that wait for the device, which answers before the next message.
    acquiring: Vec<Acquiring>,
    resolving: Option<(BufferId, Reply<Result<u64, Error>>)>,
    claim: Option<ContextId>,
    /// Contexts that wait until nothing of them is in flight.
    unhooks: Vec<(ContextId, Done)>,
    /// Traces in progress, in the order in which they began.
    traces: Vec<Trace>,
    /// The trace whose data lie in the slot.
    in_slot: Option<TraceId>,
    submissions: Submissions,
    silent: Silent,
    timer_runs: bool,
    ending: Ending,
}

/// A request for a lease that waits for the queue.
struct Acquiring {
    context: ContextId,
    client: Arc<dyn TraceClient>,
    reply: Reply<Result<LeaseTerms, Error>>,
}

/// What the owner knows about a context.
struct Context {
    need: Need,
    leases: u32,
    /// Leases that were dropped while traces were in progress.
    returned_early: u32,
    client: Option<Arc<dyn TraceClient>>,
    /// Queues that carried its dispatches since they were last drained.
    queues: Vec<QueueId>,
}

/// Where the GPU did not answer and may still write the output slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Silent {
    /// On the owner's queue: until that is destroyed.
    own_queue: bool,
    /// On an application's queue, or a worker did not finish: for good.
    application_queue: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Absent,
    Creating,
    Present,
}

enum Ending {
    Open,
    Closing { replies: Vec<Reply<Result<ShutdownReport, Error>>>, report: ShutdownReport },
    Closed,
}

impl Owner {
    /// An owner that holds nothing yet. `patience` is how long the GPU may take before it counts as silent.
    pub fn new(agent: AgentId, patience: Duration) -> Self {
        Self {
            agent,
            patience,
            agent_handle: None,
            contexts: BTreeMap::new(),
            slots: Slots::default(),
            is_final: false,
            queue: Queue::Absent,
            acquiring: Vec::new(),
            resolving: None,
            claim: None,
            unhooks: Vec::new(),
            traces: Vec::new(),
            in_slot: None,
            submissions: Submissions::default(),
            silent: Silent::default(),
            timer_runs: false,
            ending: Ending::Open,
        }
    }

    /// The agent.
    pub fn agent(&self) -> AgentId {
        self.agent
    }

    /// How long the GPU may take.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Handles one message.
    pub fn step(&mut self, message: Message) -> Vec<Effect> {
        let mut effects = Vec::new();
        let progress = self.handle(message, &mut effects);
        self.settle_unhooks(&mut effects);
        if !(fault::is(Fault::ShutdownForgotten) && progress) {
            self.settle_shutdown(&mut effects);
        }
        self.settle_timer(progress, &mut effects);
        effects
    }

    /// Returns whether the GPU or a worker gave a sign of life.
    fn handle(&mut self, message: Message, effects: &mut Vec<Effect>) -> bool {
        match message {
            Message::Register { context, agent_handle, need, reply } => {
                let result = self.register(context, agent_handle, need);
                effects.push(Effect::Answer(Answer::Done(reply, result)));
            }
            Message::Acquire { context, agent_handle, client, reply } => {
                self.acquire(context, agent_handle, client, reply, effects);
            }
            Message::Resolve { context, buffer, bytes, reply } => {
                self.resolve(context, buffer, bytes, reply, effects);
            }
            Message::Claim { context, reply } => {
                let result = self.claim(context);
                effects.push(Effect::Answer(Answer::Done(reply, result)));
            }
            Message::Begin { trace, source, reply } => self.begin(trace, source, reply, effects),
            Message::Insert { trace, packets, reply } => self.insert(trace, packets, reply, effects),
            Message::Stop { trace, reply } => self.stop(trace, reply, effects),
            Message::StopSubmitted { trace } => self.stop_submitted(trace, effects),
            Message::StopRetired { trace, outcome } => {
                self.stop_retired(trace, outcome, effects);
                return true;
            }
            Message::SlotCopied { trace } => {
                self.slot_copied(trace, effects);
                return true;
            }
            Message::Drained { context, queue } => self.drained(context, queue, effects),
            Message::Unhook { context, reply } => self.unhook(context, reply, effects),
            Message::LeaseDropped { context } => self.lease_dropped(context, effects),
            Message::Shutdown { reply } => self.shutdown(reply, effects),
            Message::Device(event) => return self.device_event(event, effects),
        }
        false
    }

    fn device_event(&mut self, event: DeviceEvent, effects: &mut Vec<Effect>) -> bool {
        match event {
            DeviceEvent::QueueCreated(result) => self.queue_created(result, effects),
            DeviceEvent::Allocated { buffer, result } => self.allocated(buffer, result, effects),
            DeviceEvent::SubmissionRefused { submission, error } => {
                self.submission_refused(submission, error, effects);
            }
            DeviceEvent::SubmissionEnded { submission, result } => {
                self.submission_ended(submission, result, effects);
                return true;
            }
            DeviceEvent::Expired => self.expired(effects),
        }
        false
    }

    fn is_open(&self) -> bool {
        matches!(self.ending, Ending::Open)
    }

    fn client(&self, context: ContextId) -> Option<Arc<dyn TraceClient>> {
        self.contexts.get(&context)?.client.clone()
    }

    fn traces_of(&self, context: ContextId) -> usize {
        self.traces.iter().filter(|trace| trace.id.context == context).count()
    }

    fn is_silent(&self) -> bool {
        self.silent.own_queue || self.silent.application_queue
    }

    fn silence(&self) -> Error {
        Error::AgentSilent { agent: self.agent, waited: self.patience }
    }
}

fn answer(reply: Option<Done>, result: Result<(), Error>, effects: &mut Vec<Effect>) {
    if let Some(reply) = reply {
        effects.push(Effect::Answer(Answer::Done(reply, result)));
    }
}

/// Whether `trace` is the one meant.
fn is(trace: TraceId) -> impl Fn(&Trace) -> bool {
    move |candidate| candidate.id == trace
}
