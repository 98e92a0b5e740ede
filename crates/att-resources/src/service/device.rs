//! The device trace service of one context: everything that runs on its agents between a start and a stop.
//!
//! No kernel is intercepted or serialized for it: the owner submits start and stop on its own queue.

use std::sync::Arc;

use wavescope_aql_profile::PacketPrograms;
use wavescope_core::actor::Pending;
use wavescope_core::sync::{Deadline, Mutex};
use wavescope_core::{ClaimTable, ContextId, LoadedCodeObject};

use super::crew::{Crew, Delivery, TracedAgent};
use super::lane::{Lane, parts};
use super::tally::TraceSummary;
use crate::owner::{Message, Source};
use crate::{Error, TraceId};

/// What a service needs.
pub struct DeviceTraceSetup {
    /// The context it works for.
    pub context: ContextId,
    /// The agents that it traces.
    pub agents: Vec<TracedAgent>,
    /// Who makes the packets.
    pub programs: Arc<dyn PacketPrograms>,
    /// The claims of all contexts of the process.
    pub claims: Arc<ClaimTable>,
    /// Comes back with every chunk.
    pub user_data: u64,
    /// Where chunks go.
    pub delivery: Delivery,
}

/// The device trace service of one context.
///
/// As with [`DispatchTrace`](crate::DispatchTrace), make all services before the first one starts.
pub struct DeviceTrace {
    crew: Crew,
    user_data: u64,
    phase: Mutex<Phase>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Stopped,
    /// A thread is starting or stopping it.
    Changing,
    /// The trace on each lane.
    Active(Vec<TraceId>),
}

type Answer = Pending<Result<(), Error>>;

impl DeviceTrace {
    /// Checks the configuration, registers its need with each agent's owner, and starts the copy worker.
    ///
    /// # Errors
    /// [`Error::Program`] for parameters that the hardware cannot do; [`Error::GrowthRefused`] for a context that
    /// comes too late with a larger need; [`Error::Core`] without a thread.
    pub fn new(setup: DeviceTraceSetup) -> Result<Self, Error> {
        let DeviceTraceSetup { context, agents, programs, claims, user_data, delivery } = setup;
        let crew = Crew::new(context, agents, programs, claims, delivery)?;
        Ok(Self { crew, user_data, phase: Mutex::new(Phase::Stopped) })
    }

    /// The context it works for.
    pub fn context(&self) -> ContextId {
        self.crew.context
    }

    /// What became of the traces so far, one for each agent and start.
    pub fn summary(&self) -> TraceSummary {
        self.crew.tally.summary()
    }

    /// Starts on all agents at the same time and returns when all of them trace. On a started service nothing
    /// changes.
    ///
    /// # Errors
    /// [`Error::Conflict`] while another context traces one of the agents; those of
    /// [`Lease::claim`](crate::Lease::claim) and [`AgentOwner::acquire`](crate::AgentOwner::acquire);
    /// [`Error::AgentSilent`]. Nothing traces then, on no agent.
    pub fn start(&self) -> Result<(), Error> {
        if self.enter(|phase| *phase == Phase::Stopped).is_none() {
            return Ok(());
        }
        // Unhooking stops what has started.
        let begin = |()| self.begin_all().inspect_err(|_| self.crew.give_agents_back());
        match self.crew.take_agents(None).and_then(begin) {
            Ok(traces) => {
                *self.phase.lock() = Phase::Active(traces);
                Ok(())
            }
            Err(error) => {
                *self.phase.lock() = Phase::Stopped;
                Err(error)
            }
        }
    }

    /// Stops on all agents at the same time and returns when all chunks were delivered. On a stopped service nothing
    /// changes.
    ///
    /// Not from a chunk callback, whose thread it waits for.
    ///
    /// # Errors
    /// The first agent's that did not stop, within its owner's patience: its trace is lost and its memory kept. The
    /// others were stopped, and the service is.
    pub fn stop(&self) -> Result<(), Error> {
        let Some(Phase::Active(traces)) = self.enter(|phase| matches!(phase, Phase::Active(_))) else {
            return Ok(());
        };
        let stops: Vec<_> = self.on_each(&traces, |trace, reply| Message::Stop { trace, reply });
        let stopped = stops.into_iter().map(|stop| self.watch(wait(stop))).fold(Ok(()), Result::and);
        for lease in self.crew.lanes.iter().filter_map(Lane::lease) {
            if let Err(error) = lease.unhook() {
                tracing::error!(context = %self.crew.context, %error, "claim not given back");
            }
        }
        self.crew.release_claims();
        self.crew.lanes.iter().for_each(Lane::settled);
        let flushed = self.crew.flush(Deadline::after(self.crew.patience()));
        *self.phase.lock() = Phase::Stopped;
        stopped.and(flushed)
    }

