//! What must not take the application with it: panics of clients, callbacks that do not return, lost packets, odd time
//! limits.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use wavescope_core::{
    Answer, ContextId, Dispatch, DispatchEvent, DispatchSubscriber, Grant, Interception, InterceptionError,
    LossReason, ProgramSink, Service, Subscription, Token,
};
use wavescope_hsa_intercept::{Engine, Error};

use crate::common::*;

const LIMIT: Duration = Duration::from_secs(10);

/// A client that panics where it is told to.
struct Panics {
    at_enqueue: bool,
    at_dispatched: bool,
    at_retired: bool,
    asked: AtomicU32,
}

impl Panics {
    fn subscription(at_enqueue: bool, at_dispatched: bool, at_retired: bool) -> (Arc<Self>, Subscription) {
        let client = Arc::new(Self { at_enqueue, at_dispatched, at_retired, asked: AtomicU32::new(0) });
        let subscriber: Arc<dyn DispatchSubscriber> = Arc::<Self>::clone(&client);
        let (context, service) = (ContextId(1), Service::DispatchCounting);
        (client, Subscription { context, service, agents: Vec::new(), serialize: true, subscriber })
    }
}

impl DispatchSubscriber for Panics {
    fn enqueue(&self, _dispatch: &Dispatch, sink: &mut ProgramSink<'_>) -> Answer {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        // Half a program is there when it panics.
        sink.before(&vendor(START, false));
        sink.after(&vendor(READ, true));
        assert!(!self.at_enqueue, "the client's own bug");
        Answer::Instrument { token: Token { index: asked, generation: 0 }, grant: Grant::UntilRetired }
    }

    fn publish(&self, event: DispatchEvent) {
        let panics = match event {
            DispatchEvent::Dispatched { .. } => self.at_dispatched,
            DispatchEvent::Retired { .. } => self.at_retired,
        };
        assert!(!panics, "the client's own bug");
    }
}

#[test]
fn a_dispatch_callback_that_panics_counts_as_declined_and_leaves_nothing_behind() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let (a, b) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    let (client, subscription) = Panics::subscription(true, false, false);
    let id = engine.subscribe(subscription).unwrap();
    let app = device.app_signal(3);
    for _ in 0..3 {
        let ring = a.submit(&[kernel(1, app)]);
        assert_eq!(ring.len(), 3, "the kernel, its end and the bell: no packet of half a program");
        assert_eq!((ring[0].0[8], ring[0].completion_signal()), (1, app));
    }
    b.submit(&[kernel(2, 0)]);
    run_all(&[&a, &b]);
    assert_eq!((device.value(app), client.asked.load(Ordering::Relaxed)), (0, 4));
    engine.quiesce(id).unwrap();
    engine.drain(id, LIMIT).unwrap();
    engine.unsubscribe(id).unwrap();
    assert_eq!(a.submit(&[kernel(3, 0)]), [kernel(3, 0)]);
    engine.shut_down(LIMIT).unwrap();
}

#[test]
fn events_that_panic_neither_stop_the_hook_nor_the_reaper() {
    for (at_dispatched, at_retired) in [(true, false), (false, true)] {
        let device = FakeDevice::new();
        let engine = Engine::new(device.clone(), [AGENT]);
        let (a, b) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
        let (_, subscription) = Panics::subscription(false, at_dispatched, at_retired);
        let id = engine.subscribe(subscription).unwrap();
        let app = device.app_signal(2);
        a.submit(&[kernel(1, app)]);
        b.submit(&[kernel(2, app)]);
        run_all(&[&a, &b]);
        engine.drain(id, LIMIT).unwrap();
        assert_eq!(device.value(app), 0);
        engine.shut_down(LIMIT).unwrap();
    }
}

// What is not a client's panic but a bug behind the seam: here the device refuses to say what time it is.
#[test]
fn a_hook_that_breaks_gives_its_queue_up_and_the_packets_still_run() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let (a, b) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    a.submit(&[kernel(1, 0)]);
    // Its gate lies in the ring when the queue is given up.
    b.submit(&[kernel(2, 0)]);
    device.break_clock(true);
    assert_eq!(b.submit(&[kernel(3, 0)]), [kernel(3, 0)], "as it is");
    device.break_clock(false);
    let deadline = Instant::now() + LIMIT;
    while service.lost().is_empty() {
        assert!(Instant::now() < deadline, "what the broken queue had in flight is not given up");
        std::thread::yield_now();
    }
    run_all(&[&a, &b]);
    engine.drain(id, LIMIT).unwrap();
    assert_eq!(service.lost(), [LossReason::QueueError]);
    assert_eq!(service.dispatched().len(), 2, "the kernel at which it broke was not taken");
    assert_eq!(b.submit(&[kernel(4, 0)]), [kernel(4, 0)], "and from then on");
    a.submit(&[kernel(5, 0)]);
    run_all(&[&a, &b]);
    engine.drain(id, LIMIT).unwrap();
    engine.shut_down(LIMIT).unwrap();
    let ran: Vec<_> =
        b.ran.lock().unwrap().iter().filter(|ran| matches!(ran, Ran::Kernel(_))).copied().collect();
    assert_eq!(ran, [Ran::Kernel(2), Ran::Kernel(3), Ran::Kernel(4)]);
}

