//! Interception without the API table: agents, their queues, their subscribers.
//!
//! # Life of a subscription
//!
//! ```text
//!   subscribe ──▶ asked ──quiesce──▶ silent ──drain──▶ (nothing in flight) ──unsubscribe──▶ forgotten
//!                 hold on agents      hold stays                                            hold returned
//! ```
//!
//! Each step builds new snapshots under the registry's lock, swaps them in, and waits for the hooks outside of it: a
//! dispatch callback may itself subscribe or quiesce.

mod registry;

use std::sync::Arc;
use std::time::Duration;

use wavescope_core::sync::atomic::{AtomicU64, Ordering};
use wavescope_core::sync::{Deadline, Mutex};
use wavescope_core::{
    AgentId, AqlPacket, DispatchId, DispatchTimes, Interception, InterceptionError, QueueId, Subscription,
    SubscriptionId, Token,
};

use self::registry::{Registry, Stage};
use crate::Error;
use crate::agent::AgentState;
use crate::device::{Device, Signal};
use crate::fault::{self, Fault};
use crate::kernel_trace::Tracing;
use crate::process::Origin;
use crate::queue::Queue;
use crate::reaper::{LastLook, Reaper};
use crate::serializer::{RunId, Serializer};
use crate::snapshot::Swapped;
use crate::subscribers::{Snapshot, Subscriber};
use crate::thread_mark::{InsideHook, InsideLook};

/// How long to wait for a callback that does not return, unless something else is set.
const CALLBACK_TIMEOUT: Duration = Duration::from_secs(10);

/// Between two looks of a thread that waits for what was enqueued before.
const BETWEEN_LOOKS: Duration = Duration::from_micros(50);

/// Rewrites the packets of the queues that it is told of, for whoever subscribes.
#[derive(Debug)]
pub struct Engine {
    agents: Vec<Arc<AgentState>>,
    reaper: Arc<Reaper>,
    registry: Mutex<Registry>,
    queues: AtomicU64,
    dispatches: Arc<AtomicU64>,
    callback_timeout: Mutex<Duration>,
    origin: Origin,
}

/// An agent whose serialization begins: none of its runs is granted until this is dropped.
struct Begin<'a> {
    agent: &'a Arc<AgentState>,
    from: RunId,
    queues: Vec<Arc<Queue>>,
}

impl<'a> Begin<'a> {
    fn of(agent: &'a Arc<AgentState>) -> Self {
        let from = agent.place(Serializer::hold);
        let begin = Self { agent, from, queues: agent.queues() };
        begin.queues.iter().for_each(|queue| queue.want_mark(from));
        begin
    }
}

impl Drop for Begin<'_> {
    fn drop(&mut self) {
        self.agent.serialize(|machine| machine.end_hold(self.from));
    }
}

/// A queue of the application that the engine rewrites.
#[derive(Clone, Debug)]
pub struct QueueHandle {
    pub(crate) queue: Arc<Queue>,
}

impl QueueHandle {
    /// The queue's number.
    pub fn id(&self) -> QueueId {
        self.queue.id
    }

    /// The agent that consumes it.
    pub fn agent(&self) -> AgentId {
        self.queue.agent.id
    }

    /// Rewrites a batch whose first packet has index `first` in the application's queue. `write` gets the result in one
    /// call; it is called also if nobody listens, with `packets` itself.
    pub fn rewrite(&self, packets: &[AqlPacket], first: u64, mut write: impl FnMut(&[AqlPacket])) {
        self.queue.rewrite(packets, first, &mut write);
    }

    /// Writes a mark if one was asked for; whoever feeds the queue calls this when it was nudged, between batches.
    pub fn mark(&self, mut write: impl FnMut(&[AqlPacket])) {
        self.queue.mark(&mut write);
    }

    /// `nudge` makes whoever feeds the queue call [`mark`](Self::mark) soon; it says whether that will happen.
    pub fn set_nudge(&self, nudge: impl Fn() -> bool + Send + Sync + 'static) {
        self.queue.set_nudge(Arc::new(nudge));
    }

