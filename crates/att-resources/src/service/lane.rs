//! One agent of a service: its program instance's packets and what of it is in flight.

use std::sync::Arc;
use std::time::Duration;

use wavescope_aql_profile::{
    AgentShape, CodeObjectMarker, MarkerInstance, Memory, PacketPrograms, QueueCommand, QueuePacket,
    TraceInstance, TraceProgram,
};
use wavescope_core::actor::Address;
use wavescope_core::sync::Mutex;
use wavescope_core::{
    AgentId, AqlPacket, CodeObjectId, ContextId, Dispatch, DispatchId, InFlight, LoadedCodeObject,
    ProgramSink, QueueId, Token,
};

use crate::owner::{Message, Source, TraceClient};
use crate::{AgentOwner, Error, Lease, Need, SlotMemory, SlotReader, TraceId};

/// Lanes of a service; the lane and the slot share a token's index.
const SLOT_BITS: u32 = 20;

/// What is being traced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traced {
    pub(super) agent: AgentId,
    /// `None` for the whole device.
    pub(super) dispatch: Option<DispatchId>,
    pub(super) user_data: u64,
}

/// A lane's program instance with its memory, for the worker.
pub(super) struct Installed {
    pub(super) instance: Box<dyn TraceInstance>,
    pub(super) memory: Arc<SlotMemory>,
}

/// Name, start and stop of a device trace.
pub(super) type DeviceBegin = (TraceId, Vec<AqlPacket>, Vec<AqlPacket>);

/// One agent of a service.
pub(super) struct Lane {
    pub(super) agent: AgentId,
    place: usize,
    handle: u64,
    owner: Arc<AgentOwner>,
    shape: AgentShape,
    program: Arc<dyn TraceProgram>,
    memory: Arc<dyn Memory>,
    slots: Arc<dyn SlotReader>,
    /// Leaf lock, held for a few instructions: hooks of the agent's queues take it.
    state: Mutex<State>,
}

struct State {
    live: Option<Live>,
    in_flight: InFlight<Traced>,
    /// The device trace in progress.
    running: Option<TraceId>,
    /// Queues that carried a traced dispatch since the last start.
    queues: Vec<QueueId>,
    /// Queues whose pipe was told to take part in profiling.
    enabled: Vec<QueueId>,
    enable: Option<QueuePacket>,
    markers: Vec<(CodeObjectId, Box<dyn MarkerInstance>)>,
    /// Markers of unloaded code objects, which packets in flight may still name.
    old_markers: Vec<Box<dyn MarkerInstance>>,
}

impl State {
    /// The packets of a traced dispatch on `queue`, whose first one also enables the queue's pipe.
    fn instrument(&mut self, queue: QueueId, sink: &mut ProgramSink<'_>) {
        let Some(live) = &self.live else { return };
        if !self.queues.contains(&queue) {
            self.queues.push(queue);
        }
        if let (false, Some(enable)) = (self.enabled.contains(&queue), &self.enable) {
            self.enabled.push(queue);
            sink.before(&enable.packet.into_vendor_specific(false));
        }
        sink.before(&live.start);
        self.markers.iter().for_each(|(_, marker)| sink.before(&marker.packet().into_vendor_specific(false)));
        sink.after(&live.stop);
    }
}

/// From the first start on.
struct Live {
    /// `None` when the service is gone and what is in flight is not.
    lease: Option<Arc<Lease>>,
    /// Of the instance, which holds the lease too.
    memory: Arc<SlotMemory>,
    address: Address<Message>,
    start: AqlPacket,
    stop: AqlPacket,
}

impl Lane {
    /// Checks the configuration and registers its need with the agent's owner.
    pub(super) fn new(
        place: usize,
        context: ContextId,
        programs: &dyn PacketPrograms,
        agent: super::TracedAgent,
    ) -> Result<Self, Error> {
        let super::TracedAgent { owner, agent_handle, shape, config, memory, slots } = agent;
        let program = programs.trace(&shape, &config)?;
        let layout = program.layout();
        let need = Need { buffer_bytes: layout.data_bytes, buffers: layout.buffers };
        owner.register(context, agent_handle, need)?;
        let capacity = owner.limits().traces.min(1 << SLOT_BITS);
        let state = State {
            live: None,
            in_flight: InFlight::with_capacity(capacity),
            running: None,
            queues: Vec::new(),
            enabled: Vec::new(),
            enable: None,
            markers: Vec::new(),
            old_markers: Vec::new(),
        };
        let (agent, handle) = (owner.agent(), agent_handle);
        Ok(Self { agent, place, handle, owner, shape, program, memory, slots, state: Mutex::new(state) })
    }

