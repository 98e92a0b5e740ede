//! A device that does nothing, and queues whose packets complete when the bench says so.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use wavescope_core::{
    AgentId, Answer, AqlPacket, ContextId, Dispatch, DispatchEvent, DispatchSubscriber, DispatchTimes, Fence,
    Grant, Interception, Outcome, PacketHeader, PacketType, ProgramSink, Service, Subscription, Token,
};
use wavescope_hsa_intercept::{
    Device, Engine, Error, KernelTracer, QueueHandle, Signal, SignalKind, TracedKernel, Tracing,
};

pub(crate) const AGENT: AgentId = AgentId(0);
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// Signals are atomics, their handles the addresses. They live as long as the process.
pub(crate) struct Signals;

pub(crate) fn value(signal: u64) -> &'static AtomicI64 {
    let pointer = std::ptr::with_exposed_provenance::<AtomicI64>(signal as usize);
    // SAFETY: every handle is the exposed address of an atomic that `new_signal` leaked.
    unsafe { &*pointer }
}

pub(crate) fn new_signal(initial: i64) -> u64 {
    let signal: &'static AtomicI64 = Box::leak(Box::new(AtomicI64::new(initial)));
    std::ptr::from_ref(signal).expose_provenance() as u64
}

impl Device for Signals {
    fn create_signal(&self, initial: i64, _kind: SignalKind) -> Result<Signal, Error> {
        Ok(Signal(new_signal(initial)))
    }

    fn destroy_signal(&self, _signal: Signal) {}

    fn load(&self, signal: Signal) -> i64 {
        value(signal.0).load(Ordering::Acquire)
    }

    fn store(&self, signal: Signal, new: i64) {
        value(signal.0).store(new, Ordering::Release);
    }

    fn subtract(&self, signal: Signal, by: i64) {
        value(signal.0).fetch_sub(by, Ordering::AcqRel);
    }

    fn wait_below(&self, signal: Signal, below: i64, limit: Duration) {
        let deadline = Instant::now() + limit;
        while self.load(signal) >= below && Instant::now() < deadline {
            std::thread::yield_now();
        }
    }

    fn dispatch_times(&self, _agent: AgentId, _signal: Signal) -> Option<DispatchTimes> {
        None
    }

    fn now_ns(&self) -> u64 {
        0
    }
}

/// What a client does with every kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    Nobody,
    Declines {
        serialized: bool,
    },
    /// One packet before and two behind each kernel, as counting has.
    Measures,
    Traces,
}

struct Client {
    measures: bool,
    tokens: AtomicU32,
}

impl DispatchSubscriber for Client {
    fn enqueue(&self, _dispatch: &Dispatch, sink: &mut ProgramSink<'_>) -> Answer {
        if !self.measures {
            return Answer::Decline;
        }
        sink.before(&packet(PacketType::VENDOR_SPECIFIC, 0));
        sink.after(&packet(PacketType::VENDOR_SPECIFIC, 0));
        sink.after(&packet(PacketType::VENDOR_SPECIFIC, 0));
        let index = self.tokens.fetch_add(1, Ordering::Relaxed);
        Answer::Instrument { token: Token { index, generation: 0 }, grant: Grant::UntilRetired }
    }

    fn publish(&self, event: DispatchEvent) {
        black_box(event);
    }
}

struct Tracer;

impl KernelTracer for Tracer {
    fn enqueued(&self, kernel: &TracedKernel) {
        black_box(kernel);
    }

    fn completed(&self, kernel: &TracedKernel, outcome: Outcome) {
        black_box((kernel, outcome));
    }
}

/// An engine with queues, and what its packets have yet to complete.
pub(crate) struct Rig {
    queues: Vec<(QueueHandle, u64)>,
    completions: Vec<u64>,
    _engine: Engine,
}

impl Rig {
    pub(crate) fn new(listener: Listener, queues: usize) -> Self {
        let engine = Engine::new(Arc::new(Signals), [AGENT]);
        let client = |measures, serialize| {
            let subscriber = Arc::new(Client { measures, tokens: AtomicU32::new(0) });
            let (context, service) = (ContextId(1), Service::DispatchCounting);
            engine.subscribe(Subscription { context, service, agents: vec![AGENT], serialize, subscriber })
        };
        let listening = match listener {
            Listener::Nobody => Ok(None),
            Listener::Declines { serialized } => client(false, serialized).map(Some),
            Listener::Measures => client(true, false).map(Some),
            Listener::Traces => {
                let tracer = Arc::new(Tracer);
                engine.trace(Tracing { context: ContextId(1), agents: vec![AGENT], tracer }).map(Some)
            }
        };
        assert!(listening.is_ok(), "subscribed");
        let queues = (0..queues).filter_map(|_| engine.add_queue(AGENT)).map(|queue| (queue, 0)).collect();
        Self { queues, completions: Vec::new(), _engine: engine }
    }

    /// Submits a batch to one queue.
    pub(crate) fn submit(&mut self, queue: usize, batch: &[AqlPacket]) {
        let (queue, next) = &mut self.queues[queue];
        let completions = &mut self.completions;
        queue.rewrite(batch, *next, |packets| {
            completions
                .extend(packets.iter().map(AqlPacket::completion_signal).filter(|&signal| signal != 0));
            black_box(packets);
        });
        *next += batch.len() as u64;
    }

    /// Completes every packet that was submitted.
    pub(crate) fn complete(&mut self) {
        for signal in self.completions.drain(..) {
            value(signal).fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Waits until all of it was published.
    pub(crate) fn wait(&self) {
        let empty = self.queues.iter().all(|(queue, _)| queue.wait_empty(LIMIT));
        assert!(empty, "everything retired");
    }
}

pub(crate) fn packet(kind: PacketType, completion: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(kind, false, Fence::Agent, Fence::System));
    packet.set_completion_signal(completion);
    packet
}