    /// Waits until nothing that was instrumented on the queue is in flight; `false` if `timeout` passed before.
    pub fn wait_empty(&self, timeout: Duration) -> bool {
        self.wait_empty_until(Deadline::after(timeout), &LastLook::default())
    }

    pub(crate) fn wait_empty_until(&self, deadline: Deadline, last_look: &LastLook) -> bool {
        // Inside a hook the wait could be for the very batch that this thread has yet to hand over.
        let deadline = if InsideHook::is_current() { Deadline::after(Duration::ZERO) } else { deadline };
        self.queue.wait_empty(deadline)
            || (last_look.take(&self.queue.reaper) && self.queue.flight.lock().is_empty())
    }

    /// The runtime reported an error and stopped the queue: what is in flight on it is lost.
    pub fn failed(&self) {
        self.queue.fail();
        self.queue.reaper.wake();
    }
}

impl Engine {
    /// An engine for these agents.
    pub fn new(device: Arc<dyn Device>, agents: impl IntoIterator<Item = AgentId>) -> Self {
        let agents: Vec<_> =
            agents.into_iter().map(|id| Arc::new(AgentState::new(id, Arc::clone(&device)))).collect();
        Self {
            registry: Mutex::new(Registry::new(agents.len())),
            agents,
            reaper: Arc::new(Reaper::new(device)),
            queues: AtomicU64::new(0),
            dispatches: Arc::new(AtomicU64::new(0)),
            callback_timeout: Mutex::new(CALLBACK_TIMEOUT),
            origin: Origin::here(),
        }
    }

    /// Sets how long a kernel of a serialized agent may keep those of other queues waiting; then they run beside it. Kernels
    /// that spin on each other across queues cannot be run one at a time.
    pub fn set_watchdog(&self, patience: Duration) {
        self.reaper.set_patience(patience);
    }

    /// How many dispatches of a subscription are in flight.
    pub(crate) fn in_flight(&self, id: SubscriptionId) -> usize {
        self.find(id).map_or(0, |subscriber| subscriber.in_flight())
    }

    /// Says whether each dispatch retires with a barrier packet of its own instead of the last packet of its programs: for
    /// a GPU on which vendor packets that share a completion signal do not all decrement it. One packet more for each.
    pub fn set_retire_by_barrier(&self, by_barrier: bool) {
        self.agents.iter().for_each(|agent| agent.retire_by_barrier.store(by_barrier, Ordering::Relaxed));
    }

    /// Sets how long a queue of a serialized agent may go on with further kernels while other queues wait for it; 0 makes
    /// queues that are fed alike take turns batch by batch. Each hand-over takes time in which the agent is idle.
    pub fn set_turn(&self, turn: Duration) {
        self.agents.iter().for_each(|agent| agent.set_turn(turn));
    }

    /// Sets how long subscribing, [`quiesce`](Interception::quiesce) and [`unsubscribe`](Interception::unsubscribe) wait for
    /// callbacks of a subscriber that do not return.
    pub fn set_callback_timeout(&self, timeout: Duration) {
        *self.callback_timeout.lock() = timeout;
    }

    /// One more queue that nobody sees may run kernels on `agent`: it is blind, and records of its kernels say so.
    pub fn unseen_queue_came(&self, agent: AgentId) {
        self.agents.iter().filter(|state| state.id == agent).for_each(|state| state.unseen_queue_came());
    }

    /// A queue that nobody saw is gone.
    pub fn unseen_queue_left(&self, agent: AgentId) {
        self.agents.iter().filter(|state| state.id == agent).for_each(|state| state.unseen_queue_left());
    }

    /// Adds a queue that the application created on `agent`; `None` if the agent is not one of ours.
    pub fn add_queue(&self, agent: AgentId) -> Option<QueueHandle> {
        let agent = self.agents.iter().find(|state| state.id == agent)?;
        let id = QueueId(self.queues.fetch_add(1, Ordering::Relaxed) + 1);
        Some(QueueHandle { queue: Queue::new(id, agent, &self.dispatches, &self.reaper) })
    }

