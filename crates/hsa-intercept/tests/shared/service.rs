//! A client of interception for tests, and packets.

use std::sync::{Arc, Mutex};

use wavescope_core::{
    AgentId, Answer, AqlPacket, Company, ContextId, Dispatch, DispatchEvent, DispatchSubscriber, Fence,
    Grant, LossReason, Outcome, PacketHeader, PacketType, ProgramSink, Service, Subscription, Token,
};

/// A kernel dispatch packet: no barrier bit, agent acquire, system release.
pub(crate) fn kernel(object: u64, signal: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::KERNEL_DISPATCH, false, Fence::Agent, Fence::System));
    packet.0[0] |= 1 << 16;
    packet.0[1] = 64 | 1 << 16;
    packet.0[2] = 1;
    (packet.0[3], packet.0[4], packet.0[5]) = (1024, 1, 1);
    packet.0[8] = object as u32;
    packet.0[9] = (object >> 32) as u32;
    packet.set_completion_signal(signal);
    packet
}

/// A barrier-AND of the application on `dependency`.
pub(crate) fn app_barrier(dependency: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::BARRIER_AND, true, Fence::None, Fence::None));
    packet.0[2] = dependency as u32;
    packet
}

/// A PM4 packet of a program, told apart by `mark`.
pub(crate) fn vendor(mark: u32, barrier: bool) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::VENDOR_SPECIFIC, barrier, Fence::System, Fence::System));
    packet.0[0] |= 1 << 16;
    packet.0[4] = mark;
    packet
}

pub(crate) const START: u32 = 1;
pub(crate) const READ: u32 = 2;
pub(crate) const STOP: u32 = 3;

/// What a [`FakeService`] does with a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Count,
    CountAndHold,
    Decline,
    Ignore,
}

/// A service that wraps kernels into start, read and stop packets.
pub(crate) struct FakeService {
    plan: Box<dyn Fn(&Dispatch) -> Plan + Send + Sync>,
    tokens: Mutex<u32>,
    pub(crate) events: Mutex<Vec<DispatchEvent>>,
}

impl FakeService {
    pub(crate) fn new(plan: impl Fn(&Dispatch) -> Plan + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { plan: Box::new(plan), tokens: Mutex::new(0), events: Mutex::new(Vec::new()) })
    }

    pub(crate) fn subscription(self: &Arc<Self>, agents: &[AgentId], serialize: bool) -> Subscription {
        let subscriber: Arc<dyn DispatchSubscriber> = Arc::<Self>::clone(self);
        Subscription {
            context: ContextId(1),
            service: Service::DispatchCounting,
            agents: agents.to_vec(),
            serialize,
            subscriber,
        }
    }

    pub(crate) fn dispatched(&self) -> Vec<Dispatch> {
        let events = self.events.lock().unwrap();
        let dispatched = events.iter().filter_map(|event| match event {
            DispatchEvent::Dispatched { dispatch, .. } => Some(*dispatch),
            DispatchEvent::Retired { .. } => None,
        });
        dispatched.collect()
    }

    pub(crate) fn lost(&self) -> Vec<LossReason> {
        let events = self.events.lock().unwrap();
        let lost = events.iter().filter_map(|event| match event {
            DispatchEvent::Retired { outcome: Outcome::Lost(reason), .. } => Some(*reason),
            _ => None,
        });
        lost.collect()
    }

    /// What may have run beside what retired, in that order.
    pub(crate) fn companies(&self) -> Vec<Company> {
        let events = self.events.lock().unwrap();
        let companies = events.iter().filter_map(|event| match event {
            DispatchEvent::Retired { company, .. } => Some(*company),
            DispatchEvent::Dispatched { .. } => None,
        });
        companies.collect()
    }

    pub(crate) fn retired(&self) -> usize {
        self.events.lock().unwrap().iter().filter(|e| matches!(e, DispatchEvent::Retired { .. })).count()
    }
}

impl DispatchSubscriber for FakeService {
    fn enqueue(&self, dispatch: &Dispatch, sink: &mut ProgramSink<'_>) -> Answer {
        let plan = (self.plan)(dispatch);
        match plan {
            Plan::Decline => return Answer::Decline,
            Plan::Ignore => return Answer::Ignore,
            Plan::Count | Plan::CountAndHold => {}
        }
        sink.before(&vendor(START, false));
        sink.after(&vendor(READ, true));
        sink.after(&vendor(STOP, true));
        let mut tokens = self.tokens.lock().unwrap();
        *tokens += 1;
        let grant = if plan == Plan::CountAndHold { Grant::UntilReturned } else { Grant::UntilRetired };
        Answer::Instrument { token: Token { index: *tokens, generation: 0 }, grant }
    }

    fn publish(&self, event: DispatchEvent) {
        self.events.lock().unwrap().push(event);
    }
}
