//! Who subscribed, and what that means for each agent. Only data: the engine swaps snapshots and waits.

use std::sync::Arc;

use wavescope_core::{AgentId, InterceptionError, SubscriptionId};

use crate::fault::{self, Fault};
use crate::subscribers::{Snapshot, Subscriber};

#[derive(Debug, Default)]
pub(super) struct Registry {
    subscribers: Vec<(Arc<Subscriber>, Stage)>,
    last: u64,
    /// By agent.
    agents: Vec<Standing>,
    shut_down: bool,
}

/// How far a subscription has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Asked about dispatches.
    Asked,
    /// Not asked any more; its hold on the agents stays.
    Silent,
    /// Unsubscribed. A hook may still be asking it, and its answer counts; while it owes something its dispatches can retire,
    /// and grants come back, so that what waits for them goes on.
    Leaving,
}

impl Stage {
    fn is_known(self) -> bool {
        matches!(self, Self::Asked | Self::Silent)
    }
}

/// What the subscriptions mean for one agent.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// The current or last stretch of time with a snapshot.
    period: u64,
    active: bool,
    serialized: bool,
}

/// A new snapshot for an agent.
pub(super) struct Change {
    pub(super) snapshot: Option<Arc<Snapshot>>,
    /// Its serialization begins.
    pub(super) begins: bool,
}

impl Registry {
    pub(super) fn new(agents: usize) -> Self {
        Self { agents: vec![Standing::default(); agents], ..Self::default() }
    }

    pub(super) fn next_id(&mut self) -> SubscriptionId {
        self.last += 1;
        SubscriptionId(self.last)
    }

    /// Nothing is added any more. Returns who is still there.
    pub(super) fn shut_down(&mut self) -> Vec<Arc<Subscriber>> {
        self.shut_down = true;
        self.known().map(|(subscriber, _)| Arc::clone(subscriber)).collect()
    }

    /// # Errors
    /// [`InterceptionError::ShutDown`].
    pub(super) fn check_open(&self) -> Result<(), InterceptionError> {
        if self.shut_down { Err(InterceptionError::ShutDown) } else { Ok(()) }
    }

    /// # Errors
    /// [`InterceptionError::ShutDown`].
    pub(super) fn add(&mut self, subscriber: &Arc<Subscriber>) -> Result<(), InterceptionError> {
        if !fault::is(Fault::SubscribedAfterShutDown) {
            self.check_open()?;
        }
        self.subscribers.push((Arc::clone(subscriber), Stage::Asked));
        Ok(())
    }

    /// Brings a subscription to a later stage.
    ///
    /// # Errors
    /// [`InterceptionError::UnknownSubscription`].
    pub(super) fn advance(&mut self, id: SubscriptionId, to: Stage) -> Result<(), InterceptionError> {
        let known = self.subscribers.iter_mut().filter(|(_, stage)| stage.is_known());
        let found = known.into_iter().find(|(subscriber, _)| subscriber.id == id);
        found.ok_or(InterceptionError::UnknownSubscription(id))?.1 = to;
        Ok(())
    }

    /// # Errors
    /// [`InterceptionError::UnknownSubscription`].
    pub(super) fn find(&self, id: SubscriptionId) -> Result<Arc<Subscriber>, InterceptionError> {
        let found = self.known().find(|(subscriber, _)| subscriber.id == id);
        found.map(|(subscriber, _)| Arc::clone(subscriber)).ok_or(InterceptionError::UnknownSubscription(id))
    }

    /// Also one that left but still owes something.
    pub(super) fn find_any(&self, id: SubscriptionId) -> Option<Arc<Subscriber>> {
        let mut found = self.subscribers.iter().filter(|(subscriber, _)| subscriber.id == id);
        let found = found.find(|(_, stage)| stage.is_known() || !fault::is(Fault::GrantsForgottenWhenLeft));
        found.map(|(subscriber, _)| Arc::clone(subscriber))
    }

    /// Forgets who left, owes nothing and is asked by nobody: a hook that may still ask has it from a snapshot. The client's
    /// part of them is to be dropped without the registry's lock.
    pub(super) fn sweep(&mut self) -> Vec<Arc<Subscriber>> {
        let gone = |left: &Arc<Subscriber>| Arc::strong_count(left) == 1 && !left.owes();
        let gone = self.subscribers.extract_if(.., |(left, stage)| !stage.is_known() && gone(left));
        gone.map(|(left, _)| left).collect()
    }

    /// Whether anybody traces.
    pub(super) fn traces(&self) -> bool {
        self.subscribers.iter().any(|(subscriber, stage)| {
            subscriber.service().is_none() && (stage.is_known() || subscriber.in_flight() > 0)
        })
    }

    /// What agent `id`, the `index`-th, gets now. `keep` says that it needs a snapshot even for nobody.
    pub(super) fn change(&mut self, index: usize, id: AgentId, keep: bool) -> Change {
        let covering: Vec<_> = self.known().filter(|(subscriber, _)| subscriber.covers(id)).collect();
        let asked = covering.iter().filter(|(_, stage)| *stage == Stage::Asked);
        let (tracers, mut asked): (Vec<_>, Vec<_>) = asked
            .map(|(subscriber, _)| Arc::clone(subscriber))
            .partition(|subscriber| subscriber.service().is_none());
        asked.sort_by_key(|subscriber| subscriber.service());
        let holds = |stage: Stage| stage == Stage::Asked || !fault::is(Fault::HoldReturnedWhenSilent);
        let serialize = covering.iter().any(|(subscriber, stage)| subscriber.serializes() && holds(*stage));
        let active = !asked.is_empty() || !tracers.is_empty() || serialize;
        let standing = &mut self.agents[index];
        let begins = serialize && !standing.serialized;
        standing.serialized = serialize;
        standing.period += u64::from(active && !standing.active);
        standing.active = active;
        let period = standing.period;
        let snapshot = Snapshot { asked, tracers, serialize, period };
        Change { snapshot: (active || keep).then(|| Arc::new(snapshot)), begins }
    }

    fn known(&self) -> impl Iterator<Item = &(Arc<Subscriber>, Stage)> {
        self.subscribers.iter().filter(|(_, stage)| stage.is_known())
    }
}
