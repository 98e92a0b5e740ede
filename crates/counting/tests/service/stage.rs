//! Interception, memory and packet programs that do what a test says.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use wavescope_aql_profile::{
    AgentShape, AllocationRequest, Builtin, CodeObjectMarker, CounterInstance, CounterProgram, Error, Event,
    MarkerInstance, Memory, PacketPrograms, Sample, Status, TraceConfig, TraceProgram, Warning,
};
use wavescope_core::{
    Agent, AgentId, Answer, AqlPacket, ClaimTable, Company, ContextId, Dispatch, DispatchEvent, DispatchId,
    DispatchSubscriber, DispatchTimes, GfxTarget, Grant, Interception, InterceptionError, Outcome,
    PciLocation, ProgramSink, QueueId, Subscription, SubscriptionId, Token,
};
use wavescope_counting::{Choice, CounterConfig, Delivery, DispatchCounting, PoolSize, Setup};

const AGENT: AgentId = AgentId(0);

type DuringSubscribe = Box<dyn Fn(&dyn DispatchSubscriber) + Send>;

/// Interception without a GPU: the test plays the queue.
#[derive(Default)]
pub(crate) struct Stage {
    ids: AtomicU64,
    subscriber: Mutex<Option<Arc<dyn DispatchSubscriber>>>,
    during_subscribe: Mutex<Option<DuringSubscribe>>,
    during_drain: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    unsubscribed: AtomicUsize,
    returned: Mutex<Vec<(SubscriptionId, Token)>>,
    came_back: Condvar,
    /// The next drains take all the time that they are given.
    pub(crate) drains_are_slow: AtomicBool,
    /// A hook is inside a callback.
    inside_callback: AtomicBool,
    /// Something enqueued before has not retired.
    pub(crate) unsettled: AtomicBool,
    pub(crate) drains_fail: AtomicBool,
}

impl Interception for Stage {
    fn subscribe(&self, subscription: Subscription) -> Result<SubscriptionId, InterceptionError> {
        let id = SubscriptionId(self.ids.fetch_add(1, Ordering::Relaxed) + 1);
        if let Some(during) = self.during_subscribe.lock().unwrap().take() {
            during(&*subscription.subscriber);
        }
        *self.subscriber.lock().unwrap() = Some(subscription.subscriber);
        Ok(id)
    }

    fn quiesce(&self, subscription: SubscriptionId) -> Result<(), InterceptionError> {
        let (agent, queue, waited) = (AGENT, QueueId(7), Duration::from_secs(10));
        let busy = InterceptionError::CallbackBusy { subscription, agent, queue, waited };
        if self.inside_callback.load(Ordering::Relaxed) { Err(busy) } else { Ok(()) }
    }

    fn settle(&self, subscription: SubscriptionId, timeout: Duration) -> Result<(), InterceptionError> {
        if self.unsettled.load(Ordering::Relaxed) {
            return Err(InterceptionError::DrainTimedOut { subscription, in_flight: 1, timeout });
        }
        Ok(())
    }

    fn drain(&self, _id: SubscriptionId, timeout: Duration) -> Result<(), InterceptionError> {
        if let Some(during) = self.during_drain.lock().unwrap().take() {
            during();
        }
        if self.drains_fail.load(Ordering::Relaxed) {
            return Err(InterceptionError::DrainTimedOut { subscription: _id, in_flight: 1, timeout });
        }
        if self.drains_are_slow.load(Ordering::Relaxed) {
            let returned = self.returned.lock().unwrap();
            drop(self.came_back.wait_timeout_while(returned, timeout, |_| true).unwrap());
        }
        Ok(())
    }

    fn unsubscribe(&self, _id: SubscriptionId) -> Result<(), InterceptionError> {
        self.unsubscribed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn return_grant(&self, id: SubscriptionId, token: Token) {
        self.returned.lock().unwrap().push((id, token));
        self.came_back.notify_all();
    }
}

impl Stage {
    /// Runs `during` inside the next `subscribe`, before the service knows its id.
    pub(crate) fn during_subscribe(&self, during: impl Fn(&dyn DispatchSubscriber) + Send + 'static) {
        *self.during_subscribe.lock().unwrap() = Some(Box::new(during));
    }

