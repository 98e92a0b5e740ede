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

use std::sync::Arc;
use std::time::Duration;

use wavescope_core::sync::Mutex;
use wavescope_core::sync::atomic::{AtomicU64, Ordering};
use wavescope_core::{
    AgentId, AqlPacket, DispatchTimes, Interception, InterceptionError, QueueId, Subscription,
    SubscriptionId, Token,
};

use crate::agent::{AgentState, words};
use crate::device::{Device, Signal};
use crate::fault::{self, Fault};
use crate::queue::Queue;
use crate::reaper::Reaper;
use crate::serializer::{RunId, Serializer};
use crate::snapshot::Swapped;
use crate::subscribers::{Snapshot, Subscriber};
use crate::thread_mark::InsideHook;

/// Rewrites the packets of the queues that it is told of, for whoever subscribes.
#[derive(Debug)]
pub struct Engine {
    agents: Vec<Arc<AgentState>>,
    reaper: Arc<Reaper>,
    registry: Mutex<Registry>,
    queues: AtomicU64,
    dispatches: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Registry {
    subscribers: Vec<(Arc<Subscriber>, Stage)>,
    next: u64,
    /// The current or last snapshot period of each agent.
    periods: Vec<Period>,
    /// Which agents are serialized.
    serialized: Vec<bool>,
    shut_down: bool,
}

/// How far a subscription has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Asked about dispatches.
    Asked,
    /// Not asked any more; its hold on the agents stays.
    Silent,
    /// Unsubscribed while it still owes something: its dispatches can retire, and grants come back, so that what waits
    /// for them goes on.
    Leaving,
}

/// A stretch of time in which an agent has a snapshot.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    number: u64,
    active: bool,
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
        Self { agent, from, queues: agent.queues() }
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

impl Registry {
    fn advance(&mut self, id: SubscriptionId, to: Stage) {
        for (_, stage) in self.subscribers.iter_mut().filter(|(subscriber, _)| subscriber.id == id) {
            *stage = to;
        }
    }
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
        self.queue.wait_empty(timeout)
    }
}