    /// Puts a code object into the running trace, and into every later one. Returns when the GPU has it, so that
    /// its kernels may be dispatched then.
    ///
    /// # Errors
    /// [`Error::Program`], [`Error::AgentSilent`], [`Error::Device`]: traces will not name it.
    pub fn code_object_loaded(&self, code: &LoadedCodeObject) -> Result<(), Error> {
        for lane in self.crew.lanes.iter().filter(|lane| lane.agent == code.agent) {
            let running = lane.loaded(&*self.crew.programs, code)?;
            self.insert(lane, running, code, false)?;
        }
        Ok(())
    }

    /// Puts the unload into the running trace, and names the code object in no later one. Returns when the GPU has
    /// it, so that the memory may go then.
    ///
    /// # Errors
    /// As for [`code_object_loaded`](Self::code_object_loaded).
    pub fn code_object_unloaded(&self, code: &LoadedCodeObject) -> Result<(), Error> {
        for lane in self.crew.lanes.iter().filter(|lane| lane.agent == code.agent) {
            let running = lane.unloaded(code.id);
            self.insert(lane, running, code, true)?;
        }
        Ok(())
    }

    /// Submits a marker to the lane's running trace and waits for it.
    fn insert(
        &self,
        lane: &Lane,
        running: Option<TraceId>,
        code: &LoadedCodeObject,
        unload: bool,
    ) -> Result<(), Error> {
        let (Some(trace), Some(address)) = (running, lane.address()) else { return Ok(()) };
        // The marker's commands stay until the packet has retired.
        let marker = lane.marker(&*self.crew.programs, code, unload, false)?;
        let packets = vec![marker.packet().into_vendor_specific(false)];
        match self.watch(wait(address.ask(|reply| Message::Insert { trace, packets, reply }))) {
            // It was stopped meanwhile: nothing is traced that could name the code.
            Ok(()) | Err(Error::UnknownTrace { .. }) => Ok(()),
            Err(error) => {
                std::mem::forget(marker);
                Err(error)
            }
        }
    }

    /// Notes whether the GPU may still use what it was given.
    fn watch(&self, result: Result<(), Error>) -> Result<(), Error> {
        if matches!(result, Err(Error::AgentSilent { .. } | Error::Device { .. })) {
            self.crew.tally.hung();
        }
        result
    }

    fn begin_all(&self) -> Result<Vec<TraceId>, Error> {
        let mut traces = Vec::new();
        let mut begins = Vec::new();
        for lane in self.crew.lanes.iter() {
            let (trace, start, stop) = lane.begin_device(self.crew.context, self.user_data)?;
            let Some(address) = lane.address() else { continue };
            let source = Source::Device { start, stop };
            begins.push(address.ask(|reply| Message::Begin { trace, source, reply: Some(reply) }));
            traces.push(trace);
        }
        let answers: Vec<_> = begins.into_iter().map(|begin| self.watch(wait(begin))).collect();
        for (trace, answer) in traces.iter().zip(&answers) {
            match answer {
                Ok(()) => self.crew.tally.traced(),
                Err(_) => self.forget(*trace),
            }
        }
        answers.into_iter().collect::<Result<(), _>>().map(|()| traces)
    }

    /// A trace that never began is not reported by the owner either.
    fn forget(&self, trace: TraceId) {
        let (place, slot) = parts(trace.token);
        if let Some(lane) = self.crew.lanes.get(place) {
            lane.take(slot);
        }
    }

    fn on_each(&self, traces: &[TraceId], message: impl Fn(TraceId, crate::Done) -> Message) -> Vec<Answer> {
        let ask = |&trace: &TraceId| {
            let lane = self.crew.lanes.iter().find(|lane| lane.owns(trace.token))?;
            Some(lane.address()?.ask(|reply| message(trace, reply)))
        };
        traces.iter().filter_map(ask).collect()
    }

    /// Takes the phase for this thread, if it is the expected one.
    fn enter(&self, is_expected: impl Fn(&Phase) -> bool) -> Option<Phase> {
        let mut phase = self.phase.lock();
        is_expected(&phase).then(|| std::mem::replace(&mut *phase, Phase::Changing))
    }
}

fn wait(answer: Answer) -> Result<(), Error> {
    answer.wait()?
}

impl Drop for DeviceTrace {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::error!(context = %self.crew.context, %error, "device trace did not end in order");
        }
    }
}
