//! A scripted GPU that records every call, and a rig around one owner.
#![expect(clippy::unwrap_used, reason = "helpers of the tests")]
#![expect(dead_code, reason = "each test file uses its part")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use wavescope_att_resources::{
    AgentOwner, BufferId, Completion, Device, DeviceError, Error, Lease, Limits, Message, Need, Source,
    TraceClient, TraceId,
};
use wavescope_core::actor::{Address, Pending};
use wavescope_core::sync::{Condvar, Mutex};
use wavescope_core::{AgentId, AqlPacket, ContextId, LossReason, QueueId, Token};

pub(crate) const AGENT: AgentId = AgentId(0);
pub(crate) const HANDLE: u64 = 0xA6E7;
pub(crate) const MIB: u64 = 1 << 20;
/// What the scripted GPU adds to every address: memory that is not page-aligned.
pub(crate) const MISALIGNMENT: u64 = 0x110;

/// Everything that happened, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    CreateQueue(usize),
    DestroyQueue,
    Allocate {
        buffer: BufferId,
        bytes: u64,
    },
    Free(BufferId),
    Leak(BufferId),
    /// Tags of the packets.
    Submit(Vec<u32>),
    Ended(TraceId, Result<(), LossReason>),
    Release(TraceId),
}

#[derive(Default)]
struct Script {
    log: Vec<Event>,
    submissions: VecDeque<Completion>,
    raw_addresses: Vec<(BufferId, u64)>,
    next_address: u64,
    refuse_queue: bool,
    refuse_allocations: u32,
    refuse_submissions: bool,
}

/// The scripted GPU; clones share the script.
#[derive(Clone, Default)]
pub(crate) struct Gpu {
    script: Arc<(Mutex<Script>, Condvar)>,
}

impl Gpu {
    pub(crate) fn log(&self) -> Vec<Event> {
        self.script.0.lock().log.clone()
    }

    pub(crate) fn count(&self, wanted: impl Fn(&Event) -> bool) -> usize {
        self.log().iter().filter(|event| wanted(event)).count()
    }

    pub(crate) fn output_allocations(&self) -> Vec<u64> {
        let outputs = self.log().into_iter().filter_map(|event| match event {
            Event::Allocate { buffer: BufferId::Output(_), bytes } => Some(bytes),
            _ => None,
        });
        outputs.collect()
    }

    pub(crate) fn raw_address(&self, buffer: BufferId) -> u64 {
        let script = self.script.0.lock();
        script.raw_addresses.iter().find(|(allocated, _)| *allocated == buffer).unwrap().1
    }

    pub(crate) fn refuse_queue(&self, refuse: bool) {
        self.script.0.lock().refuse_queue = refuse;
    }

    pub(crate) fn refuse_allocations(&self, count: u32) {
        self.script.0.lock().refuse_allocations = count;
    }

    pub(crate) fn refuse_submissions(&self, refuse: bool) {
        self.script.0.lock().refuse_submissions = refuse;
    }

    /// Waits until a batch is in the queue, and takes its completion.
    pub(crate) fn next_submission(&self) -> Completion {
        let mut script = self.script.0.lock();
        loop {
            match script.submissions.pop_front() {
                Some(completion) => return completion,
                None => script = self.script.1.wait(script),
            }
        }
    }

    /// Lets the batch that comes next retire.
    pub(crate) fn retire(&self) {
        self.next_submission().finish(Ok(()));
    }

    fn note(&self, event: Event) {
        self.script.0.lock().log.push(event);
        self.script.1.notify_all();
    }

    /// Waits until `wanted` events happened.
    pub(crate) fn wait_for(&self, count: usize, wanted: impl Fn(&Event) -> bool) {
        let mut script = self.script.0.lock();
        while script.log.iter().filter(|event| wanted(event)).count() < count {
            script = self.script.1.wait(script);
        }
    }
}

fn refused(call: &'static str) -> DeviceError {
    DeviceError::Call { call, status: 0x1008 }
}

impl Device for Gpu {
    fn create_queue(&mut self, packets: usize) -> Result<(), DeviceError> {
        self.note(Event::CreateQueue(packets));
        if self.script.0.lock().refuse_queue { Err(refused("queue_create")) } else { Ok(()) }
    }

    fn destroy_queue(&mut self) {
        self.note(Event::DestroyQueue);
    }

    fn allocate(&mut self, buffer: BufferId, bytes: u64) -> Result<u64, DeviceError> {
        self.note(Event::Allocate { buffer, bytes });
        let mut script = self.script.0.lock();
        if script.refuse_allocations > 0 {
            script.refuse_allocations -= 1;
            return Err(refused("allocate"));
        }
        script.next_address += 0x1000_0000;
        let raw = script.next_address + MISALIGNMENT;
        script.raw_addresses.push((buffer, raw));
        Ok(raw)
    }

    fn free(&mut self, buffer: BufferId, address: u64) {
        assert_eq!(address, self.raw_address(buffer), "freed at the address it was allocated");
        self.note(Event::Free(buffer));
    }

    fn leak(&mut self, buffer: BufferId, _address: u64) {
        self.note(Event::Leak(buffer));
    }

