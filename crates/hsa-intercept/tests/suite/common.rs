//! A scripted device: signals in a map, and queues that execute packets when the test says so.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use wavescope_core::{AgentId, AqlPacket, DispatchTimes, PacketType};
use wavescope_hsa_intercept::{Device, Engine, Error, QueueHandle, Signal, SignalKind};

pub(crate) use crate::service::*;

pub(crate) const AGENT: AgentId = AgentId(0);
pub(crate) const OTHER_AGENT: AgentId = AgentId(1);

pub(crate) fn u64_at(packet: &AqlPacket, dword: usize) -> u64 {
    u64::from(packet.0[dword]) | u64::from(packet.0[dword + 1]) << 32
}

#[derive(Default)]
struct Signals {
    values: HashMap<u64, i64>,
    kinds: HashMap<u64, SignalKind>,
    times: HashMap<u64, DispatchTimes>,
    next: u64,
    peak: usize,
    refuse: bool,
    now_ns: u64,
    no_clock: bool,
    /// Completions of this signal are lost.
    lost: u64,
}

/// The runtime in the tests' hands.
#[derive(Default)]
pub(crate) struct FakeDevice {
    signals: Mutex<Signals>,
    changed: Condvar,
}

impl FakeDevice {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Signals that exist.
    pub(crate) fn live(&self) -> usize {
        self.signals.lock().unwrap().values.len()
    }

    /// The most signals that ever existed at a time.
    pub(crate) fn peak(&self) -> usize {
        self.signals.lock().unwrap().peak
    }

    /// Signals with an event that exist.
    pub(crate) fn live_interrupts(&self) -> usize {
        self.signals.lock().unwrap().kinds.values().filter(|&&kind| kind == SignalKind::Interrupt).count()
    }

    /// Makes signal creation fail, or work again.
    pub(crate) fn refuse_signals(&self, refuse: bool) {
        self.signals.lock().unwrap().refuse = refuse;
    }

    /// Makes the question for the time panic, or not any more.
    pub(crate) fn break_clock(&self, broken: bool) {
        self.signals.lock().unwrap().no_clock = broken;
    }

    /// From now on no packet's completion reaches this signal.
    pub(crate) fn lose_completions_of(&self, signal: u64) {
        self.signals.lock().unwrap().lost = signal;
    }

    pub(crate) fn set_now(&self, now_ns: u64) {
        self.signals.lock().unwrap().now_ns = now_ns;
    }

    pub(crate) fn value(&self, signal: u64) -> i64 {
        self.signals.lock().unwrap().values[&signal]
    }

    /// A packet completes.
    fn complete(&self, signal: u64) {
        if self.signals.lock().unwrap().lost != signal {
            self.add(signal, -1);
        }
    }

    pub(crate) fn add(&self, signal: u64, by: i64) {
        if signal == 0 {
            return;
        }
        let mut signals = self.signals.lock().unwrap();
        *signals.values.get_mut(&signal).expect("a packet names a signal that does not exist") += by;
        drop(signals);
        self.changed.notify_all();
    }

    fn set_times(&self, signal: u64, times: DispatchTimes) {
        self.signals.lock().unwrap().times.insert(signal, times);
    }

    /// A signal of the application.
    pub(crate) fn app_signal(&self, value: i64) -> u64 {
        self.create_signal(value, SignalKind::Interrupt).unwrap().0
    }
}

impl Device for FakeDevice {
    fn create_signal(&self, initial: i64, kind: SignalKind) -> Result<Signal, Error> {
        let mut signals = self.signals.lock().unwrap();
        if signals.refuse {
            return Err(Error::MissingEntry { call: "refused by the test" });
        }
        signals.next += 0x40;
        let handle = signals.next;
        signals.values.insert(handle, initial);
        signals.kinds.insert(handle, kind);
        signals.peak = signals.peak.max(signals.values.len());
        Ok(Signal(handle))
    }

    fn destroy_signal(&self, signal: Signal) {
        let mut signals = self.signals.lock().unwrap();
        signals.values.remove(&signal.0).expect("destroyed twice");
        signals.kinds.remove(&signal.0);
    }

    fn load(&self, signal: Signal) -> i64 {
        self.signals.lock().unwrap().values[&signal.0]
    }

    fn store(&self, signal: Signal, value: i64) {
        *self.signals.lock().unwrap().values.get_mut(&signal.0).expect("a store to a dead signal") = value;
        self.changed.notify_all();
    }

    fn subtract(&self, signal: Signal, by: i64) {
        self.add(signal.0, -by);
    }

    fn wait_below(&self, signal: Signal, below: i64, limit: Duration) {
        let signals = self.signals.lock().unwrap();
        let pending = |signals: &mut Signals| signals.values[&signal.0] >= below;
        drop(self.changed.wait_timeout_while(signals, limit, pending).unwrap());
    }

