//! The dispatch trace service of one context.

use std::sync::Arc;
use std::time::Duration;

use wavescope_aql_profile::{AgentShape, Memory, PacketPrograms, TraceConfig, TraceParameter};
use wavescope_core::actor::{ActorThread, spawn};
use wavescope_core::sync::atomic::{AtomicU64, Ordering};
use wavescope_core::sync::{Mutex, Places};
use wavescope_core::{
    AgentId, Claim, ClaimTable, CodeObjectId, ContextId, Dispatch, Interception, LoadedCodeObject,
    RecordSink, Service, Subscription, SubscriptionId, TraceChunk,
};

use super::grants::Grants;
use super::lane::Lane;
use super::subscriber::{Face, Subscriber};
use super::worker::{Job, Worker};
use crate::owner::Message;
use crate::{AgentOwner, Error, SlotReader};

/// Requests of clients that may wait for the worker.
const REQUEST_PLACES: usize = 8;

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

/// Where chunks go. Both run on the copy worker's thread, with no lock held.
pub enum Delivery {
    /// Into a stream.
    Stream(RecordSink<TraceChunk>),
    /// To a function, one call for each chunk.
    Callback(Box<dyn Fn(TraceChunk) + Send>),
}

/// An agent that a service traces.
pub struct TracedAgent {
    /// The owner of its trace resources.
    pub owner: Arc<AgentOwner>,
    /// The runtime's handle of it.
    pub agent_handle: u64,
    /// What packet programs have to know about it.
    pub shape: AgentShape,
    /// What is traced, with which buffer size.
    pub config: TraceConfig,
    /// Memory for what is not shared: commands and control records.
    pub memory: Arc<dyn Memory>,
    /// Reads the owner's slots.
    pub slots: Arc<dyn SlotReader>,
}

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

/// What became of the dispatches so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceSummary {
    /// Traced: delivered, lost, or still in flight.
    pub traced: u64,
    /// The callback wanted no trace.
    pub declined: u64,
    /// Too many were in flight, or the owner was gone.
    pub skipped: u64,
    /// Of the traced: their data were copied.
    pub delivered: u64,
    /// Of the traced: their data could not be read.
    pub lost: u64,
}

/// The numbers behind [`TraceSummary`].
#[derive(Default)]
pub(super) struct Tally {
    traced: AtomicU64,
    declined: AtomicU64,
    skipped: AtomicU64,
    delivered: AtomicU64,
    lost: AtomicU64,
}

