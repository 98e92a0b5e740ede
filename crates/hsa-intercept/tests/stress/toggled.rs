//! Producers, a toggler, and the account at the end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use wavescope_core::{
    Answer, AqlPacket, ContextId, Dispatch, DispatchEvent, DispatchSubscriber, Fence, Grant, Interception,
    Outcome, PacketHeader, PacketType, ProgramSink, Service, Subscription, Token,
};

use crate::gpu::{Machine, Queue};

const AGENTS: usize = 4;
const QUEUES: usize = 4;
const PRODUCERS: usize = 8;
const BATCH: usize = 16;
/// Nothing here waits for longer: a hang fails.
const WATCHDOG: Duration = Duration::from_secs(60);

fn dispatches() -> usize {
    let long = std::env::var("NEXTEST_PROFILE").is_ok_and(|profile| profile == "stress");
    if long { 1_000_000 } else { 80_000 }
}

/// A clock that all threads agree on.
struct Clock(AtomicU64);

impl Clock {
    fn tick(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// What the service heard of each kernel.
struct Records {
    tokens: AtomicUsize,
    kernels: Mutex<HashMap<Token, u32>>,
    /// How often each kernel was retired to it.
    retired: Mutex<Vec<u8>>,
    grants: Mutex<mpsc::Sender<Token>>,
}

/// Some kernels nobody wants.
fn is_declined(kernel: usize) -> bool {
    kernel % 7 == 3
}

impl DispatchSubscriber for Records {
    fn enqueue(&self, dispatch: &Dispatch, sink: &mut ProgramSink<'_>) -> Answer {
        let kernel = dispatch.kernel_object as usize;
        if is_declined(kernel) {
            return if kernel.is_multiple_of(2) { Answer::Decline } else { Answer::Ignore };
        }
        let mut packet = AqlPacket([0; 16]);
        packet.set_header(PacketHeader::new(PacketType::VENDOR_SPECIFIC, true, Fence::System, Fence::System));
        sink.before(&packet);
        sink.after(&packet);
        let token = Token { index: self.tokens.fetch_add(1, Ordering::Relaxed) as u32, generation: 0 };
        self.kernels.lock().unwrap().insert(token, kernel as u32);
        // Some keep the agent until their output was copied.
        let grant = if kernel.is_multiple_of(32) { Grant::UntilReturned } else { Grant::UntilRetired };
        Answer::Instrument { token, grant }
    }

    fn publish(&self, event: DispatchEvent) {
        let DispatchEvent::Retired { token, outcome, .. } = event else { return };
        assert!(matches!(outcome, Outcome::Completed(_)), "{outcome:?}");
        let kernel = self.kernels.lock().unwrap().remove(&token).expect("retired twice, or never dispatched");
        self.retired.lock().unwrap()[kernel as usize] += 1;
        if kernel.is_multiple_of(32) {
            self.grants.lock().unwrap().send(token).unwrap();
        }
    }
}

/// Times of one window: subscribing, subscribed, silencing, silent.
#[derive(Clone, Copy, Debug)]
struct Window([u64; 4]);

struct Stage {
    machine: Machine,
    clock: Clock,
    queues: Vec<Vec<Arc<Queue>>>,
    next: AtomicUsize,
    /// By batch: when it was submitted.
    submitted: Vec<[AtomicU64; 2]>,
}

impl Stage {
    fn new(dispatches: usize) -> Self {
        let machine = Machine::new(AGENTS, dispatches);
        let queues = (0..AGENTS).map(|agent| (0..QUEUES).map(|_| machine.create(agent)).collect()).collect();
        let submitted = (0..dispatches / BATCH).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect();
        Self { machine, clock: Clock(AtomicU64::new(1)), queues, next: AtomicUsize::new(0), submitted }
    }

    /// Batches to the queues of all agents in turn, every tenth to a queue that only lives for it.
    fn produce(&self) {
        loop {
            let batch = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(times) = self.submitted.get(batch) else { return };
            let agent = batch % AGENTS;
            if batch.is_multiple_of(10) {
                let queue = self.machine.create(agent);
                self.submit(&queue, batch, times);
                self.machine.destroy(agent, &queue, WATCHDOG);
            } else {
                self.submit(&self.queues[agent][batch / AGENTS % QUEUES], batch, times);
            }
        }
    }

    fn submit(&self, queue: &Queue, batch: usize, times: &[AtomicU64; 2]) {
        let signals = &*self.machine.signals;
        let done = wavescope_hsa_intercept::Device::create_signal(
            signals,
            1,
            wavescope_hsa_intercept::SignalKind::Interrupt,
        )
        .unwrap();
        let mut packets: Vec<_> = (batch * BATCH..(batch + 1) * BATCH).map(kernel).collect();
        packets[BATCH - 1].set_completion_signal(done.0);
        times[0].store(self.clock.tick(), Ordering::Relaxed);
        queue.submit(&packets);
        times[1].store(self.clock.tick(), Ordering::Relaxed);
        let deadline = Instant::now() + WATCHDOG;
        while signals.value(done.0) > 0 {
            assert!(Instant::now() < deadline, "batch {batch} does not complete");
            std::thread::yield_now();
        }
        wavescope_hsa_intercept::Device::destroy_signal(signals, done);
    }

    /// Switches on and off every few milliseconds.
    fn toggle(
        &self,
        records: &Arc<Records>,
        returns: &mpsc::Receiver<Token>,
        over: &AtomicBool,
    ) -> Vec<Window> {
        let mut windows = Vec::new();
        while !over.load(Ordering::Acquire) {
            let subscriber: Arc<dyn DispatchSubscriber> = Arc::<Records>::clone(records);
            let (context, service, agents) = (ContextId(1), Service::DispatchCounting, Vec::new());
            let mut window = Window([self.clock.tick(); 4]);
            let subscription = Subscription { context, service, agents, serialize: true, subscriber };
            let engine = &self.machine.engine;
            let id = engine.subscribe(subscription).unwrap();
            window.0[1] = self.clock.tick();
            let end = Instant::now() + Duration::from_millis(3);
            let hand_back = |until: &dyn Fn() -> bool| {
                while !until() {
                    if let Ok(token) = returns.recv_timeout(Duration::from_micros(200)) {
                        engine.return_grant(id, token);
                    }
                }
            };
            hand_back(&|| Instant::now() >= end);
            window.0[2] = self.clock.tick();
            engine.quiesce(id).unwrap();
            window.0[3] = self.clock.tick();
            // What is in flight may wait for a grant that has yet to come back.
            let deadline = Instant::now() + WATCHDOG;
            hand_back(&|| {
                assert!(Instant::now() < deadline, "a window does not drain");
                engine.drain(id, Duration::ZERO).is_ok()
            });
            while let Ok(token) = returns.try_recv() {
                engine.return_grant(id, token);
            }
            engine.unsubscribe(id).unwrap();
            windows.push(window);
        }
        windows
    }
}

fn kernel(number: usize) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::KERNEL_DISPATCH, false, Fence::Agent, Fence::System));
    packet.0[8] = number as u32;
    packet
}

