//! Kernels that are only traced: records without serialization, and packets as nearly as the application made them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use wavescope_core::{
    AgentId, ContextId, DispatchId, DispatchTimes, Interception, LossReason, Outcome, SubscriptionId,
    ThreadId,
};
use wavescope_hsa_intercept::{
    ApiCall, CorrelationIds, Engine, KernelTracer, Signal, TracedKernel, Tracing, pop_external, push_external,
};

use crate::common::*;

const LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Enqueued(TracedKernel),
    Completed(TracedKernel, Outcome),
}

#[derive(Default)]
struct Records(Mutex<Vec<Told>>);

impl KernelTracer for Records {
    fn enqueued(&self, kernel: &TracedKernel) {
        self.0.lock().unwrap().push(Told::Enqueued(*kernel));
    }

    fn completed(&self, kernel: &TracedKernel, outcome: Outcome) {
        self.0.lock().unwrap().push(Told::Completed(*kernel, outcome));
    }
}

impl Records {
    fn start(engine: &Engine, context: u64, agents: &[AgentId]) -> (Arc<Self>, SubscriptionId) {
        let records = Arc::new(Self::default());
        let tracer: Arc<dyn KernelTracer> = Arc::<Self>::clone(&records);
        let tracing = Tracing { context: ContextId(context), agents: agents.to_vec(), tracer };
        let id = engine.trace(tracing).unwrap();
        (records, id)
    }

    fn enqueued(&self) -> Vec<TracedKernel> {
        let told = self.0.lock().unwrap();
        let enqueued = |told: &Told| if let Told::Enqueued(kernel) = told { Some(*kernel) } else { None };
        told.iter().filter_map(enqueued).collect()
    }

    /// By dispatch.
    fn completed(&self) -> Vec<(DispatchId, Outcome)> {
        let told = self.0.lock().unwrap();
        let completed = |told: &Told| {
            if let Told::Completed(kernel, outcome) = told {
                Some((kernel.dispatch.id, *outcome))
            } else {
                None
            }
        };
        let mut completed: Vec<_> = told.iter().filter_map(completed).collect();
        completed.sort_by_key(|(id, _)| *id);
        completed
    }
}

fn at(kernel: u64) -> Outcome {
    Outcome::Completed(DispatchTimes { start_ns: kernel * 10, end_ns: kernel * 10 + 5 })
}

fn stop(engine: &Engine, id: SubscriptionId) {
    engine.quiesce(id).unwrap();
    engine.drain(id, LIMIT).unwrap();
    engine.unsubscribe(id).unwrap();
}

// Two kernels that may overlap still may: no barrier bit, and no packet of ours in between or behind.
#[test]
fn kernels_without_a_signal_only_get_a_carrier() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let (records, id) = Records::start(&engine, 1, &[]);
    device.set_now(1_000);
    let ring = queue.submit(&[kernel(3, 0), vendor(9, false), kernel(4, 0)]);
    let mut plain = ring.clone();
    let carriers = [ring[0].completion_signal(), ring[2].completion_signal()];
    plain.iter_mut().for_each(|packet| packet.set_completion_signal(0));
    assert_eq!(plain, [kernel(3, 0), vendor(9, false), kernel(4, 0)]);
    assert!(carriers[0] != 0 && carriers[1] != 0 && carriers[0] != carriers[1]);
    assert_eq!(records.enqueued().len(), 2, "told before the GPU can see them");
    run_all(&[&queue]);
    device.set_now(2_000);
    stop(&engine, id);
    // The scripted kernels ended before they were enqueued: times lie between enqueue and completion.
    let clamped = Outcome::Completed(DispatchTimes { start_ns: 1_000, end_ns: 1_000 });
    assert_eq!(records.completed(), [(DispatchId(1), clamped), (DispatchId(2), clamped)]);
    assert_eq!(queue.submit(&[kernel(5, 0)]), [kernel(5, 0)], "nobody left: identical");
    engine.shut_down(LIMIT).unwrap();
}

