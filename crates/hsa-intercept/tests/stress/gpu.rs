//! GPUs in threads: each runs the packets of its agent's queues, whichever can go on.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::time::Duration;

use wavescope_core::{AgentId, AqlPacket, DispatchTimes, PacketType};
use wavescope_hsa_intercept::{Device, Engine, Error, QueueHandle, Signal, SignalKind};

/// Signals that can exist at a time.
const PLACES: usize = 1 << 15;

/// Signals in places that are used again.
pub(crate) struct Signals {
    values: Vec<AtomicI64>,
    alive: Vec<AtomicBool>,
    free: Mutex<Vec<usize>>,
    live: AtomicUsize,
    pub(crate) peak: AtomicUsize,
    rung: (Mutex<()>, Condvar),
}

impl Signals {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            values: (0..PLACES).map(|_| AtomicI64::new(0)).collect(),
            alive: (0..PLACES).map(|_| AtomicBool::new(false)).collect(),
            free: Mutex::new((1..PLACES).rev().collect()),
            live: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            rung: (Mutex::new(()), Condvar::new()),
        })
    }

    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    pub(crate) fn value(&self, signal: u64) -> i64 {
        assert!(self.alive[signal as usize].load(Ordering::Relaxed), "a signal is used after its end");
        self.values[signal as usize].load(Ordering::Acquire)
    }

    fn add(&self, signal: u64, by: i64) {
        assert!(self.alive[signal as usize].load(Ordering::Relaxed), "a packet names a signal that is gone");
        self.values[signal as usize].fetch_add(by, Ordering::AcqRel);
        self.rung.1.notify_all();
    }
}

impl Device for Signals {
    fn create_signal(&self, initial: i64, _kind: SignalKind) -> Result<Signal, Error> {
        let place = self.free.lock().unwrap().pop().expect("more signals than any bound allows");
        self.values[place].store(initial, Ordering::Release);
        self.alive[place].store(true, Ordering::Release);
        let live = self.live.fetch_add(1, Ordering::Relaxed) + 1;
        self.peak.fetch_max(live, Ordering::Relaxed);
        Ok(Signal(place as u64))
    }

    fn destroy_signal(&self, signal: Signal) {
        assert!(self.alive[signal.0 as usize].swap(false, Ordering::AcqRel), "destroyed twice");
        self.live.fetch_sub(1, Ordering::Relaxed);
        // To the end: a place is used again as late as possible.
        self.free.lock().unwrap().insert(0, signal.0 as usize);
    }

    fn load(&self, signal: Signal) -> i64 {
        self.value(signal.0)
    }

    fn store(&self, signal: Signal, value: i64) {
        self.value(signal.0);
        self.values[signal.0 as usize].store(value, Ordering::Release);
        self.rung.1.notify_all();
    }

    fn subtract(&self, signal: Signal, by: i64) {
        self.add(signal.0, -by);
    }

    fn wait_below(&self, signal: Signal, below: i64, limit: Duration) {
        let guard = self.rung.0.lock().unwrap();
        // Notified without the lock: a wait may oversleep, so it is short.
        let limit = limit.min(Duration::from_micros(200));
        drop(self.rung.1.wait_timeout_while(guard, limit, |()| self.value(signal.0) >= below).unwrap());
    }

    fn dispatch_times(&self, _agent: AgentId, _signal: Signal) -> Option<DispatchTimes> {
        None
    }

    fn now_ns(&self) -> u64 {
        0
    }
}

/// A queue of the application with the packets that wait in it.
pub(crate) struct Queue {
    pub(crate) handle: QueueHandle,
    /// Packets written, and the application's next index: producers take turns as at a doorbell.
    state: Mutex<(VecDeque<AqlPacket>, u64)>,
}

impl Queue {
    pub(crate) fn submit(&self, packets: &[AqlPacket]) {
        let mut state = self.state.lock().unwrap();
        let (ring, next) = &mut *state;
        self.handle.rewrite(packets, *next, |packets| ring.extend(packets));
        *next += packets.len() as u64;
    }

    fn nudge(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        self.handle.mark(|packets| state.0.extend(packets));
        true
    }
}

/// The GPUs and their queues.
pub(crate) struct Machine {
    pub(crate) engine: Engine,
    pub(crate) signals: Arc<Signals>,
    queues: Vec<RwLock<Vec<Arc<Queue>>>>,
    /// How often each kernel ran.
    pub(crate) ran: Vec<AtomicU8>,
}

impl Machine {
    pub(crate) fn new(agents: usize, kernels: usize) -> Self {
        let signals = Signals::new();
        let ids = (0..agents).map(|agent| AgentId(agent as u32));
        Self {
            engine: Engine::new(Arc::<Signals>::clone(&signals), ids),
            signals,
            queues: (0..agents).map(|_| RwLock::default()).collect(),
            ran: (0..kernels).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    pub(crate) fn create(&self, agent: usize) -> Arc<Queue> {
        let handle = self.engine.add_queue(AgentId(agent as u32)).unwrap();
        let queue = Arc::new(Queue { handle, state: Mutex::default() });
        let fed = Arc::downgrade(&queue);
        queue.handle.set_nudge(move || fed.upgrade().is_some_and(|queue| queue.nudge()));
        self.queues[agent].write().unwrap().push(Arc::clone(&queue));
        queue
    }

    /// Destroys a queue whose kernels ran, as a runtime does it: the packet processor leaves it first.
    pub(crate) fn destroy(&self, agent: usize, queue: &Arc<Queue>, limit: Duration) {
        assert!(queue.handle.wait_empty(limit), "a queue does not get empty");
        self.queues[agent].write().unwrap().retain(|other| !Arc::ptr_eq(other, queue));
        self.engine.queue_destroyed(&queue.handle);
    }

    /// One GPU, until `over`.
    pub(crate) fn run(&self, agent: usize, over: &AtomicBool) {
        while !over.load(Ordering::Acquire) {
            let queues = self.queues[agent].read().unwrap();
            let ran: usize = queues.iter().map(|queue| self.run_queue(queue)).sum();
            drop(queues);
            if ran == 0 {
                std::thread::yield_now();
            }
        }
    }

    fn run_queue(&self, queue: &Queue) -> usize {
        let mut ran = 0;
        loop {
            let next = queue.state.lock().unwrap().0.front().copied();
            if !next.is_some_and(|packet| self.execute(&packet)) {
                break;
            }
            queue.state.lock().unwrap().0.pop_front();
            ran += 1;
        }
        ran
    }

    fn execute(&self, packet: &AqlPacket) -> bool {
        match packet.header().kind() {
            PacketType::BARRIER_AND => {
                let dependency = u64::from(packet.0[2]);
                if dependency != 0 && self.signals.value(dependency) != 0 {
                    return false;
                }
            }
            PacketType::KERNEL_DISPATCH => {
                self.ran[packet.0[8] as usize].fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
        let completion = packet.completion_signal();
        if completion != 0 {
            self.signals.add(completion, -1);
        }
        true
    }
}
