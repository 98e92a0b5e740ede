//! A queue on a device that does nothing but retire what the rig tells it to.

use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wavescope_aql_profile::{Builtin, Memory};
use wavescope_core::{
    Agent, AgentId, Answer, AqlPacket, ClaimTable, ContextId, Dispatch, DispatchEvent, DispatchSubscriber,
    DispatchTimes, Fence, GfxTarget, Interception, Overflow, PacketHeader, PacketType, PciLocation,
    ProgramSink, Service, Subscription, record_stream,
};
use wavescope_counting::{Choice, CounterConfig, Delivery, DispatchCounting, PoolSize, Setup};
use wavescope_hsa_intercept::{Device, Engine, Error, QueueHandle, Signal, SignalKind};

/// Dispatches of a batch.
pub(crate) const BATCH: usize = 64;

/// What is counted.
pub(crate) const COUNTERS: [&str; 3] = ["SQ_WAVES", "GRBM_COUNT", "GRBM_GUI_ACTIVE"];

const AGENT: AgentId = AgentId(0);
const LIMIT: Duration = Duration::from_secs(10);

/// Who listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    NoSubscriber,
    Declined { serialized: bool },
    Counted,
}

/// Signals are atomics, their handles the addresses. They live as long as the process.
#[derive(Default)]
pub(crate) struct Signals {
    /// Those that wake the host.
    pub(crate) interrupts: Mutex<Vec<u64>>,
}

fn value(signal: Signal) -> &'static AtomicI64 {
    let pointer = std::ptr::with_exposed_provenance::<AtomicI64>(signal.0 as usize);
    // SAFETY: every handle is the exposed address of an atomic that `create_signal` leaked.
    unsafe { &*pointer }
}

impl Device for Signals {
    fn create_signal(&self, initial: i64, kind: SignalKind) -> Result<Signal, Error> {
        let signal: &'static AtomicI64 = Box::leak(Box::new(AtomicI64::new(initial)));
        let handle = std::ptr::from_ref(signal).expose_provenance() as u64;
        if kind == SignalKind::Interrupt {
            self.interrupts.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
        }
        Ok(Signal(handle))
    }

    fn destroy_signal(&self, _signal: Signal) {}

    fn load(&self, signal: Signal) -> i64 {
        value(signal).load(Ordering::Acquire)
    }

    fn store(&self, signal: Signal, new: i64) {
        value(signal).store(new, Ordering::Release);
    }

    fn subtract(&self, signal: Signal, by: i64) {
        value(signal).fetch_sub(by, Ordering::AcqRel);
    }