    /// The runtime destroyed the queue: what is in flight on it is lost, and no packet names its signals any more.
    pub fn queue_destroyed(&self, handle: &QueueHandle) {
        let queue = &handle.queue;
        queue.agent.remove_queue(queue);
        let watched = queue.mark_destroyed();
        if fault::is(Fault::SignalsFreedByDestroyer) {
            queue.free_signals();
        }
        if !watched {
            queue.release();
        } else if !self.reaper.wake() {
            self.reaper.release_inline(queue);
        }
    }

    /// Tells a tracer of every kernel on its agents from now on. It ends like a subscription: `quiesce`, `drain`,
    /// `unsubscribe`.
    ///
    /// # Errors
    /// [`InterceptionError::ShutDown`].
    pub fn trace(&self, tracing: Tracing) -> Result<SubscriptionId, InterceptionError> {
        self.admit(|id| Subscriber::of_tracer(id, tracing))
    }

    /// Ends every subscription and the reaper; what is in flight gets `timeout` to retire, all of it together. Twice is fine.
    ///
    /// The reaper goes on if something did not retire: kernels of the application may wait for gates that it opens.
    ///
    /// # Errors
    /// The first thing that did not end in time, and where; everything else was done.
    pub fn shut_down(&self, timeout: Duration) -> Result<(), Error> {
        self.shut_down_until(Deadline::after(timeout))
    }

    pub(crate) fn shut_down_until(&self, deadline: Deadline) -> Result<(), Error> {
        if self.is_inert() {
            return Ok(());
        }
        let (began, last_look) = (std::time::Instant::now(), LastLook::default());
        let subscribers = self.registry.lock().shut_down();
        let mut outcome = Ok(());
        for subscriber in &subscribers {
            outcome = outcome.and(known(self.quiesce_until(subscriber, deadline)));
        }
        for subscriber in &subscribers {
            outcome = outcome.and(self.drain_until(subscriber, deadline, &last_look));
            outcome = outcome.and(known(self.unsubscribe_until(subscriber, deadline)));
        }
        drop(subscribers);
        self.sweep();
        for queue in self.agents.iter().flat_map(|agent| agent.queues()) {
            if !(QueueHandle { queue: Arc::clone(&queue) }).wait_empty_until(deadline, &last_look) {
                let (agent, queue) = (queue.agent.id, queue.id);
                outcome = outcome.and(Err(Error::QueueBusy { agent, queue, waited: began.elapsed() }));
            }
        }
        outcome?;
        self.reaper.stop(deadline)
    }

    /// Frees what is kept for queues that are gone, the reaper's bell too if none is measured.
    pub(crate) fn let_go(&self, deadline: Deadline) {
        self.reaper.let_go(deadline);
    }

    /// The times of the kernel for which `signal` of the application fell last; `None` if it was not instrumented, and
    /// the runtime itself knows.
    pub fn times_of(&self, agent: AgentId, signal: Signal) -> Option<DispatchTimes> {
        let state = self.agents.iter().find(|state| state.id == agent)?;
        state.times.get(signal.0, |carrier| {
            // While the kernel runs there is nothing to tell.
            let ended = state.device.load(carrier) < 1;
            ended.then(|| state.device.dispatch_times(agent, carrier)).flatten()
        })
    }

    /// The application destroyed a signal, or armed it for something else.
    pub fn signal_reused(&self, signal: Signal) {
        for agent in &self.agents {
            agent.times.forget(signal.0);
        }
    }

    /// In a forked child, locks may be held by threads that are not there: nothing may be touched.
    fn is_inert(&self) -> bool {
        self.origin.is_parent()
    }

    fn callback_deadline(&self) -> Deadline {
        Deadline::after(*self.callback_timeout.lock())
    }

    /// Adds a subscriber.
    fn admit(
        &self,
        make: impl FnOnce(SubscriptionId) -> Subscriber,
    ) -> Result<SubscriptionId, InterceptionError> {
        if self.is_inert() {
            return Err(InterceptionError::ShutDown);
        }
        let id = {
            let mut registry = self.registry.lock();
            registry.check_open()?;
            registry.next_id()
        };
        match self.reaper.start() {
            Ok(()) => {}
            Err(Error::Interception(error)) => return Err(error),
            Err(error) => {
                tracing::error!(%error, "no dispatch can be followed");
                return Err(InterceptionError::ShutDown);
            }
        }
        let subscriber = Arc::new(make(id));
        let changed =
            self.change(&subscriber, self.callback_deadline(), |registry| registry.add(&subscriber));
        match changed {
            // A hook that is still in an earlier callback only asks the others for that batch.
            Ok(()) | Err(Error::CallbackBusy { .. }) => Ok(id),
            Err(error) => Err(error.for_service(id)),
        }
    }