    fn dispatch_times(&self, _agent: AgentId, signal: Signal) -> Option<DispatchTimes> {
        self.signals.lock().unwrap().times.get(&signal.0).copied()
    }

    fn now_ns(&self) -> u64 {
        let (now_ns, broken) = {
            let signals = self.signals.lock().unwrap();
            (signals.now_ns, signals.no_clock)
        };
        assert!(!broken, "no clock");
        now_ns
    }
}

/// One executed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    Kernel(u64),
    Vendor(u32),
    Barrier,
}

/// A queue of the application with the packets that interception wrote into it.
pub(crate) struct FakeQueue {
    pub(crate) handle: QueueHandle,
    device: Arc<FakeDevice>,
    index: Mutex<u64>,
    ring: Mutex<VecDeque<AqlPacket>>,
    pub(crate) ran: Mutex<Vec<Ran>>,
}

impl FakeQueue {
    pub(crate) fn new(engine: &Engine, device: &Arc<FakeDevice>, agent: AgentId) -> Self {
        Self {
            handle: engine.add_queue(agent).unwrap(),
            device: Arc::clone(device),
            index: Mutex::new(0),
            ring: Mutex::new(VecDeque::new()),
            ran: Mutex::new(Vec::new()),
        }
    }

    /// Lets interception write marks into the queue from outside its hook, as a queue front does.
    pub(crate) fn accept_marks(self: &Arc<Self>) {
        let queue = Arc::downgrade(self);
        self.handle.set_nudge(move || {
            let Some(queue) = queue.upgrade() else { return false };
            queue.handle.mark(|packets| queue.ring.lock().unwrap().extend(packets));
            true
        });
    }

    /// Submits a batch as the application would; returns what went into the ring.
    pub(crate) fn submit(&self, packets: &[AqlPacket]) -> Vec<AqlPacket> {
        let mut index = self.index.lock().unwrap();
        let mut written = Vec::new();
        let mut calls = 0;
        self.handle.rewrite(packets, *index, |batch| {
            calls += 1;
            written.extend_from_slice(batch);
            self.ring.lock().unwrap().extend(batch);
        });
        assert_eq!(calls, 1, "one writer call per hook call");
        *index += packets.len() as u64;
        written
    }

    /// Executes packets until one has to wait or none is left. Returns how many ran.
    pub(crate) fn run(&self) -> usize {
        self.run_at_most(usize::MAX)
    }

    pub(crate) fn run_at_most(&self, limit: usize) -> usize {
        let mut count = 0;
        while count < limit {
            let mut ring = self.ring.lock().unwrap();
            let Some(&packet) = ring.front() else { break };
            if !self.execute(&packet) {
                break;
            }
            ring.pop_front();
            count += 1;
        }
        count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.lock().unwrap().is_empty()
    }

    fn execute(&self, packet: &AqlPacket) -> bool {
        let ran = match packet.header().kind() {
            PacketType::BARRIER_AND => {
                let dependencies = (0..5).map(|n| u64_at(packet, 2 + 2 * n)).filter(|&signal| signal != 0);
                if dependencies.into_iter().any(|signal| self.device.value(signal) != 0) {
                    return false;
                }
                Ran::Barrier
            }
            PacketType::KERNEL_DISPATCH => self.execute_kernel(packet),
            // An extended dispatch, which may wait for a signal.
            PacketType::VENDOR_SPECIFIC if packet.0[0] >> 16 & 0xff == 3 => {
                let dependency = u64_at(packet, 12);
                if dependency != 0 && self.device.value(dependency) != 0 {
                    return false;
                }
                self.execute_kernel(packet)
            }
            PacketType::VENDOR_SPECIFIC => Ran::Vendor(packet.0[4]),
            other => panic!("{other:?} in the ring"),
        };
        self.ran.lock().unwrap().push(ran);
        self.device.complete(packet.completion_signal());
        true
    }

    fn execute_kernel(&self, packet: &AqlPacket) -> Ran {
        let kernel = u64_at(packet, 8);
        let times = DispatchTimes { start_ns: kernel * 10, end_ns: kernel * 10 + 5 };
        self.device.set_times(packet.completion_signal(), times);
        Ran::Kernel(kernel)
    }
}

/// Runs every queue until all rings are empty, giving the reaper time; fails after ten seconds.
pub(crate) fn run_all(queues: &[&FakeQueue]) {
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while queues.iter().any(|queue| !queue.is_empty()) {
        for queue in queues {
            queue.run();
        }
        assert!(std::time::Instant::now() < deadline, "the queues are stuck");
        std::thread::yield_now();
    }
}