// An interrupt that rings for a batch is lost: the retire counters say what the bell does not.
#[test]
fn a_drain_looks_at_the_counters_once_more_before_it_gives_up() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    let ring = queue.submit(&[kernel(1, 0)]);
    device.lose_completions_of(ring.last().unwrap().completion_signal());
    run_all(&[&queue]);
    engine.drain(id, Duration::from_millis(50)).unwrap();
    assert_eq!(service.retired(), 1);
    queue.submit(&[kernel(2, 0)]);
    run_all(&[&queue]);
    assert!(queue.handle.wait_empty(Duration::from_millis(50)));
}

#[test]
fn time_limits_without_end_do_not_overflow() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    engine.set_watchdog(Duration::MAX);
    engine.set_callback_timeout(Duration::MAX);
    let id = engine.subscribe(FakeService::new(|_| Plan::Count).subscription(&[], true)).unwrap();
    queue.submit(&[kernel(1, 0)]);
    run_all(&[&queue]);
    engine.quiesce(id).unwrap();
    engine.drain(id, Duration::MAX).unwrap();
    assert!(queue.handle.wait_empty(Duration::MAX));
    engine.shut_down(Duration::MAX).unwrap();
}

// Three subscriptions and four queues with work that never ends: one limit for all of it.
#[test]
fn shutdown_waits_once_for_everything_and_says_what_did_not_end() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT, OTHER_AGENT]);
    let queues: Vec<_> = (0..4)
        .map(|n| FakeQueue::new(&engine, &device, if n % 2 == 0 { AGENT } else { OTHER_AGENT }))
        .collect();
    for _ in 0..3 {
        engine.subscribe(FakeService::new(|_| Plan::Count).subscription(&[], false)).unwrap();
    }
    queues.iter().for_each(|queue| drop(queue.submit(&[kernel(1, 0), kernel(2, 0)])));
    let started = Instant::now();
    let error = engine.shut_down(Duration::from_secs(1)).unwrap_err();
    let waited = started.elapsed();
    assert!(waited < Duration::from_secs(4), "{waited:?}");
    assert!(matches!(error, Error::NotDrained { in_flight: 8, oldest: Some(_), .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("dispatch 1 on queue 1"), "{text}");
    // What did not end then may end later.
    run_all(&queues.iter().collect::<Vec<_>>());
    engine.shut_down(LIMIT).unwrap();
}

// Its kernels were not touched: only the mark behind them was, and it may never be reached.
#[test]
fn nobody_waits_for_kernels_from_before_the_first_subscription() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = Arc::new(FakeQueue::new(&engine, &device, AGENT));
    queue.accept_marks();
    let signal = device.app_signal(1);
    queue.submit(&[app_barrier(signal), kernel(1, 0)]);
    let id = engine.subscribe(FakeService::new(|_| Plan::Count).subscription(&[], true)).unwrap();
    assert_eq!(queue.run(), 0, "the mark stands behind the application's barrier");
    engine.quiesce(id).unwrap();
    engine.drain(id, LIMIT).unwrap();
    engine.unsubscribe(id).unwrap();
    assert!(queue.handle.wait_empty(Duration::ZERO), "what a destruction waits for");
    engine
        .shut_down(Duration::ZERO)
        .unwrap_or_else(|error| assert!(matches!(error, Error::ThreadBusy { .. })));
    device.add(signal, -1);
    run_all(&[&queue]);
    assert!(queue.ran.lock().unwrap().contains(&Ran::Kernel(1)));
}

// What the client gave the engine is the client's again: its destructor may be waited for.
#[test]
fn nothing_of_a_client_is_kept_after_the_shutdown() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let services = [(); 2].map(|()| FakeService::new(|_| Plan::Count));
    for service in &services {
        engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    }
    queue.submit(&[kernel(1, 0)]);
    run_all(&[&queue]);
    engine.shut_down(LIMIT).unwrap();
    assert_eq!(services.map(|service| Arc::strong_count(&service)), [1, 1]);
}