    fn find(&self, id: SubscriptionId) -> Result<Arc<Subscriber>, InterceptionError> {
        self.registry.lock().find(id)
    }

    /// Changes the registry, swaps the snapshots of the agents that `subscriber` covers, and waits for their hooks.
    fn change(
        &self,
        subscriber: &Subscriber,
        deadline: Deadline,
        change: impl FnOnce(&mut Registry) -> Result<(), InterceptionError>,
    ) -> Result<(), Error> {
        let began = std::time::Instant::now();
        let mut begins: Vec<Begin<'_>> = Vec::new();
        self.sweep();
        let swapped: Vec<(&AgentState, Swapped<'_, Snapshot>)> = {
            let mut registry = self.registry.lock();
            change(&mut registry)?;
            self.reaper.set_tracing(registry.traces());
            let covered = self.agents.iter().enumerate().filter(|(_, agent)| subscriber.covers(agent.id));
            covered
                .map(|(index, agent)| {
                    let change = registry.change(index, agent.id, !agent.times.is_empty());
                    begins.extend(change.begins.then(|| Begin::of(agent)));
                    (&**agent, agent.snapshots.swap(change.snapshot))
                })
                .collect()
        };
        let mut outcome = Ok(());
        for (agent, old) in swapped {
            if let Err(queue) = old.wait(agent.queues(), |queue| &queue.word, deadline) {
                let (agent, queue) = (agent.id, queue.id);
                outcome = outcome.and(Err(Error::CallbackBusy { agent, queue, waited: began.elapsed() }));
            }
        }
        // The hooks see the new subscribers; queues that submit nothing write their marks now.
        for begin in &begins {
            begin.queues.iter().for_each(|queue| queue.await_uncovered(begin.from));
            begin.queues.iter().for_each(|queue| queue.nudge());
        }
        outcome
    }

    fn quiesce_until(&self, subscriber: &Subscriber, deadline: Deadline) -> Result<(), Error> {
        self.change(subscriber, deadline, |registry| registry.advance(subscriber.id, Stage::Silent))?;
        // Inside a hook nobody was waited for.
        if !InsideHook::is_current() {
            subscriber.set_silent();
        }
        Ok(())
    }

    /// Lets go of who left. Held by the caller, a subscriber is still in use.
    fn sweep(&self) {
        let gone = self.registry.lock().sweep();
        drop(gone);
    }

    fn drain_until(
        &self,
        subscriber: &Subscriber,
        deadline: Deadline,
        last_look: &LastLook,
    ) -> Result<(), Error> {
        let began = std::time::Instant::now();
        // Inside a hook the wait could be for the very batch that this thread has yet to hand over.
        let inside = InsideHook::is_current() || InsideLook::is_current();
        let deadline = if inside { Deadline::after(Duration::ZERO) } else { deadline };
        if subscriber.service().is_none() {
            // Nothing announces what is only traced.
            self.reaper.wake();
        }
        self.reaper.stand_in(deadline, |soon| subscriber.wait_drained(soon));
        let drained = || subscriber.in_flight() == 0;
        if subscriber.wait_drained(deadline) || (last_look.take(&self.reaper) && drained()) {
            return Ok(());
        }
        Err(self.not_drained(subscriber, began.elapsed()))
    }

    fn not_drained(&self, subscriber: &Subscriber, waited: Duration) -> Error {
        let queues = self.agents.iter().flat_map(|agent| agent.queues());
        let oldest = queues.filter_map(|queue| {
            let oldest = queue.flight.lock().oldest_of(subscriber)?;
            Some((oldest, queue.id))
        });
        let (in_flight, oldest) = (subscriber.in_flight(), oldest.min());
        Error::NotDrained { subscription: subscriber.id, in_flight, oldest, waited }
    }