// Forwards come behind the kernels of the batch, without the barrier bit, each waiting for its own kernel.
#[test]
fn signals_of_the_application_are_forwarded_behind_the_batch() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let (records, id) = Records::start(&engine, 1, &[AGENT]);
    let (first, second) = (device.app_signal(1), device.app_signal(2));
    let ring = queue.submit(&[kernel(3, first), kernel(4, 0), kernel(5, second), app_barrier(second)]);
    let kinds: Vec<_> =
        ring.iter().map(|packet| (packet.header().kind().0, packet.header().barrier())).collect();
    // hsa_packet_type_t: kernel dispatch 2, barrier-AND 3.
    assert_eq!(kinds, [(2, false), (2, false), (2, false), (3, false), (3, false), (3, false), (3, true)]);
    let forwards: Vec<_> = ring[3..5].iter().map(|f| (u64_at(f, 2), f.completion_signal())).collect();
    assert_eq!(forwards, [(ring[0].completion_signal(), first), (ring[2].completion_signal(), second)]);
    assert_eq!(ring[6], app_barrier(second), "packets of the application keep their place and their signals");
    device.set_now(1_000);
    assert_eq!(queue.run_at_most(4), 4);
    assert_eq!((device.value(first), device.value(second)), (0, 2));
    let times = engine.times_of(AGENT, Signal(first));
    assert_eq!(times, Some(DispatchTimes { start_ns: 30, end_ns: 35 }), "as soon as the signal fell");
    queue.submit(&[kernel(6, 0)]);
    device.add(second, -1);
    run_all(&[&queue]);
    stop(&engine, id);
    let outcomes: Vec<_> = records.completed().into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcomes[..3], [at(3), at(4), at(5)]);
    assert_eq!(engine.times_of(AGENT, Signal(second)), Some(DispatchTimes { start_ns: 50, end_ns: 55 }));
    engine.shut_down(LIMIT).unwrap();
}

// The forward of a kernel waits while its carrier has fallen; the carrier must not be armed again before it looked.
#[test]
fn a_carrier_is_not_recycled_before_its_forward_saw_it() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let (_, id) = Records::start(&engine, 1, &[AGENT]);
    let app = device.app_signal(1);
    let ring = queue.submit(&[kernel(1, app)]);
    let carrier = ring[0].completion_signal();
    assert_eq!(queue.run_at_most(1), 1);
    // The reaper gets every chance to see the fallen carrier.
    assert!(engine.drain(id, Duration::from_millis(50)).is_err(), "its forward has yet to launch");
    assert_eq!(device.value(carrier), 0);
    run_all(&[&queue]);
    stop(&engine, id);
    assert_eq!((device.value(app), device.value(carrier)), (0, 1), "free again");
    engine.shut_down(LIMIT).unwrap();
}

#[test]
fn records_name_thread_ids_and_correlation() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let (records, _) = Records::start(&engine, 7, &[]);
    let (others, _) = Records::start(&engine, 8, &[]);
    push_external(ContextId(7), 70);
    let call = ApiCall::enter();
    queue.submit(&[kernel(1, 0), kernel(2, 0)]);
    drop(call);
    queue.submit(&[kernel(3, 0)]);
    assert_eq!(pop_external(ContextId(7)), Some(70));
    queue.submit(&[kernel(4, 0)]);
    let here = ThreadId(
        std::fs::read_link("/proc/thread-self")
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .parse()
            .unwrap(),
    );
    let kernels = records.enqueued();
    assert!(kernels.iter().all(|kernel| kernel.dispatch.thread == Some(here)));
    let ids: Vec<_> = kernels.iter().map(|kernel| kernel.dispatch.id.0).collect();
    assert_eq!(ids, [1, 2, 3, 4], "dispatch ids begin with 1");
    let CorrelationIds { internal: first, .. } = kernels[0].correlation;
    let external: Vec<_> = kernels.iter().map(|kernel| kernel.correlation.external).collect();
    assert_eq!(external, [70, 70, 70, 0]);
    let internal: Vec<_> = kernels.iter().map(|kernel| kernel.correlation.internal).collect();
    assert_eq!((internal[1], internal[2] > first, internal[3] > internal[2]), (first, true, true));
    assert!(
        others.enqueued().iter().all(|kernel| kernel.correlation.external == 0),
        "ids are each context's own"
    );
    assert_eq!(
        others.enqueued().iter().map(|kernel| kernel.correlation.internal).collect::<Vec<_>>(),
        internal
    );
    run_all(&[&queue]);
    engine.shut_down(LIMIT).unwrap();
}