    /// Runs `during` inside the next `drain`.
    pub(crate) fn during_drain(&self, during: impl FnOnce() + Send + 'static) {
        *self.during_drain.lock().unwrap() = Some(Box::new(during));
    }

    /// A hook enters a callback, or leaves it.
    pub(crate) fn set_inside_callback(&self, inside: bool) {
        self.inside_callback.store(inside, Ordering::Relaxed);
    }

    /// How often somebody unsubscribed.
    pub(crate) fn unsubscribed(&self) -> usize {
        self.unsubscribed.load(Ordering::Relaxed)
    }

    pub(crate) fn subscriber(&self) -> Arc<dyn DispatchSubscriber> {
        self.subscriber.lock().unwrap().clone().unwrap()
    }

    /// Grants that came back, in order.
    pub(crate) fn returned(&self) -> Vec<(u64, Token)> {
        self.returned.lock().unwrap().iter().map(|(id, token)| (id.0, *token)).collect()
    }

    /// Waits until `count` grants came back.
    pub(crate) fn wait_returned(&self, count: usize) -> Vec<(u64, Token)> {
        let returned = self.returned.lock().unwrap();
        let too_few = |returned: &mut Vec<_>| returned.len() < count;
        let (returned, waited) = self.came_back.wait_timeout_while(returned, crate::LIMIT, too_few).unwrap();
        assert!(!waited.timed_out(), "{returned:?} of {count} grants came back");
        drop(returned);
        self.returned()
    }
}

/// A dispatch that was instrumented.
#[derive(Clone, Debug)]
pub(crate) struct Launched {
    pub(crate) token: Token,
    pub(crate) grant: Grant,
    pub(crate) before: Vec<AqlPacket>,
}

/// Enqueues dispatch number `id`; `None` if it is not counted.
pub(crate) fn launch(subscriber: &dyn DispatchSubscriber, id: u64) -> Option<Launched> {
    let dispatch = Dispatch {
        id: DispatchId(id),
        agent: AGENT,
        queue: QueueId(1),
        kernel_object: 0,
        grid: [64, 1, 1],
        workgroup: [64, 1, 1],
        private_segment_bytes: 0,
        group_segment_bytes: 0,
        thread: None,
    };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    match subscriber.enqueue(&dispatch, &mut ProgramSink::new(&mut before, &mut after)) {
        Answer::Instrument { token, grant } => {
            subscriber.publish(DispatchEvent::Dispatched { token, dispatch });
            Some(Launched { token, grant, before })
        }
        Answer::Decline | Answer::Ignore => None,
    }
}

pub(crate) fn end(subscriber: &dyn DispatchSubscriber, launched: &Launched, outcome: Outcome) {
    subscriber.publish(DispatchEvent::Retired {
        token: launched.token,
        outcome,
        company: Company::default(),
    });
}

pub(crate) fn retire(subscriber: &dyn DispatchSubscriber, launched: &Launched) {
    end(subscriber, launched, Outcome::Completed(DispatchTimes::default()));
}

/// Memory that the GPU of these tests never writes.
#[derive(Default)]
pub(crate) struct Heap(Mutex<(u64, BTreeMap<u64, Vec<u8>>)>);

impl Heap {
    fn with<T>(&self, address: u64, bytes: usize, use_it: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut heap = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, buffer) = heap.1.range_mut(..=address).next_back().unwrap();
        let offset = (address - start) as usize;
        use_it(&mut buffer[offset..offset + bytes])
    }
}

impl Memory for Heap {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        let mut heap = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = heap.0 + 0x10_0000;
        heap.0 = address + request.bytes.next_multiple_of(4096);
        heap.1.insert(address, vec![0; request.bytes as usize]);
        Ok(address)
    }

    fn free(&self, address: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&address);
    }

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        self.with(address, bytes.len(), |memory| memory.copy_from_slice(bytes));
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        self.with(address, into.len(), |memory| into.copy_from_slice(memory));
    }
}

/// What the instances of [`Watched`] did, and are to do.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) made: AtomicUsize,
    pub(crate) siblings: AtomicUsize,
    pub(crate) cleared: AtomicUsize,
    pub(crate) fail_reads: AtomicBool,
}

/// The built-in programs, watched.
pub(crate) struct Watched(pub(crate) Arc<Watch>);