/// Resident memory of the process, bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

// Field report G06: toggled every few milliseconds under load: no hang, each dispatch executed once, each dispatch inside an
// active window recorded once, none outside.
#[test]
fn each_kernel_runs_once_and_is_recorded_once_inside_a_window_and_never_outside() {
    let dispatches = dispatches();
    let stage = Stage::new(dispatches);
    let (grants, returns) = mpsc::channel();
    let records = Arc::new(Records {
        tokens: AtomicUsize::new(0),
        kernels: Mutex::default(),
        retired: Mutex::new(vec![0; dispatches]),
        grants: Mutex::new(grants),
    });
    let (produced, gpus_off) = (AtomicBool::new(false), AtomicBool::new(false));
    let before = resident();
    let windows = std::thread::scope(|scope| {
        for agent in 0..AGENTS {
            let (stage, gpus_off) = (&stage, &gpus_off);
            scope.spawn(move || stage.machine.run(agent, gpus_off));
        }
        let toggler = {
            let (stage, records, produced) = (&stage, &records, &produced);
            scope.spawn(move || stage.toggle(records, &returns, produced))
        };
        let producers: Vec<_> = (0..PRODUCERS).map(|_| scope.spawn(|| stage.produce())).collect();
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        produced.store(true, Ordering::Release);
        let windows = toggler.join().unwrap();
        for (agent, queues) in stage.queues.iter().enumerate() {
            queues.iter().for_each(|queue| stage.machine.destroy(agent, queue, WATCHDOG));
        }
        stage.machine.engine.shut_down(WATCHDOG).unwrap();
        gpus_off.store(true, Ordering::Release);
        windows
    });
    let grown = resident().saturating_sub(before);
    assert!(grown < 128 << 20, "{} MiB more than at the start", grown >> 20);
    account(&stage, &records, &windows);
}

fn account(stage: &Stage, records: &Records, windows: &[Window]) {
    assert!(stage.machine.ran.iter().all(|ran| ran.load(Ordering::Relaxed) == 1), "each kernel runs once");
    let retired = records.retired.lock().unwrap();
    let (mut inside, mut outside, mut between) = (0, 0, 0);
    for (batch, times) in stage.submitted.iter().enumerate() {
        let [from, to] = times.each_ref().map(|time| time.load(Ordering::Relaxed));
        let covered = windows.iter().any(|Window([_, on, off, _])| *on < from && to < *off);
        let touched = windows.iter().any(|Window([first, .., last])| *first < to && from < *last);
        for kernel in batch * BATCH..(batch + 1) * BATCH {
            let count = retired[kernel];
            assert!(
                count <= 1 && !(is_declined(kernel) && count > 0),
                "kernel {kernel} is recorded {count} times"
            );
            match (covered, touched) {
                (true, _) => {
                    assert_eq!(count, u8::from(!is_declined(kernel)), "kernel {kernel} inside a window");
                    inside += 1;
                }
                (false, false) => {
                    assert_eq!(count, 0, "kernel {kernel} outside of every window");
                    outside += 1;
                }
                (false, true) => between += 1,
            }
        }
    }
    println!("{} windows; {inside} kernels inside, {outside} outside, {between} on an edge", windows.len());
    assert!(inside > 0 && windows.len() > 1, "{inside} inside of {} windows", windows.len());
    // A queue has a counter and a gate, and carriers for what is in flight on it at most; producers have a signal each, and
    // there is one bell.
    let in_flight = PRODUCERS * BATCH;
    let bound = (AGENTS * QUEUES + PRODUCERS) * (2 + in_flight) + PRODUCERS + 1;
    let (peak, live) = (stage.machine.signals.peak.load(Ordering::Relaxed), stage.machine.signals.live());
    println!("{peak} signals at most, bound {bound}; {live} at the end");
    assert!(peak <= bound, "{peak} signals, at most {bound}");
    assert!(live <= 1, "{live} signals are left: all but the bell were given back");
}