// Field report G20: the record says whether the kernel had the agent to itself, and whether somebody unseen may disturb.
#[test]
fn records_say_whether_kernels_were_serialized_and_whether_the_agent_is_blind() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT, OTHER_AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let other = FakeQueue::new(&engine, &device, OTHER_AGENT);
    let (records, tracing) = Records::start(&engine, 1, &[]);
    let counted =
        FakeService::new(|dispatch| if dispatch.kernel_object == 2 { Plan::Count } else { Plan::Decline });
    let counting = engine.subscribe(counted.subscription(&[AGENT], true)).unwrap();
    let app = device.app_signal(2);
    engine.unseen_queue_came(AGENT);
    queue.submit(&[kernel(1, app), kernel(2, app)]);
    engine.unseen_queue_left(AGENT);
    other.submit(&[kernel(3, 0)]);
    run_all(&[&queue, &other]);
    stop(&engine, counting);
    queue.submit(&[kernel(4, 0)]);
    run_all(&[&queue, &other]);
    stop(&engine, tracing);
    let facts: Vec<_> = records.enqueued().iter().map(|kernel| (kernel.serialized, kernel.blind)).collect();
    assert_eq!(facts, [(true, true), (true, true), (false, false), (false, false)]);
    assert_eq!((records.completed().len(), counted.retired(), device.value(app)), (4, 1, 0));
    engine.shut_down(LIMIT).unwrap();
}

// Kernels that are out when serialization begins hold it back, though they retire in any order.
#[test]
fn traced_kernels_hold_back_the_first_measured_one() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let (a, b) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    let (records, _) = Records::start(&engine, 1, &[]);
    a.submit(&[kernel(1, 0), kernel(2, 0)]);
    let counting = FakeService::new(|_| Plan::Count);
    engine.subscribe(counting.subscription(&[AGENT], true)).unwrap();
    b.submit(&[kernel(3, 0)]);
    assert_eq!(b.run(), 0, "its gate is closed");
    assert_eq!(a.run_at_most(1), 1);
    std::thread::yield_now();
    assert_eq!(b.run(), 0, "one is still out");
    run_all(&[&a, &b]);
    engine.shut_down(LIMIT).unwrap();
    assert_eq!((records.completed().len(), counting.retired()), (3, 1));
}

#[test]
fn what_is_out_on_a_queue_that_fails_or_goes_is_lost() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let (failed, gone) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    let (records, id) = Records::start(&engine, 1, &[]);
    let app = device.app_signal(2);
    failed.submit(&[kernel(1, app)]);
    gone.submit(&[kernel(2, app), kernel(3, 0)]);
    gone.run_at_most(2);
    failed.handle.failed();
    engine.drain(id, Duration::from_millis(20)).unwrap_err();
    engine.queue_destroyed(&gone.handle);
    engine.drain(id, LIMIT).unwrap();
    let outcomes: Vec<_> = records.completed().into_iter().map(|(_, outcome)| outcome).collect();
    let lost = |reason| Outcome::Lost(reason);
    // Kernel 3 has no forward and ran, kernel 2 waits for its forward.
    assert_eq!(outcomes[..2], [lost(LossReason::QueueError), lost(LossReason::QueueDestroyed)]);
    assert!(matches!(outcomes[2], Outcome::Completed(_)), "{outcomes:?}");
    engine.shut_down(LIMIT).unwrap();
}