impl Tally {
    pub(super) fn traced(&self) {
        self.traced.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn declined(&self) {
        self.declined.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn skipped(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn delivered(&self) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// The dispatch trace service of one context.
///
/// Make the services of all contexts before the first one starts: making one registers its buffer size, and the
/// shared slots cannot grow later.
pub struct DispatchTrace {
    context: ContextId,
    lanes: Arc<Vec<Lane>>,
    claims_wanted: Vec<(AgentId, Claim)>,
    claims: Arc<ClaimTable>,
    programs: Arc<dyn PacketPrograms>,
    interception: Arc<dyn Interception>,
    grants: Arc<Grants>,
    subscriber: Arc<Subscriber>,
    tally: Arc<Tally>,
    worker: ActorThread<Job>,
    phase: Mutex<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Stopped,
    /// A thread is starting or stopping it.
    Changing,
    Active(SubscriptionId),
}

impl DispatchTrace {
    /// Checks the configuration, registers its need with each agent's owner, and starts the copy worker.
    ///
    /// # Errors
    /// [`Error::Program`] for parameters that the hardware cannot do; [`Error::GrowthRefused`] for a context that
    /// comes too late with a larger need; [`Error::Core`] without a thread.
    pub fn new(setup: DispatchTraceSetup) -> Result<Self, Error> {
        let DispatchTraceSetup { context, agents, programs, interception, claims, .. } = setup;
        let counts = TraceParameter::perfcounter(0, 0).code;
        let claim = |agent: &TracedAgent| {
            let perf_counters = agent.config.parameters.iter().any(|parameter| parameter.code == counts);
            (agent.owner.agent(), Claim::Trace { perf_counters })
        };
        let claims_wanted = agents.iter().map(claim).collect();
        let lanes = agents.into_iter().enumerate();
        let lanes = lanes.map(|(place, agent)| Lane::new(place, context, &*programs, agent));
        let lanes = Arc::new(lanes.collect::<Result<Vec<_>, _>>()?);
        let tally = Arc::new(Tally::default());
        let worker = Worker {
            context,
            lanes: Arc::clone(&lanes),
            instances: lanes.iter().map(|_| None).collect(),
            delivery: setup.delivery,
            tally: Arc::clone(&tally),
        };
        let notices = lanes.iter().map(Lane::capacity).sum();
        let worker = spawn(worker, Places { requests: REQUEST_PLACES, notices })?;
        let subscriber = Arc::new(Subscriber {
            context,
            lanes: Arc::clone(&lanes),
            decide: setup.decide,
            serialize_all: setup.serialize_all,
            tally: Arc::clone(&tally),
        });
        let grants = Arc::new(Grants::new(Arc::clone(&interception)));
        let phase = Mutex::new(Phase::Stopped);
        Ok(Self {
            context,
            lanes,
            claims_wanted,
            claims,
            programs,
            interception,
            grants,
            subscriber,
            tally,
            worker,
            phase,
        })
    }

    /// The context it works for.
    pub fn context(&self) -> ContextId {
        self.context
    }

    /// What became of the dispatches so far.
    pub fn summary(&self) -> TraceSummary {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let Tally { traced, declined, skipped, delivered, lost } = &*self.tally;
        TraceSummary {
            traced: read(traced),
            declined: read(declined),
            skipped: read(skipped),
            delivered: read(delivered),
            lost: read(lost),
        }
    }

    /// Begins to ask the callback about every dispatch on its agents. On a started service nothing changes.
    ///
    /// # Errors
    /// [`Error::Conflict`] while another context traces one of the agents, or counts there and this one traces with
    /// perf counters; those of [`Lease::claim`](crate::Lease::claim) and
    /// [`AgentOwner::acquire`]. Nothing stays taken then.
    pub fn start(&self) -> Result<(), Error> {
        if !self.enter(|phase| phase == Phase::Stopped) {
            return Ok(());
        }
        let result = self.take_agents().and_then(|()| {
            let id = self.interception.subscribe(Subscription {
                context: self.context,
                service: Service::DispatchTrace,
                agents: self.lanes.iter().map(|lane| lane.agent).collect(),
                serialize: true,
                subscriber: self.subscriber.clone(),
            })?;
            self.grants.subscribed(id);
            Ok(id)
        });
        match result {
            Ok(id) => {
                *self.phase.lock() = Phase::Active(id);
                Ok(())
            }
            Err(error) => {
                self.give_agents_back();
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
    /// [`Error::Interception`] or [`Error::DrainTimedOut`] if dispatches did not end within `timeout`. The service
    /// asks no more but keeps everything; call it again.
    pub fn stop(&self, timeout: Duration) -> Result<(), Error> {
        let Phase::Active(id) = *self.phase.lock() else { return Ok(()) };
        if !self.enter(|phase| phase == Phase::Active(id)) {
            return Ok(());
        }
        let result = self.leave(id, timeout);
        *self.phase.lock() = if result.is_ok() { Phase::Stopped } else { Phase::Active(id) };
        result
    }

    /// Traces name this code object from the next dispatch on. Call it before its kernels can be dispatched.
    ///
    /// # Errors
    /// [`Error::Program`]: traces will not name it.
    pub fn code_object_loaded(&self, code: &LoadedCodeObject) -> Result<(), Error> {
        let mut lanes = self.lanes.iter().filter(|lane| lane.agent == code.agent);
        lanes.try_for_each(|lane| lane.loaded(&*self.programs, code, true))
    }

    /// Traces do not name it any more.
    pub fn code_object_unloaded(&self, id: CodeObjectId) {
        self.lanes.iter().for_each(|lane| lane.unloaded(id));
    }

    /// Whether this thread is the one that changes the phase.
    fn enter(&self, is_expected: impl Fn(Phase) -> bool) -> bool {
        let mut phase = self.phase.lock();
        let enters = is_expected(*phase);
        if enters {
            *phase = Phase::Changing;
        }
        enters
    }

    fn take_agents(&self) -> Result<(), Error> {
        self.claims.claim(self.context, &self.claims_wanted)?;
        for (place, lane) in self.lanes.iter().enumerate() {
            let face = Face { worker: self.worker.address().clone(), grants: Arc::clone(&self.grants) };
            if let Some(installed) = lane.prepare(self.context, Arc::new(face))? {
                self.worker.address().send(Job::Install { place, installed })?;
            }
            if let Some(lease) = lane.lease() {
                lease.claim()?;
            }
        }
        Ok(())
    }

    /// After a start that failed: only what it took goes back.
    fn give_agents_back(&self) {
        for lease in self.lanes.iter().filter_map(Lane::lease) {
            if let Err(error) = lease.unhook() {
                tracing::error!(context = %self.context, %error, "claim not given back");
            }
        }
        self.release_claims();
    }

    fn release_claims(&self) {
        for &(agent, claim) in &self.claims_wanted {
            self.claims.release(self.context, agent, claim);
        }
    }

    /// The order matters: quiesce, drain, unhook, and only then the hook falls silent for good.
    fn leave(&self, id: SubscriptionId, timeout: Duration) -> Result<(), Error> {
        self.interception.quiesce(id)?;
        self.interception.drain(id, timeout)?;
        for lane in self.lanes.iter() {
            let (Some(address), Some(lease)) = (lane.address(), lane.lease()) else { continue };
            let queues = lane.take_queues();
            for &queue in &queues {
                address.send(Message::Drained { context: self.context, queue })?;
            }
            lease.unhook().inspect_err(|_| lane.restore_queues(queues))?;
        }
        self.interception.unsubscribe(id)?;
        self.grants.unsubscribed();
        self.release_claims();
        self.lanes.iter().for_each(Lane::settled);
        self.worker.address().ask(Job::Flush).wait()?;
        Ok(())
    }
}

impl Drop for DispatchTrace {
    fn drop(&mut self) {
        let patience = self.lanes.iter().filter_map(Lane::lease).map(|lease| lease.owner().limits().patience);
        let Err(error) = self.stop(patience.max().unwrap_or_default()) else { return };
        tracing::error!(context = %self.context, %error, "dispatches did not end: their memory is kept for good");
        self.lanes.iter().for_each(Lane::leak);
        let _ = self.worker.address().send(Job::Leak);
    }
}
