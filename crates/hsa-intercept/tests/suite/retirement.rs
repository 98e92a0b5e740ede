//! Events, times, drains, lost dispatches.

use std::time::Duration;

use wavescope_core::{
    DispatchEvent, DispatchId, DispatchTimes, Interception, InterceptionError, LossReason, Outcome,
};
use wavescope_hsa_intercept::Engine;

use crate::common::*;

const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn each_dispatch_is_published_once_in_order_with_its_times() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    queue.submit(&[kernel(3, 0), kernel(4, 0)]);
    run_all(&[&queue]);
    engine.drain(id, LIMIT).unwrap();

    let dispatched = service.dispatched();
    let ids: Vec<_> = dispatched.iter().map(|dispatch| (dispatch.id, dispatch.kernel_object)).collect();
    assert_eq!(ids, [(DispatchId(1), 3), (DispatchId(2), 4)]);
    assert_eq!((dispatched[0].grid, dispatched[0].workgroup), ([1024, 1, 1], [64, 1, 1]));
    let outcomes: Vec<_> = service
        .events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            DispatchEvent::Retired { token, outcome, .. } => Some((token.index, *outcome)),
            DispatchEvent::Dispatched { .. } => None,
        })
        .collect();
    // The scripted GPU says 10 and 15 times the kernel's number; now() is 0, so times are clamped to it.
    let clamped = Outcome::Completed(DispatchTimes { start_ns: 0, end_ns: 0 });
    assert_eq!(outcomes, [(1, clamped), (2, clamped)]);
    device.set_now(35);
    queue.submit(&[kernel(3, 0), kernel(4, 0)]);
    device.set_now(43);
    run_all(&[&queue]);
    engine.drain(id, LIMIT).unwrap();
    let last = service.events.lock().unwrap().iter().rev().take(2).copied().collect::<Vec<_>>();
    let times = |event: &DispatchEvent| match event {
        DispatchEvent::Retired { outcome: Outcome::Completed(times), .. } => (times.start_ns, times.end_ns),
        other => panic!("{other:?}"),
    };
    assert_eq!(times(&last[1]), (35, 35), "30 to 35 lies before the enqueue");
    assert_eq!(times(&last[0]), (40, 43), "45 lies in the future");
}

#[test]
fn drain_waits_for_retirement_and_names_what_is_missing() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    queue.submit(&[kernel(1, 0), kernel(2, 0)]);
    queue.run_at_most(4);
    engine.quiesce(id).unwrap();
    let error = engine.drain(id, Duration::from_millis(20)).unwrap_err();
    // The first may or may not have been published yet; the second cannot have been.
    assert!(matches!(error, InterceptionError::DrainTimedOut { in_flight: 1 | 2, .. }), "{error}");
    queue.run();
    engine.drain(id, LIMIT).unwrap();
    engine.unsubscribe(id).unwrap();
    assert_eq!(service.retired(), 2);
    assert!(matches!(engine.drain(id, LIMIT), Err(InterceptionError::UnknownSubscription(_))));
}

#[test]
fn in_flight_at_quiesce_is_delivered_and_nothing_after_it_is_asked() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    queue.submit(&[kernel(1, 0)]);
    engine.quiesce(id).unwrap();
    queue.submit(&[kernel(2, 0)]);
    run_all(&[&queue]);
    engine.drain(id, LIMIT).unwrap();
    engine.unsubscribe(id).unwrap();
    assert_eq!(queue.submit(&[kernel(3, 0)]), [kernel(3, 0)], "nobody left: identical");
    let objects: Vec<_> = service.dispatched().iter().map(|dispatch| dispatch.kernel_object).collect();
    assert_eq!((objects, service.retired()), (vec![1], 1));
}

#[test]
fn a_stopped_queue_loses_what_is_in_flight_and_the_drain_ends() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let (queue, other) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    queue.submit(&[kernel(1, 0), kernel(2, 0)]);
    other.submit(&[kernel(3, 0)]);
    queue.run_at_most(4);
    queue.handle.failed();
    run_all(&[&other]);
    engine.drain(id, LIMIT).unwrap();
    let lost = service.lost();
    assert_eq!(
        lost,
        [LossReason::QueueError],
        "one retired before, one is lost, the other queue got the agent"
    );
    assert_eq!(queue.submit(&[kernel(4, 0)]), [kernel(4, 0)], "a stopped queue is left alone");
}

#[test]
fn a_destroyed_queue_loses_what_is_in_flight_and_gives_back_its_signals() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    let before = device.live();
    for round in 0..50 {
        let queue = FakeQueue::new(&engine, &device, AGENT);
        queue.submit(&[kernel(1, 0), kernel(2, 0)]);
        queue.run_at_most(4);
        engine.queue_destroyed(&queue.handle);
        engine.drain(id, LIMIT).unwrap();
        assert_eq!(service.retired(), 2 * (round + 1));
    }
    assert!(service.lost().iter().all(|reason| *reason == LossReason::QueueDestroyed));
    engine.unsubscribe(id).unwrap();
    engine.shut_down(LIMIT).unwrap();
    assert_eq!(device.live(), before, "all but the bell, which packets of the destroyed queues still name");
}

// Field report G03: signals stay within the most that was ever in flight, however many dispatches there were.
#[test]
fn live_signals_are_bounded_by_what_is_in_flight() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let id = engine.subscribe(FakeService::new(|_| Plan::Count).subscription(&[AGENT], true)).unwrap();
    for _ in 0..200 {
        queue.submit(&[kernel(1, 0); 50]);
        run_all(&[&queue]);
        assert!(queue.handle.wait_empty(LIMIT));
    }
    engine.drain(id, LIMIT).unwrap();
    assert_eq!(device.live_interrupts(), 1, "the reaper's bell, for all queues");
    assert_eq!(device.peak(), 50 + 3, "carriers, the queue's counter and gate, and the bell");
}

#[test]
fn shutdown_ends_subscriptions_and_refuses_new_ones() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let service = FakeService::new(|_| Plan::Count);
    engine.subscribe(service.subscription(&[], true)).unwrap();
    engine.shut_down(LIMIT).unwrap();
    engine.shut_down(LIMIT).unwrap();
    assert!(matches!(engine.subscribe(service.subscription(&[], true)), Err(InterceptionError::ShutDown)));
}