    fn wait_below(&self, signal: Signal, below: i64, limit: Duration) {
        let deadline = std::time::Instant::now() + limit;
        while self.load(signal) >= below && std::time::Instant::now() < deadline {
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

struct Decliner;

impl DispatchSubscriber for Decliner {
    fn enqueue(&self, _dispatch: &Dispatch, _sink: &mut ProgramSink<'_>) -> Answer {
        Answer::Decline
    }

    fn publish(&self, _event: DispatchEvent) {}
}

pub(crate) struct Rig {
    queue: QueueHandle,
    /// What the application submits.
    pub(crate) batch: Vec<AqlPacket>,
    submitted: u64,
    /// Completion signals of the last batch that retire something, and how often.
    written: Vec<u64>,
    counting: Option<DispatchCounting>,
    pub(crate) signals: Arc<Signals>,
    engine: Arc<Engine>,
}

impl Rig {
    /// With packet programs in `memory`.
    pub(crate) fn new(case: Case, memory: Arc<dyn Memory>) -> Self {
        let signals = Arc::new(Signals::default());
        let device: Arc<dyn Device> = Arc::<Signals>::clone(&signals);
        let engine = Arc::new(Engine::new(device, [AGENT]));
        let queue =
            engine.add_queue(AGENT).unwrap_or_else(|| unreachable!("the agent is one of the engine's"));
        let counting = match case {
            Case::NoSubscriber => None,
            Case::Declined { serialized } => {
                subscribe_decliner(&engine, serialized);
                None
            }
            Case::Counted => Some(counting(&engine, memory)),
        };
        let application = signals.create_signal(i64::MAX / 2, SignalKind::Interrupt);
        let signal = application.map_or(0, |signal| signal.0);
        let written = Vec::with_capacity(BATCH * 8);
        Self { queue, batch: vec![kernel(signal); BATCH], submitted: 0, written, counting, signals, engine }
    }

    /// Submits one batch.
    pub(crate) fn submit(&mut self) {
        self.submit_to(|packets| _ = black_box(packets));
    }

    /// Submits one batch and shows what is written for it.
    pub(crate) fn submit_to(&mut self, mut show: impl FnMut(&[AqlPacket])) {
        let written = &mut self.written;
        self.queue.rewrite(&self.batch, self.submitted, |packets| {
            let signals = packets.iter().map(AqlPacket::completion_signal).filter(|&signal| signal != 0);
            written.extend(signals);
            show(packets);
        });
        self.submitted += BATCH as u64;
    }

    /// Completes every packet of the last batch and waits until that was seen.
    pub(crate) fn retire(&mut self) {
        for signal in self.written.drain(..) {
            self.signals.subtract(Signal(signal), 1);
        }
        assert!(self.queue.wait_empty(LIMIT), "the batch did not retire");
        if let Some(counting) = &self.counting {
            assert!(counting.flush(LIMIT).is_ok(), "the counters were not delivered");
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(counting) = &self.counting {
            assert!(counting.stop(LIMIT).is_ok(), "counting did not stop");
        }
        assert!(self.engine.shut_down(LIMIT).is_ok(), "the engine did not shut down");
    }
}

fn subscribe_decliner(engine: &Engine, serialize: bool) {
    let subscription = Subscription {
        context: ContextId(1),
        service: Service::DispatchCounting,
        agents: vec![AGENT],
        serialize,
        subscriber: Arc::new(Decliner),
    };
    assert!(engine.subscribe(subscription).is_ok(), "subscribed");
}

fn counting(engine: &Arc<Engine>, memory: Arc<dyn Memory>) -> DispatchCounting {
    let config = CounterConfig::new(&mi300x(), &COUNTERS, &Builtin, memory, PoolSize::default());
    let config = config.unwrap_or_else(|error| unreachable!("{error}"));
    let (sink, records) = record_stream(1, Overflow::DropNewest);
    drop(records);
    let interception: Arc<dyn Interception> = Arc::<Engine>::clone(engine);
    let setup = Setup {
        context: ContextId(1),
        agents: vec![AGENT],
        interception,
        claims: Arc::new(ClaimTable::new()),
        choose: Arc::new(move |_| Choice { config: Some(Arc::clone(&config)), user_data: 0 }),
        delivery: Delivery::Stream(sink),
    };
    let counting = DispatchCounting::new(setup).unwrap_or_else(|error| unreachable!("{error}"));
    assert!(counting.start().is_ok(), "started");
    counting
}

/// An MI300X as its topology describes it.
fn mi300x() -> Agent {
    Agent {
        id: AGENT,
        node: 1,
        gpu_id: 1,
        target: GfxTarget::GFX942,
        device_id: 29857,
        marketing_name: String::new(),
        xcc_count: 8,
        shader_engines: 32,
        arrays_per_engine: 1,
        cu_slots_per_array: 10,
        compute_units: 304,
        simds_per_cu: 4,
        waves_per_simd: 8,
        wave_size: 64,
        lds_bytes: 65_536,
        vram_bytes: 0,
        pci: PciLocation { domain: 0, location_id: 0 },
        max_engine_clock_mhz: 2100,
        max_memory_clock_mhz: 1300,
    }
}

fn kernel(signal: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::KERNEL_DISPATCH, false, Fence::Agent, Fence::System));
    packet.set_completion_signal(signal);
    packet
}