    /// Traces that may be in flight.
    pub(super) fn capacity(&self) -> usize {
        self.state.lock().in_flight.capacity()
    }

    /// Takes the lease and makes the instance, once. Returns the instance for the worker, the first time.
    pub(super) fn prepare(
        &self,
        context: ContextId,
        client: Arc<dyn TraceClient>,
    ) -> Result<Option<Installed>, Error> {
        if self.state.lock().live.is_some() {
            return Ok(None);
        }
        let lease = Arc::new(self.owner.acquire(context, self.handle, client)?);
        let slots =
            Arc::new(SlotMemory::new(Arc::clone(&lease), Arc::clone(&self.memory), Arc::clone(&self.slots)));
        let memory: Arc<dyn Memory> = slots.clone();
        let instance = self.program.instance(&memory).map_err(|error| match slots.take_refusal() {
            Some(refusal) => refusal,
            None => Error::from(error),
        })?;
        let enable = QueuePacket::new(&self.shape, QueueCommand::Enable, &self.memory)?;
        let live = Live {
            lease: Some(lease),
            memory: Arc::clone(&slots),
            address: self.owner.address()?,
            start: instance.start().into_vendor_specific(false),
            stop: instance.stop().into_vendor_specific(true),
        };
        let mut state = self.state.lock();
        state.live = Some(live);
        state.enable = Some(enable);
        Ok(Some(Installed { instance, memory: slots }))
    }

    /// How long the agent may take.
    pub(super) fn patience(&self) -> Duration {
        self.owner.limits().patience
    }

    pub(super) fn lease(&self) -> Option<Arc<Lease>> {
        self.state.lock().live.as_ref()?.lease.clone()
    }

    pub(super) fn address(&self) -> Option<Address<Message>> {
        self.state.lock().live.as_ref().map(|live| live.address.clone())
    }

    /// Puts the packets around `dispatch` and remembers it; `None` without a free place or a living owner.
    pub(super) fn trace(
        &self,
        context: ContextId,
        dispatch: &Dispatch,
        user_data: u64,
        sink: &mut ProgramSink<'_>,
    ) -> Option<Token> {
        let queue = dispatch.queue;
        let traced = Traced { agent: self.agent, dispatch: Some(dispatch.id), user_data };
        let mut state = self.state.lock();
        let State { live, in_flight, .. } = &mut *state;
        let live = live.as_ref()?;
        let slot = in_flight.insert(traced).ok()?;
        let token = self.token(slot);
        let begin = Message::Begin {
            trace: TraceId { context, token },
            source: Source::Dispatch { queue },
            reply: None,
        };
        // The owner knows of the trace before its packets can run.
        if !matches!(live.address.notify(begin), Ok(true)) {
            in_flight.remove(slot);
            return None;
        }
        state.instrument(queue, sink);
        Some(token)
    }

    /// Remembers a trace of the device. Returns its start, with a marker for each loaded code object, and its stop.
    pub(super) fn begin_device(&self, context: ContextId, user_data: u64) -> Result<DeviceBegin, Error> {
        let mut state = self.state.lock();
        let State { live, in_flight, markers, running, .. } = &mut *state;
        let live = live.as_ref().ok_or(Error::NotLeased { context, agent: self.agent })?;
        let traced = Traced { agent: self.agent, dispatch: None, user_data };
        let in_use = in_flight.len();
        let slot =
            in_flight.insert(traced).map_err(|_| Error::TooManyTraces { agent: self.agent, in_use })?;
        let markers = markers.iter().map(|(_, marker)| marker.packet().into_vendor_specific(false));
        let start = std::iter::once(live.start).chain(markers).collect();
        let trace = TraceId { context, token: self.token(slot) };
        *running = Some(trace);
        Ok((trace, start, vec![live.stop]))
    }

