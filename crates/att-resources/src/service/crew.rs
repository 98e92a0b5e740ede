//! What dispatch and device tracing share: the lanes of a context, its copy worker, its claims.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use wavescope_aql_profile::{AgentShape, Memory, PacketPrograms, TraceConfig, TraceParameter};
use wavescope_core::actor::{ActorThread, Address, spawn};
use wavescope_core::sync::{Deadline, Places};
use wavescope_core::{AgentId, Claim, ClaimTable, ContextId, GrantReturns, RecordSink, TraceChunk};

use super::lane::Lane;
use super::subscriber::Face;
use super::tally::Tally;
use super::worker::{Job, Worker};
use crate::{AgentOwner, Error, SlotReader};

/// Requests of clients that may wait for the worker.
const REQUEST_PLACES: usize = 8;

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

/// The agents of one context with the worker that copies their traces.
pub(super) struct Crew {
    pub(super) context: ContextId,
    pub(super) lanes: Arc<Vec<Lane>>,
    pub(super) programs: Arc<dyn PacketPrograms>,
    pub(super) tally: Arc<Tally>,
    claims: Arc<ClaimTable>,
    wanted: Vec<(AgentId, Claim)>,
    worker: Address<Job>,
    /// `None` only while it is dropped.
    thread: Option<ActorThread<Job>>,
}

impl Crew {
    /// Checks every agent's configuration, registers its need, and starts the worker.
    pub(super) fn new(
        context: ContextId,
        agents: Vec<TracedAgent>,
        programs: Arc<dyn PacketPrograms>,
        claims: Arc<ClaimTable>,
        delivery: Delivery,
    ) -> Result<Self, Error> {
        let wanted = agents.iter().map(claim).collect();
        let lanes = agents.into_iter().enumerate();
        let lanes = lanes.map(|(place, agent)| Lane::new(place, context, &*programs, agent));
        let lanes = Arc::new(lanes.collect::<Result<Vec<_>, _>>()?);
        let tally = Arc::new(Tally::default());
        let worker = Worker::new(context, Arc::clone(&lanes), delivery, Arc::clone(&tally));
        let notices = lanes.iter().map(Lane::capacity).sum();
        let thread = spawn(worker, Places { requests: REQUEST_PLACES, notices })?;
        let worker = thread.address().clone();
        Ok(Self { context, lanes, programs, tally, claims, wanted, worker, thread: Some(thread) })
    }

    /// Claims every agent, takes the leases and makes the instances, the first time. Everything or nothing.
    pub(super) fn take_agents(&self, grants: Option<&Arc<GrantReturns>>) -> Result<(), Error> {
        self.claims.claim(self.context, &self.wanted)?;
        for (place, lane) in self.lanes.iter().enumerate() {
            if let Err(error) = self.take_agent(place, lane, grants) {
                self.give_back(&self.lanes[..place]);
                return Err(error);
            }
        }
        Ok(())
    }

    fn take_agent(&self, place: usize, lane: &Lane, grants: Option<&Arc<GrantReturns>>) -> Result<(), Error> {
        let worker = self.worker.clone();
        let face = Arc::new(Face { worker, grants: grants.cloned(), owner: OnceLock::new() });
        if let Some(installed) = lane.prepare(self.context, face.clone())? {
            if let Some(owner) = lane.address() {
                let _ = face.owner.set(owner); // it is the first
            }
            self.worker.send(Job::Install { place, installed })?;
        }
        lane.lease().map_or(Ok(()), |lease| lease.claim())
    }

    /// After a start that failed with the agents taken: they go back.
    pub(super) fn give_agents_back(&self) {
        self.give_back(&self.lanes);
    }

    fn give_back(&self, taken: &[Lane]) {
        for lease in taken.iter().filter_map(Lane::lease) {
            if let Err(error) = lease.unhook() {
                tracing::error!(context = %self.context, %error, "claim not given back");
            }
        }
        self.release_claims();
    }

    pub(super) fn release_claims(&self) {
        for &(agent, claim) in &self.wanted {
            self.claims.release(self.context, agent, claim);
        }
    }

    /// Waits until everything that was copied is delivered; not on the worker's own thread, in a callback.
    pub(super) fn flush(&self, deadline: Deadline) -> Result<(), Error> {
        if self.thread.as_ref().is_some_and(ActorThread::is_current) {
            return Ok(());
        }
        Ok(self.worker.ask_within(Job::Flush, deadline.left_or_a_moment())?)
    }

    /// The longest that one of the agents may take.
    pub(super) fn patience(&self) -> Duration {
        self.lanes.iter().map(Lane::patience).max().unwrap_or_default()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        let flushed = self.flush(Deadline::after(self.patience()));
        if flushed.is_err() || self.tally.is_hung() {
            self.lanes.iter().for_each(Lane::give_up_lease);
        }
        let Err(error) = flushed else { return };
        tracing::error!(context = %self.context, %error, "a client does not take its chunks");
        // Joining would wait for that client. The worker delivers the rest if it ever goes on, and ends then.
        self.worker.close();
        std::mem::forget(self.thread.take());
    }
}

/// Perf counters in a trace occupy the registers that counting uses.
fn claim(agent: &TracedAgent) -> (AgentId, Claim) {
    let counter = TraceParameter::perfcounter(0, 0).code;
    let perf_counters = agent.config.parameters.iter().any(|parameter| parameter.code == counter);
    (agent.owner.agent(), Claim::Trace { perf_counters })
}