// A callback that blocks for good: nobody who stops waits for it longer than it was told to.
#[test]
fn a_callback_that_does_not_return_is_named_and_not_waited_for_without_end() {
    let device = FakeDevice::new();
    let engine = Arc::new(Engine::new(device.clone(), [AGENT]));
    engine.set_callback_timeout(Duration::from_millis(100));
    let queue = Arc::new(FakeQueue::new(&engine, &device, AGENT));
    let (inside, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (entered, left) = (Arc::clone(&inside), Arc::clone(&leave));
    let service = FakeService::new(move |_| {
        entered.wait();
        left.wait();
        Plan::Count
    });
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| queue.submit(&[kernel(1, 0)]));
        inside.wait();
        let error = engine.quiesce(id).unwrap_err();
        assert!(matches!(error, InterceptionError::CallbackBusy { agent: AGENT, .. }), "{error}");
        let error = engine.shut_down(Duration::from_millis(100)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("a callback for queue 1 on agent 0"), "{text}");
        leave.wait();
    });
    run_all(&[&queue]);
    engine.shut_down(LIMIT).unwrap();
    assert_eq!(service.retired(), 1, "what it had in hand retires like any other");
}

// Field report G40: a subscriber that goes away while a hook runs; then the reaper is gone, and late queues still end.
#[test]
fn queues_destroyed_after_the_shutdown_give_back_their_signals() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queues: Vec<_> = (0..3).map(|_| FakeQueue::new(&engine, &device, AGENT)).collect();
    engine.subscribe(FakeService::new(|_| Plan::Count).subscription(&[], true)).unwrap();
    for queue in &queues {
        queue.submit(&[kernel(1, 0)]);
        run_all(&[queue]);
    }
    engine.shut_down(LIMIT).unwrap();
    queues.iter().for_each(|queue| engine.queue_destroyed(&queue.handle));
    assert_eq!(device.live(), 0, "bell, counters, gates, carriers: all given back");
}

// Field report G20 of the serializer's kind: subscriptions that come and go without pause hold nobody back for good.
#[test]
fn starts_without_pause_do_not_starve_a_run_that_waits() {
    const ROUNDS: u64 = 200;
    let device = FakeDevice::new();
    let engine = Arc::new(Engine::new(device.clone(), [AGENT]));
    let queues: Vec<_> = (0..2).map(|_| Arc::new(FakeQueue::new(&engine, &device, AGENT))).collect();
    queues.iter().for_each(|queue| queue.accept_marks());
    let held = engine.subscribe(FakeService::new(|_| Plan::Decline).subscription(&[AGENT], true)).unwrap();
    let over = AtomicBool::new(false);
    let services = std::thread::scope(|scope| {
        let starter = scope.spawn(|| {
            let mut services = Vec::new();
            while !over.load(Ordering::Relaxed) {
                engine.quiesce(held).ok();
                let service = FakeService::new(|_| Plan::Count);
                let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
                engine.quiesce(id).unwrap();
                engine.unsubscribe(id).unwrap();
                services.push(service);
            }
            services
        });
        for round in 0..ROUNDS {
            queues.iter().for_each(|queue| drop(queue.submit(&[kernel(round, 0); 3])));
            run_all(&[&queues[0], &queues[1]]);
        }
        over.store(true, Ordering::Relaxed);
        starter.join().unwrap()
    });
    engine.shut_down(LIMIT).unwrap();
    let expected: Vec<_> = (0..ROUNDS).flat_map(|round| [round; 3]).collect();
    let mut measured = 0;
    for queue in &queues {
        let ran = queue.ran.lock().unwrap();
        let kernels =
            ran.iter().filter_map(|ran| if let Ran::Kernel(kernel) = ran { Some(*kernel) } else { None });
        assert_eq!(kernels.collect::<Vec<_>>(), expected, "each once, in order");
        let count = |mark| ran.iter().filter(|ran| **ran == Ran::Vendor(mark)).count();
        assert_eq!((count(START), count(READ)), (count(STOP), count(STOP)));
        measured += count(STOP);
    }
    // Every start is whole: what was measured is told, once, to whom it was measured for.
    assert!(services.iter().all(|service| service.lost().is_empty()));
    assert!(services.iter().all(|service| service.retired() == service.dispatched().len()));
    assert_eq!(services.iter().map(|service| service.retired()).sum::<usize>(), measured);
}
