//! The dispatch trace service of one context.

use std::sync::Arc;
use std::time::Duration;

use wavescope_aql_profile::PacketPrograms;
use wavescope_core::sync::{Deadline, Mutex};
use wavescope_core::{
    ClaimTable, CodeObjectId, ContextId, Dispatch, GrantReturns, Interception, LoadedCodeObject, Service,
    Subscription, SubscriptionId,
};

use super::crew::{Crew, Delivery, TracedAgent};
use super::lane::Lane;
use super::subscriber::Subscriber;
use super::tally::TraceSummary;
use crate::Error;
use crate::owner::Message;

/// What the dispatch callback wants for one dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No trace.
    None,
    /// A trace of this dispatch.
    StartAndStop {
        /// Comes back with its chunks.
        user_data: u64,
    },
}

/// The dispatch callback. It runs on the submitting thread, inside the runtime's write hook: short, and without
/// calls that wait for the GPU.
pub type Decide = dyn Fn(&Dispatch) -> Decision + Send + Sync;

/// What a service needs.
pub struct DispatchTraceSetup {
    /// The context it works for.
    pub context: ContextId,
    /// The agents that it traces. On others it neither asks nor serializes.
    pub agents: Vec<TracedAgent>,
    /// Who makes the packets.
    pub programs: Arc<dyn PacketPrograms>,
    /// Who puts them around dispatches.
    pub interception: Arc<dyn Interception>,
    /// The claims of all contexts of the process.
    pub claims: Arc<ClaimTable>,
    /// The dispatch callback.
    pub decide: Arc<Decide>,
    /// Whether dispatches that are not traced are serialized too.
    pub serialize_all: bool,
    /// Where chunks go.
    pub delivery: Delivery,
}

/// The dispatch trace service of one context.
///
/// Make the services of all contexts before the first one starts: making one registers its buffer size, and the
/// shared slots cannot grow later.
pub struct DispatchTrace {
    crew: Crew,
    interception: Arc<dyn Interception>,
    grants: Arc<GrantReturns>,
    subscriber: Arc<Subscriber>,
    phase: Mutex<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Stopped,
    /// A thread is starting or stopping it.
    Changing,
    Active(SubscriptionId),
    /// A stop failed: it asks no more, and keeps what it has.
    Leaving(SubscriptionId),
}

impl DispatchTrace {
    /// Checks the configuration, registers its need with each agent's owner, and starts the copy worker.
    ///
    /// # Errors
    /// [`Error::Program`] for parameters that the hardware cannot do; [`Error::GrowthRefused`] for a context that
    /// comes too late with a larger need; [`Error::Core`] without a thread.
    pub fn new(setup: DispatchTraceSetup) -> Result<Self, Error> {
        let DispatchTraceSetup { context, agents, programs, interception, claims, .. } = setup;
        let crew = Crew::new(context, agents, programs, claims, setup.delivery)?;
        let subscriber = Arc::new(Subscriber {
            context,
            lanes: Arc::clone(&crew.lanes),
            decide: setup.decide,
            serialize_all: setup.serialize_all,
            tally: Arc::clone(&crew.tally),
        });
        let grants = Arc::new(GrantReturns::new(Arc::clone(&interception)));
        Ok(Self { crew, interception, grants, subscriber, phase: Mutex::new(Phase::Stopped) })
    }

    /// The context it works for.
    pub fn context(&self) -> ContextId {
        self.crew.context
    }

    /// What became of the dispatches so far.
    pub fn summary(&self) -> TraceSummary {
        self.crew.tally.summary()
    }

    /// Begins to ask the callback about every dispatch on its agents. On a started service nothing changes.
    ///
    /// # Errors
    /// [`Error::Conflict`] while another context traces one of the agents, or counts there and this one traces with
    /// perf counters; those of [`Lease::claim`](crate::Lease::claim) and
    /// [`AgentOwner::acquire`](crate::AgentOwner::acquire). Nothing stays taken then. [`Error::NotStopped`] after a stop that
    /// failed.
    pub fn start(&self) -> Result<(), Error> {
        match self.enter(|phase| phase == Phase::Stopped) {
            Ok(_) => {}
            Err(Phase::Leaving(_)) => return Err(Error::NotStopped { context: self.crew.context }),
            Err(Phase::Stopped | Phase::Changing | Phase::Active(_)) => return Ok(()),
        }
        let taken = self.crew.take_agents(Some(&self.grants));
        match taken.and_then(|()| self.subscribe().inspect_err(|_| self.crew.give_agents_back())) {
            Ok(id) => {
                *self.phase.lock() = Phase::Active(id);
                Ok(())
            }
            Err(error) => {
                *self.phase.lock() = Phase::Stopped;
                Err(error)
            }
        }
    }