    /// Has the reaper look, which may rest.
    fn settle_until(&self, subscriber: &Subscriber, deadline: Deadline) -> Result<(), Error> {
        let began = std::time::Instant::now();
        let last = DispatchId(self.dispatches.load(Ordering::Relaxed));
        // Inside a hook the wait could be for the very batch that this thread has yet to hand over, inside a look for itself.
        let may_wait = !InsideHook::is_current() && !InsideLook::is_current();
        loop {
            if self.reaper.has_settled(subscriber, last) {
                return Ok(());
            }
            if !may_wait || deadline.is_over() {
                return Err(self.not_drained(subscriber, began.elapsed()));
            }
            self.reaper.look_soon();
            subscriber.wait_drained(Deadline::after(BETWEEN_LOOKS.min(deadline.left())));
        }
    }

    fn unsubscribe_until(&self, subscriber: &Subscriber, deadline: Deadline) -> Result<(), Error> {
        let changed =
            self.change(subscriber, deadline, |registry| registry.advance(subscriber.id, Stage::Leaving));
        match changed {
            // Whoever is in a callback there does not call this subscriber.
            Err(Error::CallbackBusy { .. }) if subscriber.is_silent() => Ok(()),
            changed => changed,
        }
    }
}

/// Somebody else may have ended a subscription meanwhile.
fn known(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(Error::Interception(InterceptionError::UnknownSubscription(_))) => Ok(()),
        outcome => outcome,
    }
}

impl Interception for Engine {
    fn subscribe(&self, subscription: Subscription) -> Result<SubscriptionId, InterceptionError> {
        self.admit(|id| Subscriber::of_service(id, subscription))
    }

    fn quiesce(&self, id: SubscriptionId) -> Result<(), InterceptionError> {
        if self.is_inert() {
            return Ok(());
        }
        let subscriber = self.find(id)?;
        let silent = self.quiesce_until(&subscriber, self.callback_deadline());
        silent.map_err(|error| reported(error, id))
    }

    fn settle(&self, id: SubscriptionId, timeout: Duration) -> Result<(), InterceptionError> {
        if self.is_inert() {
            return Ok(());
        }
        let subscriber = self.find(id)?;
        let settled = self.settle_until(&subscriber, Deadline::after(timeout));
        settled.map_err(|error| with_timeout(reported(error, id), timeout))
    }

    fn drain(&self, id: SubscriptionId, timeout: Duration) -> Result<(), InterceptionError> {
        if self.is_inert() {
            return Ok(());
        }
        let subscriber = self.find(id)?;
        let drained = self.drain_until(&subscriber, Deadline::after(timeout), &LastLook::default());
        drained.map_err(|error| with_timeout(reported(error, id), timeout))
    }

    fn unsubscribe(&self, id: SubscriptionId) -> Result<(), InterceptionError> {
        if self.is_inert() {
            return Ok(());
        }
        let subscriber = self.find(id)?;
        let left = self.unsubscribe_until(&subscriber, self.callback_deadline());
        drop(subscriber);
        self.sweep();
        left.map_err(|error| reported(error, id))
    }

    fn return_grant(&self, id: SubscriptionId, token: Token) {
        if self.is_inert() {
            return;
        }
        let subscriber = self.registry.lock().find_any(id);
        let Some(subscriber) = subscriber else { return };
        let Some((queue, run)) = subscriber.take_grant(token) else { return };
        queue.agent.serialize(|machine| machine.returned(queue.lane, run));
    }
}

/// The time that the caller gave, not what was left of it.
fn with_timeout(error: InterceptionError, timeout: Duration) -> InterceptionError {
    match error {
        InterceptionError::DrainTimedOut { subscription, in_flight, .. } => {
            InterceptionError::DrainTimedOut { subscription, in_flight, timeout }
        }
        error => error,
    }
}

/// What a service is told of an error; where it happened goes to the log.
fn reported(error: Error, id: SubscriptionId) -> InterceptionError {
    if !matches!(error, Error::Interception(_)) {
        tracing::warn!(%error, subscription = %id, "interception waited in vain");
    }
    error.for_service(id)
}