impl PacketPrograms for Watched {
    fn origin(&self) -> String {
        "test".to_owned()
    }

    fn counters(&self, agent: &AgentShape, events: &[Event]) -> Result<Arc<dyn CounterProgram>, Error> {
        Ok(Arc::new(WatchedProgram { inner: Builtin.counters(agent, events)?, watch: Arc::clone(&self.0) }))
    }

    fn trace(&self, agent: &AgentShape, config: &TraceConfig) -> Result<Arc<dyn TraceProgram>, Error> {
        Builtin.trace(agent, config)
    }

    fn marker(
        &self,
        agent: &AgentShape,
        marker: &CodeObjectMarker,
        memory: &Arc<dyn Memory>,
    ) -> Result<Box<dyn MarkerInstance>, Error> {
        Builtin.marker(agent, marker, memory)
    }
}

struct WatchedProgram {
    inner: Arc<dyn CounterProgram>,
    watch: Arc<Watch>,
}

impl CounterProgram for WatchedProgram {
    fn events(&self) -> &[Event] {
        self.inner.events()
    }

    fn samples(&self) -> &[Sample] {
        self.inner.samples()
    }

    fn warnings(&self) -> &[Warning] {
        self.inner.warnings()
    }

    fn output_bytes(&self) -> u64 {
        self.inner.output_bytes()
    }

    fn instance(&self, memory: &Arc<dyn Memory>) -> Result<Box<dyn CounterInstance>, Error> {
        self.watch.made.fetch_add(1, Ordering::Relaxed);
        let inner = self.inner.instance(memory)?;
        Ok(Box::new(WatchedInstance { inner, watch: Arc::clone(&self.watch) }))
    }
}

struct WatchedInstance {
    inner: Box<dyn CounterInstance>,
    watch: Arc<Watch>,
}

impl CounterInstance for WatchedInstance {
    fn start(&self) -> AqlPacket {
        self.inner.start()
    }

    fn read(&self) -> AqlPacket {
        self.inner.read()
    }

    fn stop(&self) -> AqlPacket {
        self.inner.stop()
    }

    fn output(&self) -> (u64, u64) {
        self.inner.output()
    }

    fn clear(&self) {
        self.watch.cleared.fetch_add(1, Ordering::Relaxed);
        self.inner.clear();
    }

    fn iterate(&self, each: &mut dyn FnMut(&Sample, u64) -> ControlFlow<Status>) -> Result<(), Error> {
        if self.watch.fail_reads.load(Ordering::Relaxed) {
            return Err(Error::Callback { status: Status::ERROR });
        }
        self.inner.iterate(each)
    }

    fn sibling(&self) -> Result<Box<dyn CounterInstance>, Error> {
        self.watch.siblings.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Self { inner: self.inner.sibling()?, watch: Arc::clone(&self.watch) }))
    }
}

/// A service on `stage` that counts every dispatch with a pool of `pool`.
pub(crate) fn counting(
    stage: &Arc<Stage>,
    programs: &dyn PacketPrograms,
    pool: u32,
    delivery: Delivery,
) -> DispatchCounting {
    counting_of(ContextId(1), stage, programs, pool, delivery, &Arc::default())
}

/// One of several contexts.
pub(crate) fn counting_of(
    context: ContextId,
    stage: &Arc<Stage>,
    programs: &dyn PacketPrograms,
    pool: u32,
    delivery: Delivery,
    claims: &Arc<ClaimTable>,
) -> DispatchCounting {
    let memory = Arc::new(Heap::default());
    let config = CounterConfig::new(mi300x(), &["SQ_WAVES"], programs, memory, PoolSize(pool)).unwrap();
    let interception: Arc<dyn Interception> = Arc::<Stage>::clone(stage);
    DispatchCounting::new(Setup {
        context,
        agents: vec![AGENT],
        interception,
        claims: Arc::clone(claims),
        choose: Arc::new(move |_| Choice { config: Some(Arc::clone(&config)), user_data: 0 }),
        delivery,
    })
    .unwrap()
}

/// An MI300X as its topology describes it.
fn mi300x() -> &'static Agent {
    static AGENT_OF_TESTS: OnceLock<Agent> = OnceLock::new();
    AGENT_OF_TESTS.get_or_init(|| Agent {
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
    })
}