    /// Ends it: asks no more, waits until every traced dispatch has retired and was copied, gives the agents back,
    /// and returns when all chunks were delivered. On a stopped service nothing changes.
    ///
    /// Not from a chunk callback, whose thread it waits for.
    ///
    /// # Errors
    /// [`Error::Interception`] or [`Error::DrainTimedOut`] if dispatches did not end within `timeout`, or a decision callback
    /// did not return ([`InterceptionError::CallbackBusy`](wavescope_core::InterceptionError::CallbackBusy), after the time
    /// that interception allows it). The service asks no more but keeps everything; call it again. [`Error::Core`] if the client did not take all chunks within
    /// it: they are delivered later.
    pub fn stop(&self, timeout: Duration) -> Result<(), Error> {
        let is_started = |phase| matches!(phase, Phase::Active(_) | Phase::Leaving(_));
        let Ok(Phase::Active(id) | Phase::Leaving(id)) = self.enter(is_started) else { return Ok(()) };
        let deadline = Deadline::after(timeout);
        let result = self.leave(id, deadline);
        *self.phase.lock() = if result.is_ok() { Phase::Stopped } else { Phase::Leaving(id) };
        result.and_then(|()| self.crew.flush(deadline))
    }

    /// Traces name this code object from the next dispatch on. Call it before its kernels can be dispatched.
    ///
    /// # Errors
    /// [`Error::Program`]: traces will not name it.
    pub fn code_object_loaded(&self, code: &LoadedCodeObject) -> Result<(), Error> {
        let mut lanes = self.crew.lanes.iter().filter(|lane| lane.agent == code.agent);
        lanes.try_for_each(|lane| lane.loaded(&*self.crew.programs, code).map(drop))
    }

    /// Traces do not name it any more.
    pub fn code_object_unloaded(&self, id: CodeObjectId) {
        for lane in self.crew.lanes.iter() {
            lane.unloaded(id);
        }
    }

    /// Makes this thread the one that changes the phase, and returns which it was. Another phase than expected is the error.
    fn enter(&self, is_expected: impl Fn(Phase) -> bool) -> Result<Phase, Phase> {
        let mut phase = self.phase.lock();
        if is_expected(*phase) { Ok(std::mem::replace(&mut *phase, Phase::Changing)) } else { Err(*phase) }
    }

    fn subscribe(&self) -> Result<SubscriptionId, Error> {
        let id = self.interception.subscribe(Subscription {
            context: self.crew.context,
            service: Service::DispatchTrace,
            agents: self.crew.lanes.iter().map(|lane| lane.agent).collect(),
            serialize: true,
            subscriber: self.subscriber.clone(),
        })?;
        self.grants.subscribed(id);
        Ok(id)
    }

    /// The order matters: quiesce, drain, unhook, and only then the hook falls silent for good.
    fn leave(&self, id: SubscriptionId, deadline: Deadline) -> Result<(), Error> {
        self.interception.quiesce(id)?;
        self.interception.drain(id, deadline.left())?;
        for lane in self.crew.lanes.iter() {
            let (Some(address), Some(lease)) = (lane.address(), lane.lease()) else { continue };
            let queues = lane.take_queues();
            for &queue in &queues {
                address.send(Message::Drained { context: self.crew.context, queue })?;
            }
            lease.unhook_within(deadline.left_or_a_moment()).inspect_err(|_| lane.restore_queues(queues))?;
        }
        self.interception.unsubscribe(id)?;
        self.grants.unsubscribed();
        self.crew.release_claims();
        self.crew.lanes.iter().for_each(Lane::settled);
        Ok(())
    }

    /// After a stop that failed, for good: nobody is asked any more, and what retires later is published to a
    /// subscriber that outlives the service, so that the agent's queues go on. The owner refuses other contexts as long
    /// as the GPU may write the slot.
    fn abandon(&self) {
        // Stopped: only the client did not take its chunks.
        let Phase::Leaving(id) = *self.phase.lock() else { return };
        self.crew.tally.hung();
        if let Err(error) = self.interception.unsubscribe(id) {
            tracing::debug!(context = %self.crew.context, %error, "already unsubscribed");
        }
        self.crew.release_claims();
    }
}

impl Drop for DispatchTrace {
    fn drop(&mut self) {
        if let Err(error) = self.stop(self.crew.patience()) {
            tracing::error!(context = %self.crew.context, %error, "traced dispatches did not end");
            self.abandon();
        }
    }
}