    /// Whether a token is of this lane.
    pub(super) const fn owns(&self, token: Token) -> bool {
        parts(token).0 == self.place
    }

    /// Tells the owner about a trace, in a place that the trace owns.
    pub(super) fn tell(&self, message: Message) {
        let Some(address) = self.address() else { return };
        if address.notify(message).is_err() {
            tracing::error!(agent = %self.agent, "no place in the trace owner's mailbox");
        }
    }

    /// The dispatch of a trace whose end was reported; its place is free from now on.
    pub(super) fn take(&self, slot: Token) -> Option<Traced> {
        let mut state = self.state.lock();
        state.running.take_if(|trace| trace.token == self.token(slot));
        state.in_flight.remove(slot)
    }

    /// Queues that carried traced dispatches; forgets them.
    pub(super) fn take_queues(&self) -> Vec<QueueId> {
        std::mem::take(&mut self.state.lock().queues)
    }

    /// Puts queues back that turned out not to be drained.
    pub(super) fn restore_queues(&self, queues: Vec<QueueId>) {
        self.state.lock().queues.extend(queues);
    }

    /// Nothing is in flight: markers of unloaded code objects go.
    pub(super) fn settled(&self) {
        let old = std::mem::take(&mut self.state.lock().old_markers);
        drop(old);
    }

    /// Traces that begin from now on name `code`. Returns the device trace in progress, which does not.
    pub(super) fn loaded(
        &self,
        programs: &dyn PacketPrograms,
        code: &LoadedCodeObject,
    ) -> Result<Option<TraceId>, Error> {
        let instance = self.marker(programs, code, false, true)?;
        let mut state = self.state.lock();
        state.markers.push((code.id, instance));
        Ok(state.running)
    }

    /// A packet that puts the load or unload of `code` into a trace.
    pub(super) fn marker(
        &self,
        programs: &dyn PacketPrograms,
        code: &LoadedCodeObject,
        unload: bool,
        from_start: bool,
    ) -> Result<Box<dyn MarkerInstance>, Error> {
        let (address, bytes) = (code.base, code.size);
        let marker = CodeObjectMarker { id: code.id.0, address, bytes, unload, from_start };
        Ok(programs.marker(&self.shape, &marker, &self.memory)?)
    }

    /// Traces that begin from now on do not name it any more. Returns the device trace in progress.
    pub(super) fn unloaded(&self, id: CodeObjectId) -> Option<TraceId> {
        let mut state = self.state.lock();
        if let Some(index) = state.markers.iter().position(|(known, _)| *known == id) {
            let (_, marker) = state.markers.remove(index);
            if !state.in_flight.is_empty() {
                state.old_markers.push(marker);
            }
        }
        state.running
    }

    fn token(&self, slot: Token) -> Token {
        Token { index: (self.place as u32) << SLOT_BITS | slot.index, generation: slot.generation }
    }

    /// The service is gone, and something still holds its packets: the owner could never end if they held the lease
    /// too. It knows of every trace in progress, and keeps their slot.
    pub(super) fn give_up_lease(&self) {
        let mut state = self.state.lock();
        let Some(live) = state.live.as_mut() else { return };
        let (lease, memory) = (live.lease.take(), Arc::clone(&live.memory));
        drop(state);
        memory.give_up_lease();
        drop(lease); // sends to the owner: not under the lock, which hooks take
    }

    /// Keeps for good what packets in flight name.
    pub(super) fn leak(&self) {
        let mut state = self.state.lock();
        std::mem::forget(std::mem::take(&mut state.old_markers));
        std::mem::forget(std::mem::take(&mut state.markers));
        std::mem::forget(state.enable.take());
    }
}

/// The place of the lane and the slot of a token.
pub(super) const fn parts(token: Token) -> (usize, Token) {
    let slot = Token { index: token.index & ((1 << SLOT_BITS) - 1), generation: token.generation };
    ((token.index >> SLOT_BITS) as usize, slot)
}
