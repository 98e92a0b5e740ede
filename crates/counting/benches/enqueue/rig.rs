//! A queue on a device that does nothing but retire what the rig tells it to.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wavescope_aql_profile::{AllocationRequest, Builtin, Memory, Status};
use wavescope_core::{
    Agent, AgentId, Answer, AqlPacket, ClaimTable, ContextId, Dispatch, DispatchEvent, DispatchSubscriber,
    DispatchTimes, Fence, GfxTarget, Interception, Overflow, PacketHeader, PacketType, PciLocation,
    ProgramSink, Service, Subscription, record_stream,
};
use wavescope_counting::{Choice, CounterConfig, Delivery, DispatchCounting, PoolSize, Setup};
use wavescope_hsa_intercept::{Device, Engine, Error, QueueHandle, Signal, SignalKind};

/// Dispatches of a batch.
pub(crate) const BATCH: usize = 64;

const AGENT: AgentId = AgentId(0);
const LIMIT: Duration = Duration::from_secs(10);

/// Who listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    NoSubscriber,
    Declined,
    DeclinedSerialized,
    Counted,
}

/// Signals are atomics, their handles the addresses. They live as long as the process.
struct Signals;

fn value(signal: Signal) -> &'static AtomicI64 {
    let pointer = std::ptr::with_exposed_provenance::<AtomicI64>(signal.0 as usize);
    // SAFETY: every handle is the exposed address of an atomic that `create_signal` leaked.
    unsafe { &*pointer }
}

impl Device for Signals {
    fn create_signal(&self, initial: i64, _kind: SignalKind) -> Result<Signal, Error> {
        let signal: &'static AtomicI64 = Box::leak(Box::new(AtomicI64::new(initial)));
        Ok(Signal(std::ptr::from_ref(signal).expose_provenance() as u64))
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

/// Memory from the heap.
#[derive(Default)]
struct Heap(Mutex<HashMap<u64, Layout>>);

impl Memory for Heap {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        let layout =
            Layout::from_size_align(request.bytes.max(1) as usize, 4096).map_err(|_| Status::ERROR)?;
        // SAFETY: the size is not 0.
        let address = unsafe { alloc_zeroed(layout) }.expose_provenance() as u64;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(address, layout);
        Ok(address)
    }

    fn free(&self, address: u64) {
        let layout = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
        if let Some(layout) = layout {
            // SAFETY: allocated above with this layout, freed once.
            unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address as usize), layout) };
        }
    }

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        let target: *mut u8 = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the caller stays inside its allocation.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        let source: *const u8 = std::ptr::with_exposed_provenance(address as usize);
        // SAFETY: the caller stays inside its allocation.
        unsafe { source.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
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
    batch: Vec<AqlPacket>,
    submitted: u64,
    /// Completion signals of the last batch that retire something, and how often.
    written: Vec<u64>,
    counting: Option<DispatchCounting>,
    _engine: Arc<Engine>,
}

impl Rig {
    pub(crate) fn new(case: Case) -> Self {
        let engine = Arc::new(Engine::new(Arc::new(Signals), [AGENT]));
        let queue =
            engine.add_queue(AGENT).unwrap_or_else(|| unreachable!("the agent is one of the engine's"));
        let counting = match case {
            Case::NoSubscriber => None,
            Case::Declined | Case::DeclinedSerialized => {
                subscribe_decliner(&engine, case == Case::DeclinedSerialized);
                None
            }
            Case::Counted => Some(counting(&engine)),
        };
        let application = Signals.create_signal(i64::MAX / 2, SignalKind::Interrupt);
        let signal = application.map_or(0, |signal| signal.0);
        let written = Vec::with_capacity(BATCH * 8);
        Self { queue, batch: vec![kernel(signal); BATCH], submitted: 0, written, counting, _engine: engine }
    }

    /// Submits one batch.
    pub(crate) fn submit(&mut self) {
        let written = &mut self.written;
        self.queue.rewrite(&self.batch, self.submitted, |packets| {
            let signals = packets.iter().map(AqlPacket::completion_signal).filter(|&signal| signal != 0);
            written.extend(signals);
            black_box(packets);
        });
        self.submitted += BATCH as u64;
    }

    /// Completes every packet of the last batch and waits until that was seen.
    pub(crate) fn retire(&mut self) {
        for signal in self.written.drain(..) {
            value(Signal(signal)).fetch_sub(1, Ordering::AcqRel);
        }
        assert!(self.queue.wait_empty(LIMIT), "the batch did not retire");
        if let Some(counting) = &self.counting {
            assert!(counting.flush(LIMIT).is_ok(), "the counters were not delivered");
        }
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

fn counting(engine: &Arc<Engine>) -> DispatchCounting {
    let names = ["SQ_WAVES", "GRBM_COUNT", "GRBM_GUI_ACTIVE"];
    let config =
        CounterConfig::new(&mi300x(), &names, &Builtin, Arc::new(Heap::default()), PoolSize::default());
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
