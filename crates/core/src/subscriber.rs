//! The seam between interception and the services that measure dispatches.
//!
//! The interceptor asks a [`DispatchSubscriber`] for a packet program on the enqueuing thread and publishes
//! [`DispatchEvent`]s to it over a bounded channel. The services reach the interceptor only through
//! [`Interception`], so a test can stand in for either side.

use std::sync::Arc;
use std::time::Duration;

use crate::{AgentId, AqlPacket, ContextId, Dispatch, DispatchEvent, QueueId, SubscriptionId, Token};

/// Which service a subscriber is. The order is the order in which programs are nested around a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Service {
    /// Hardware counters for each dispatch.
    DispatchCounting,
    /// Thread trace of chosen dispatches.
    DispatchTrace,
}

/// How long an instrumented dispatch keeps the agent to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Until its last packet retired.
    UntilRetired,
    /// Until the subscriber calls [`Interception::return_grant`]: its output is shared and must be copied first.
    UntilReturned,
}

/// A subscriber's answer for one dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Not this one: no packets. It is serialized like the others (`Subscription::serialize`).
    Decline,
    /// Not this one, and it need not be serialized either.
    Ignore,
    /// Measure it with the packets put into the [`ProgramSink`].
    Instrument {
        /// Names the program instance in the events that follow.
        token: Token,
        /// When the agent may go to the next dispatch.
        grant: Grant,
    },
}

/// Collects the packets around one kernel. The vectors are scratch space of the queue: no allocation once warm.
#[derive(Debug)]
pub struct ProgramSink<'a> {
    before: &'a mut Vec<AqlPacket>,
    after: &'a mut Vec<AqlPacket>,
}

impl<'a> ProgramSink<'a> {
    /// Wraps the queue's scratch vectors.
    pub fn new(before: &'a mut Vec<AqlPacket>, after: &'a mut Vec<AqlPacket>) -> Self {
        Self { before, after }
    }

    /// Adds a packet that runs before the kernel. Its header (barrier, fences) is the subscriber's choice.
    pub fn before(&mut self, packet: &AqlPacket) {
        self.before.push(*packet);
    }

    /// Adds a packet that runs after the kernel; interception gives the last one its completion signal.
    pub fn after(&mut self, packet: &AqlPacket) {
        self.after.push(*packet);
    }
}

/// A service that measures dispatches.
pub trait DispatchSubscriber: Send + Sync {
    /// Chooses what to collect for `dispatch`, before it is enqueued.
    ///
    /// Runs on the enqueuing thread, inside the runtime's write hook: it must not block, wait for the GPU, or
    /// (once warm) allocate, and no lock that another agent's queue may hold is taken. User dispatch callbacks
    /// run here.
    fn enqueue(&self, dispatch: &Dispatch, sink: &mut ProgramSink<'_>) -> Answer;

    /// Takes an event about a dispatch it instrumented. Called by interception's own thread (`Retired`) or the
    /// enqueuing thread (`Dispatched`); an implementation only passes it on to its actor's mailbox, in which
    /// each token owns its places, so that this never blocks.
    fn publish(&self, event: DispatchEvent);
}

/// A subscriber with what interception has to know about it.
#[derive(Clone)]
pub struct Subscription {
    /// The context it works for, named in conflicts.
    pub context: ContextId,
    /// Which service it is.
    pub service: Service,
    /// The agents it measures: queues of others are neither instrumented nor serialized. Empty means all.
    pub agents: Vec<AgentId>,
    /// Whether kernels of different queues of these agents must not overlap while it is subscribed.
    pub serialize: bool,
    /// The service itself.
    pub subscriber: Arc<dyn DispatchSubscriber>,
}

/// Why interception refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterceptionError {
    /// The subscription is not there any more.
    #[error("{0} is not known to the interceptor")]
    UnknownSubscription(SubscriptionId),
    /// Dispatches did not retire in the time allowed; they stay instrumented and their memory is kept.
    #[error("{in_flight} dispatches of {subscription} did not retire within {timeout:?}")]
    DrainTimedOut {
        /// Whose dispatches.
        subscription: SubscriptionId,
        /// How many are still in flight.
        in_flight: usize,
        /// How long was waited.
        timeout: Duration,
    },
    /// A hook is still inside a callback of the subscriber, which has not returned in the time allowed. It is asked no more
    /// after that; what the callback answers is instrumented when it returns.
    #[error("a callback of {subscription} for {queue} on {agent} did not return within {waited:?}")]
    CallbackBusy {
        /// Whose callback.
        subscription: SubscriptionId,
        /// The queue's agent.
        agent: AgentId,
        /// Whose packets it was called for.
        queue: QueueId,
        /// How long was waited.
        waited: Duration,
    },
    /// The interceptor has been shut down.
    #[error("interception is shut down")]
    ShutDown,
}

/// What services ask of the interceptor.
pub trait Interception: Send + Sync {
    /// Begins to ask `subscription.subscriber` about every dispatch on its agents.
    ///
    /// # Errors
    /// [`InterceptionError::ShutDown`].
    fn subscribe(&self, subscription: Subscription) -> Result<SubscriptionId, InterceptionError>;

    /// Stops asking: returns when no hook is inside [`DispatchSubscriber::enqueue`] of it any more. Dispatches
    /// in flight stay and are published when they retire.
    ///
    /// # Errors
    /// [`InterceptionError::UnknownSubscription`]; [`InterceptionError::CallbackBusy`] if a hook does not leave it in time:
    /// nobody else asks any more, and the call may be repeated.
    fn quiesce(&self, id: SubscriptionId) -> Result<(), InterceptionError>;

    /// Waits until every dispatch that `id` instrumented before this call has retired and was published. Those that are
    /// enqueued meanwhile are not waited for.
    ///
    /// # Errors
    /// [`InterceptionError::UnknownSubscription`]; [`InterceptionError::DrainTimedOut`] when one has not after `timeout`.
    fn settle(&self, id: SubscriptionId, timeout: Duration) -> Result<(), InterceptionError>;

    /// Waits until every dispatch that `id` instrumented has retired.
    ///
    /// # Errors
    /// [`InterceptionError::DrainTimedOut`] when one has not after `timeout`.
    fn drain(&self, id: SubscriptionId, timeout: Duration) -> Result<(), InterceptionError>;

    /// Forgets the subscriber for good and gives back its serialization hold. Call it after
    /// [`quiesce`](Self::quiesce) and [`drain`](Self::drain).
    ///
    /// # Errors
    /// [`InterceptionError::UnknownSubscription`]; [`InterceptionError::CallbackBusy`], and it is forgotten all the same.
    fn unsubscribe(&self, id: SubscriptionId) -> Result<(), InterceptionError>;

    /// Lets the agent go on after a dispatch answered with [`Grant::UntilReturned`]. Unknown tokens are ignored.
    fn return_grant(&self, id: SubscriptionId, token: Token);
}
