//! Who is asked about the dispatches of an agent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wavescope_core::sync::atomic::{AtomicUsize, Ordering};
use wavescope_core::sync::{Condvar, Mutex};
use wavescope_core::{AgentId, Subscription, SubscriptionId, Token};

use crate::queue::Queue;
use crate::serializer::RunId;

/// A subscription and what is in flight for it.
pub(crate) struct Subscriber {
    pub(crate) id: SubscriptionId,
    pub(crate) subscription: Subscription,
    /// Dispatches that it instrumented and that have not been published as retired.
    in_flight: AtomicUsize,
    /// Grants that it has to return, oldest first.
    grants: Mutex<VecDeque<(Token, Arc<Queue>, RunId)>>,
    /// Notified when `in_flight` falls to 0.
    drained: (Mutex<()>, Condvar),
}

impl Subscriber {
    pub(crate) fn new(id: SubscriptionId, subscription: Subscription) -> Self {
        Self {
            id,
            subscription,
            in_flight: AtomicUsize::new(0),
            grants: Mutex::new(VecDeque::new()),
            drained: (Mutex::new(()), Condvar::new()),
        }
    }

    /// Whether it measures `agent`.
    pub(crate) fn covers(&self, agent: AgentId) -> bool {
        self.subscription.agents.is_empty() || self.subscription.agents.contains(&agent)
    }

    /// One more dispatch is about to be handed to a queue.
    pub(crate) fn took_off(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// A dispatch was published as retired.
    pub(crate) fn landed(&self) {
        if self.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Behind the lock: a waiter has either seen the 0 or is waiting.
            drop(self.drained.0.lock());
            self.drained.1.notify_all();
        }
    }

    /// Whether dispatches of it are in flight, or grants that it must return.
    pub(crate) fn owes(&self) -> bool {
        self.in_flight() > 0 || !self.grants.lock().is_empty()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Waits until nothing is in flight; `false` if `timeout` passed before.
    pub(crate) fn wait_drained(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut guard = self.drained.0.lock();
        while self.in_flight() > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            let (next, timed_out) = self.drained.1.wait_timeout(guard, left);
            guard = next;
            if timed_out {
                return self.in_flight() == 0;
            }
        }
        true
    }

    /// Remembers which run `token` holds until it is returned.
    pub(crate) fn owe_grant(&self, token: Token, queue: &Arc<Queue>, run: RunId) {
        self.grants.lock().push_back((token, Arc::clone(queue), run));
    }

    /// The run that `token` holds; the next call for it finds nothing.
    pub(crate) fn take_grant(&self, token: Token) -> Option<(Arc<Queue>, RunId)> {
        let mut grants = self.grants.lock();
        let index = grants.iter().position(|(owed, ..)| *owed == token)?;
        grants.remove(index).map(|(_, queue, run)| (queue, run))
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscriber").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The subscribers of one agent, as its queues' hooks see them.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// In service order, at most one per service: claims exclude more.
    pub(crate) asked: Vec<Arc<Subscriber>>,
    /// Whether kernels of the agent must not overlap.
    pub(crate) serialize: bool,
    /// Which stretch of time with subscribers this is; in between, packets went through unseen.
    pub(crate) period: u64,
}

impl Snapshot {
    /// Whether packets go through as they are: it is only there because earlier kernels left times.
    pub(crate) fn is_quiet(&self) -> bool {
        self.asked.is_empty() && !self.serialize
    }
}