impl Engine {
    /// An engine for these agents.
    pub fn new(device: Arc<dyn Device>, agents: impl IntoIterator<Item = AgentId>) -> Self {
        let agents: Vec<_> =
            agents.into_iter().map(|id| Arc::new(AgentState::new(id, Arc::clone(&device)))).collect();
        let registry = Registry {
            periods: vec![Period::default(); agents.len()],
            serialized: vec![false; agents.len()],
            ..Registry::default()
        };
        Self {
            agents,
            reaper: Arc::new(Reaper::new(device)),
            registry: Mutex::new(registry),
            queues: AtomicU64::new(0),
            dispatches: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Sets how long a kernel of a serialized agent may keep those of other queues waiting; then they run beside it. Kernels
    /// that spin on each other across queues cannot be run one at a time.
    pub fn set_watchdog(&self, patience: Duration) {
        self.reaper.set_patience(patience);
    }

    /// Adds a queue that the application created on `agent`; `None` if the agent is not one of ours.
    pub fn add_queue(&self, agent: AgentId) -> Option<QueueHandle> {
        let agent = self.agents.iter().find(|state| state.id == agent)?;
        let id = QueueId(self.queues.fetch_add(1, Ordering::Relaxed) + 1);
        Some(QueueHandle { queue: Queue::new(id, agent, &self.dispatches, &self.reaper) })
    }

    /// The runtime reported an error and stopped the queue: what is in flight on it is lost.
    pub fn queue_failed(&self, handle: &QueueHandle) {
        handle.queue.fail();
        self.reaper.wake();
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

    /// Ends every subscription and the reaper; what is in flight gets `timeout` to retire. Twice is fine.
    ///
    /// The reaper goes on if something did not retire: kernels of the application may wait for gates that it opens.
    ///
    /// # Errors
    /// [`InterceptionError::DrainTimedOut`] for the first subscription that did not drain.
    pub fn shut_down(&self, timeout: Duration) -> Result<(), InterceptionError> {
        let ids: Vec<_> = {
            let mut registry = self.registry.lock();
            registry.shut_down = true;
            let known = registry.subscribers.iter().filter(|(_, stage)| *stage != Stage::Leaving);
            known.map(|(subscriber, _)| subscriber.id).collect()
        };
        let mut outcome = Ok(());
        for id in ids {
            self.quiesce(id)?;
            outcome = outcome.and(self.drain(id, timeout));
            self.unsubscribe(id)?;
        }
        let queues = self.agents.iter().flat_map(|agent| agent.queues());
        let empty = queues.into_iter().all(|queue| queue.wait_empty(timeout));
        if outcome.is_ok() && empty {
            self.reaper.stop();
        }
        outcome
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

    /// The application destroyed a signal.
    pub fn signal_destroyed(&self, signal: Signal) {
        for agent in &self.agents {
            agent.times.forget(signal.0);
        }
    }

    fn find(&self, id: SubscriptionId) -> Result<Arc<Subscriber>, InterceptionError> {
        let registry = self.registry.lock();
        let mut known = registry.subscribers.iter().filter(|(_, stage)| *stage != Stage::Leaving);
        let found = known.find(|(subscriber, _)| subscriber.id == id);
        found.map(|(subscriber, _)| Arc::clone(subscriber)).ok_or(InterceptionError::UnknownSubscription(id))
    }

    /// Changes the registry, swaps the snapshots of the agents that `subscriber` covers, and waits for their hooks.
    fn change(&self, subscriber: &Subscriber, change: impl FnOnce(&mut Registry)) {
        let mut begins: Vec<Begin<'_>> = Vec::new();
        let swapped: Vec<(&AgentState, Swapped<'_, Snapshot>)> = {
            let mut registry = self.registry.lock();
            change(&mut registry);
            registry.subscribers.retain(|(left, stage)| *stage != Stage::Leaving || left.owes());
            let covered = self.agents.iter().enumerate().filter(|(_, agent)| subscriber.covers(agent.id));
            covered
                .map(|(index, agent)| {
                    let snapshot = self.snapshot(&mut registry, index);
                    let serialize = snapshot.as_ref().is_some_and(|snapshot| snapshot.serialize);
                    let was_serialized = std::mem::replace(&mut registry.serialized[index], serialize);
                    if serialize && !was_serialized {
                        let begin = Begin::of(agent);
                        begin.queues.iter().for_each(|queue| queue.want_mark(begin.from));
                        begins.push(begin);
                    }
                    (&**agent, agent.snapshots.swap(snapshot))
                })
                .collect()
        };
        for (agent, old) in swapped {
            old.wait(words(&agent.queues()));
        }
        // The hooks see the new subscribers; queues that submit nothing write their marks now.
        for begin in &begins {
            begin.queues.iter().for_each(|queue| queue.await_uncovered(begin.from));
            begin.queues.iter().for_each(|queue| queue.nudge());
        }
    }

    fn snapshot(&self, registry: &mut Registry, agent: usize) -> Option<Arc<Snapshot>> {
        let id = self.agents[agent].id;
        let covering = || {
            let held = registry.subscribers.iter().filter(|(_, stage)| *stage != Stage::Leaving);
            held.filter(|(subscriber, _)| subscriber.covers(id))
        };
        let mut asked: Vec<_> = covering()
            .filter(|(_, stage)| *stage == Stage::Asked)
            .map(|(subscriber, _)| Arc::clone(subscriber))
            .collect();
        asked.sort_by_key(|subscriber| subscriber.subscription.service);
        let holds = |stage: Stage| stage == Stage::Asked || !fault::is(Fault::HoldReturnedWhenSilent);
        let serialize =
            covering().any(|(subscriber, stage)| subscriber.subscription.serialize && holds(*stage));
        let was_active = registry.periods[agent].active;
        registry.periods[agent].active = !asked.is_empty() || serialize;
        if !registry.periods[agent].active && self.agents[agent].times.is_empty() {
            return None;
        }
        registry.periods[agent].number += u64::from(!was_active && registry.periods[agent].active);
        let period = registry.periods[agent].number;
        Some(Arc::new(Snapshot { asked, serialize, period }))
    }
}

impl Interception for Engine {
    fn subscribe(&self, subscription: Subscription) -> Result<SubscriptionId, InterceptionError> {
        if let Err(error) = self.reaper.start() {
            tracing::error!(%error, "no dispatch can be followed");
            return Err(InterceptionError::ShutDown);
        }
        let id = {
            let mut registry = self.registry.lock();
            if registry.shut_down {
                return Err(InterceptionError::ShutDown);
            }
            registry.next += 1;
            SubscriptionId(registry.next)
        };
        let subscriber = Arc::new(Subscriber::new(id, subscription));
        self.change(&subscriber, |registry| {
            registry.subscribers.push((Arc::clone(&subscriber), Stage::Asked));
        });
        Ok(id)
    }

    fn quiesce(&self, id: SubscriptionId) -> Result<(), InterceptionError> {
        let subscriber = self.find(id)?;
        self.change(&subscriber, |registry| registry.advance(id, Stage::Silent));
        Ok(())
    }

    fn drain(&self, id: SubscriptionId, timeout: Duration) -> Result<(), InterceptionError> {
        let subscriber = self.find(id)?;
        // Inside a hook the wait could be for the very batch that this thread has yet to hand over.
        let timeout = if InsideHook::is_current() { Duration::ZERO } else { timeout };
        if subscriber.wait_drained(timeout) {
            return Ok(());
        }
        let in_flight = subscriber.in_flight();
        Err(InterceptionError::DrainTimedOut { subscription: id, in_flight, timeout })
    }

    fn unsubscribe(&self, id: SubscriptionId) -> Result<(), InterceptionError> {
        let subscriber = self.find(id)?;
        self.change(&subscriber, |registry| registry.advance(id, Stage::Leaving));
        Ok(())
    }

    fn return_grant(&self, id: SubscriptionId, token: Token) {
        let subscriber = {
            let registry = self.registry.lock();
            let found = registry.subscribers.iter().find(|(subscriber, _)| subscriber.id == id);
            found.map(|(subscriber, _)| Arc::clone(subscriber))
        };
        let Some(subscriber) = subscriber else { return };
        let Some((queue, run)) = subscriber.take_grant(token) else { return };
        queue.agent.serialize(|machine| machine.returned(queue.lane, run));
    }
}