// Signals stay within what is out, though nobody announces retirements.
#[test]
fn carriers_of_traced_kernels_are_reused() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let (records, id) = Records::start(&engine, 1, &[]);
    for _ in 0..100 {
        queue.submit(&[kernel(1, 0); 50]);
        run_all(&[&queue]);
        assert!(queue.handle.wait_empty(LIMIT));
    }
    stop(&engine, id);
    assert_eq!((records.enqueued().len(), records.completed().len()), (5000, 5000));
    assert_eq!(device.peak(), 50 + 3, "carriers, the queue's counter and gate, and the bell");
    engine.shut_down(LIMIT).unwrap();
}

#[test]
fn a_tracer_that_panics_disturbs_nobody() {
    struct Panics;
    impl KernelTracer for Panics {
        fn enqueued(&self, _: &TracedKernel) {
            panic!("the client's own bug");
        }
        fn completed(&self, _: &TracedKernel, _: Outcome) {
            panic!("the client's own bug");
        }
    }
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let tracing = Tracing { context: ContextId(1), agents: Vec::new(), tracer: Arc::new(Panics) };
    let id = engine.trace(tracing).unwrap();
    let (records, _) = Records::start(&engine, 2, &[]);
    queue.submit(&[kernel(1, 0)]);
    run_all(&[&queue]);
    stop(&engine, id);
    engine.shut_down(LIMIT).unwrap();
    assert_eq!(records.completed().len(), 1);
}

static TRACED: std::sync::OnceLock<Engine> = std::sync::OnceLock::new();

/// Flushes what it counts whenever a kernel completed, without waiting.
struct Flushes;

impl KernelTracer for Flushes {
    fn enqueued(&self, _kernel: &TracedKernel) {}

    fn completed(&self, _kernel: &TracedKernel, _outcome: Outcome) {
        let _ = TRACED.get().unwrap().settle(SubscriptionId(1), Duration::ZERO);
    }
}

// What it asks for it could only be told after it returned.
#[test]
fn a_record_callback_may_settle_without_waiting() {
    let device = FakeDevice::new();
    let engine = TRACED.get_or_init(|| Engine::new(device.clone(), [AGENT]));
    let queue = FakeQueue::new(engine, &device, AGENT);
    let tracing = Tracing { context: ContextId(1), agents: vec![], tracer: Arc::new(Flushes) };
    let id = engine.trace(tracing).unwrap();
    queue.submit(&[kernel(1, 0)]);
    run_all(&[&queue]);
    engine.quiesce(id).unwrap();
    std::thread::spawn(|| {
        std::thread::sleep(LIMIT);
        eprintln!("the reaper waits for itself");
        std::process::abort();
    });
    engine.drain(id, Duration::from_secs(3)).unwrap();
}

// Nothing is given away in turns, so nothing has to stand before it.
#[test]
fn an_extended_dispatch_that_is_only_traced_is_not_ordered_behind_earlier_kernels() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let (_records, _id) = Records::start(&engine, 1, &[]);
    let done = device.app_signal(0);
    let mut extended = kernel(2, 0);
    extended.0[0] = (3 << 16) | (1 << 24);
    (extended.0[12], extended.0[13]) = (done as u32, (done >> 32) as u32);
    let fence = wavescope_core::Fence::System;
    extended.set_header(wavescope_core::PacketHeader::new(
        wavescope_core::PacketType::VENDOR_SPECIFIC,
        false,
        fence,
        fence,
    ));
    let written = queue.submit(&[kernel(1, 0), extended]);
    let emitted = written.iter().find(|packet| packet.0[8] == 2).unwrap();
    assert!(!emitted.header().barrier(), "it may run beside kernel 1, and kernel 1 may wait for it");
}