    fn submit(&mut self, packets: &[AqlPacket], done: Completion) -> Result<(), DeviceError> {
        if self.script.0.lock().refuse_submissions {
            return Err(refused("submit"));
        }
        self.script.0.lock().submissions.push_back(done);
        self.note(Event::Submit(packets.iter().map(|packet| packet.0[1]).collect()));
        Ok(())
    }
}

/// A context's face that writes into the GPU's log.
struct Client(Gpu);

impl TraceClient for Client {
    fn ended(&self, trace: TraceId, outcome: Result<(), LossReason>) {
        self.0.note(Event::Ended(trace, outcome));
    }

    fn release(&self, trace: TraceId) {
        self.0.note(Event::Release(trace));
    }
}

/// An owner on a scripted GPU.
pub(crate) struct Rig {
    pub(crate) gpu: Gpu,
    pub(crate) owner: Arc<AgentOwner>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with_patience(Duration::from_secs(60))
    }

    pub(crate) fn with_patience(patience: Duration) -> Self {
        let gpu = Gpu::default();
        let limits = Limits { patience, traces: 8 };
        let owner = AgentOwner::new(AGENT, Box::new(gpu.clone()), limits);
        Self { gpu, owner }
    }

    pub(crate) fn register(&self, context: u64, buffer_bytes: u64, buffers: u32) -> Result<(), Error> {
        self.owner.register(ContextId(context), HANDLE, Need { buffer_bytes, buffers })
    }

    pub(crate) fn acquire(&self, context: u64) -> Result<Lease, Error> {
        self.owner.acquire(ContextId(context), HANDLE, Arc::new(Client(self.gpu.clone())))
    }

    /// A registered and leased context with one buffer of 1 MiB.
    pub(crate) fn lease(&self, context: u64) -> Lease {
        self.register(context, MIB, 1).unwrap();
        self.acquire(context).unwrap()
    }

    pub(crate) fn address(&self) -> Address<Message> {
        self.owner.address().unwrap()
    }

    /// Returns when everything that was sent before has been handled.
    pub(crate) fn flush(&self) {
        let context = ContextId(u64::MAX);
        let asked = self.address().ask(|reply| Message::Unhook { context, reply }).wait().unwrap();
        assert!(matches!(asked, Err(Error::NotRegistered { .. })));
    }

    pub(crate) fn notify(&self, message: Message) {
        assert!(matches!(self.address().notify(message), Ok(true)));
    }

    /// Begins a dispatch's trace as the enqueue path does, up to its packets in the queue.
    pub(crate) fn dispatch(&self, trace: TraceId, queue: u64) {
        self.notify(Message::Begin {
            trace,
            source: Source::Dispatch { queue: QueueId(queue) },
            reply: None,
        });
        self.notify(Message::StopSubmitted { trace });
    }

    pub(crate) fn retired(&self, trace: TraceId) {
        self.notify(Message::StopRetired { trace, outcome: Ok(()) });
    }

    pub(crate) fn lost(&self, trace: TraceId, reason: LossReason) {
        self.notify(Message::StopRetired { trace, outcome: Err(reason) });
    }

    pub(crate) fn copied(&self, trace: TraceId) {
        self.notify(Message::SlotCopied { trace });
    }

    pub(crate) fn drained(&self, context: u64, queue: u64) {
        let (context, queue) = (ContextId(context), QueueId(queue));
        self.address().send(Message::Drained { context, queue }).unwrap();
    }

    pub(crate) fn begin_device(&self, trace: TraceId) -> Pending<Result<(), Error>> {
        let source = Source::Device { start: packets(&[1, 2]), stop: packets(&[3]) };
        self.address().ask(|reply| Message::Begin { trace, source, reply: Some(reply) })
    }

    /// Begins a device trace and lets its start retire.
    pub(crate) fn started(&self, trace: TraceId) {
        let begin = self.begin_device(trace);
        self.gpu.retire();
        begin.wait().unwrap().unwrap();
    }

    pub(crate) fn stop_device(&self, trace: TraceId) -> Pending<Result<(), Error>> {
        self.address().ask(|reply| Message::Stop { trace, reply })
    }

    /// Brings a running device trace to its end.
    pub(crate) fn finish_device(&self, trace: TraceId) {
        let stop = self.stop_device(trace);
        self.gpu.retire();
        self.gpu.wait_for(1, |event| *event == Event::Ended(trace, Ok(())));
        self.copied(trace);
        stop.wait().unwrap().unwrap();
    }

    pub(crate) fn unhook(&self, context: u64) -> Pending<Result<(), Error>> {
        let context = ContextId(context);
        self.address().ask(|reply| Message::Unhook { context, reply })
    }
}

pub(crate) fn trace(context: u64, number: u32) -> TraceId {
    TraceId { context: ContextId(context), token: Token { index: number, generation: 0 } }
}

/// Packets that are told apart by a tag.
pub(crate) fn packets(tags: &[u32]) -> Vec<AqlPacket> {
    let packet = |&tag: &u32| {
        let mut packet = AqlPacket([0; 16]);
        packet.0[1] = tag;
        packet
    };
    tags.iter().map(packet).collect()
}
