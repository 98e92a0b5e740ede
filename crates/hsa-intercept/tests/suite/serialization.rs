//! Who may run on an agent, through the real packets.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

use wavescope_core::{Company, Interception, SubscriptionId, Token};
use wavescope_hsa_intercept::Engine;

use crate::common::*;

const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn second_queue_runs_only_after_the_first_retired() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let (a, b) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    engine.subscribe(FakeService::new(|_| Plan::Count).subscription(&[AGENT], true)).unwrap();
    a.submit(&[kernel(1, 0)]);
    b.submit(&[kernel(2, 0)]);
    assert_eq!(b.run(), 0, "its gate is closed");
    run_all(&[&a, &b]);
}

// The legal program that must end: queue A {barrier on S, kernel}, then queue B {kernel that completes S}.
#[test]
fn queue_behind_a_barrier_does_not_hold_the_agent() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let (a, b) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    let signal = device.app_signal(1);
    a.submit(&[kernel(1, 0), app_barrier(signal), kernel(2, 0)]);
    b.submit(&[kernel(3, signal)]);
    run_all(&[&a, &b]);
    engine.drain(id, LIMIT).unwrap();
    assert_eq!(service.retired(), 3);
}

#[test]
fn declined_kernels_hold_the_agent_too() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let (a, b) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    engine.subscribe(FakeService::new(|_| Plan::Decline).subscription(&[AGENT], true)).unwrap();
    a.submit(&[kernel(1, 0)]);
    b.submit(&[kernel(2, 0)]);
    assert_eq!(b.run(), 0, "its gate is closed");
    run_all(&[&a, &b]);
}

#[test]
fn other_agents_are_not_serialized_with_it() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT, OTHER_AGENT]);
    let a = FakeQueue::new(&engine, &device, AGENT);
    let b = FakeQueue::new(&engine, &device, OTHER_AGENT);
    engine.subscribe(FakeService::new(|_| Plan::Count).subscription(&[], true)).unwrap();
    a.submit(&[kernel(1, 0)]);
    b.submit(&[kernel(2, 0)]);
    assert_eq!(b.run(), 5);
}

// A batch longer than the pool of programs waits on the GPU, never in the hook, and loses nothing.
#[test]
fn batch_longer_than_the_pool_waits_on_the_gpu_and_loses_nothing() {
    const POOL: u32 = 8;
    const BATCH: usize = 4096;
    let device = FakeDevice::new();
    let engine = Arc::new(Engine::new(device.clone(), [AGENT]));
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let asked = AtomicU32::new(0);
    let service = FakeService::new(move |_| match (asked.fetch_add(1, Ordering::Relaxed) + 1) % POOL {
        0 => Plan::CountAndHold,
        _ => Plan::Count,
    });
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    queue.submit(&vec![kernel(1, 0); BATCH]);
    let mut counted = 0;
    while counted < BATCH {
        queue.run();
        let retired = service.retired();
        assert!(retired <= counted + POOL as usize, "a program was reused before its data were read");
        if retired == counted + POOL as usize {
            counted = retired;
            engine.return_grant(id, Token { index: counted as u32, generation: 0 });
        }
        std::thread::yield_now();
    }
    engine.drain(id, LIMIT).unwrap();
    assert!(queue.is_empty());
}

#[test]
fn a_held_grant_keeps_the_other_queue_out() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let (a, b) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    let service = FakeService::new(|_| Plan::CountAndHold);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    a.submit(&[kernel(1, 0)]);
    b.submit(&[kernel(2, 0)]);
    run_all(&[&a]);
    assert!(a.handle.wait_empty(LIMIT));
    assert_eq!(b.run(), 0, "retired, but not copied");
    engine.return_grant(id, Token { index: 1, generation: 0 });
    run_all(&[&b]);
}

// Work from before serialization was switched on must be over before a serialized kernel starts.
#[test]
fn kernels_instrumented_before_serialization_hold_back_the_first_serialized_one() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let (a, b) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    engine.subscribe(FakeService::new(|_| Plan::Count).subscription(&[AGENT], false)).unwrap();
    a.submit(&[kernel(1, 0)]);
    engine.subscribe(FakeService::new(|_| Plan::Decline).subscription(&[AGENT], true)).unwrap();
    b.submit(&[kernel(2, 0)]);
    assert_eq!(b.run(), 0, "its gate is closed");
    run_all(&[&a, &b]);
}

// A dispatch callback may stop its own context; it must not wait for itself.
#[test]
fn quiesce_and_unsubscribe_from_inside_a_callback_return() {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    static ID: OnceLock<SubscriptionId> = OnceLock::new();
    let device = FakeDevice::new();
    let engine = ENGINE.get_or_init(|| Engine::new(device.clone(), [AGENT]));
    let queue = FakeQueue::new(engine, &device, AGENT);
    let service = FakeService::new(|_| {
        let (engine, id) = (ENGINE.get().unwrap(), *ID.get().unwrap());
        engine.quiesce(id).unwrap();
        let in_flight = engine.drain(id, LIMIT);
        assert!(in_flight.is_ok(), "nothing was in flight yet");
        engine.unsubscribe(id).unwrap();
        Plan::Count
    });
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    ID.set(id).unwrap();
    queue.submit(&[kernel(1, 0)]);
    run_all(&[&queue]);
    assert!(queue.handle.wait_empty(LIMIT));
    assert_eq!(service.retired(), 1, "it was instrumented, so it is delivered");
    assert_eq!(queue.submit(&[kernel(2, 0)]), [kernel(2, 0)]);
}

// Field report G01: two agents, two threads, 10,000 dispatches each.
#[test]
fn two_agents_driven_by_two_threads_finish() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT, OTHER_AGENT]);
    let service =
        FakeService::new(|dispatch| if dispatch.id.0 % 3 == 0 { Plan::Decline } else { Plan::Count });
    let id = engine.subscribe(service.subscription(&[], true)).unwrap();
    std::thread::scope(|scope| {
        for agent in [AGENT, OTHER_AGENT] {
            let queue = FakeQueue::new(&engine, &device, agent);
            scope.spawn(move || {
                for _ in 0..100 {
                    queue.submit(&[kernel(1, 0); 100]);
                    run_all(&[&queue]);
                }
            });
        }
    });
    engine.drain(id, LIMIT).unwrap();
    assert_eq!(service.retired(), 20_000 - 20_000 / 3);
}

// A service may read its last dispatch after it unsubscribed; what waits for that grant must go on.
#[test]
fn a_grant_returned_after_unsubscribing_still_lets_the_agent_go_on() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let service = FakeService::new(|_| Plan::CountAndHold);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    queue.submit(&[kernel(1, 0)]);
    run_all(&[&queue]);
    engine.quiesce(id).unwrap();
    engine.drain(id, LIMIT).unwrap();
    engine.unsubscribe(id).unwrap();
    let next = engine.subscribe(FakeService::new(|_| Plan::Decline).subscription(&[AGENT], true)).unwrap();
    queue.submit(&[kernel(2, 0)]);
    engine.return_grant(id, Token { index: 1, generation: 0 });
    run_all(&[&queue]);
    engine.drain(next, LIMIT).unwrap();
}

// Unsubscribed while a callback does not return: what that callback answers in the end holds the agent like any other.
#[test]
fn a_grant_of_a_callback_that_outlasts_its_subscription_still_comes_back() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    engine.set_callback_timeout(Duration::from_millis(20));
    let (a, b) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    let (inside, leave) = (Barrier::new(2), Barrier::new(2));
    let barriers = Arc::new((inside, leave));
    let callback = Arc::clone(&barriers);
    let service = FakeService::new(move |_| {
        callback.0.wait();
        callback.1.wait();
        Plan::CountAndHold
    });
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| a.submit(&[kernel(1, 0)]));
        barriers.0.wait();
        engine.quiesce(id).unwrap_err();
        engine.unsubscribe(id).unwrap_err();
        barriers.1.wait();
    });
    engine.set_callback_timeout(LIMIT);
    let next = engine.subscribe(FakeService::new(|_| Plan::Decline).subscription(&[AGENT], true)).unwrap();
    b.submit(&[kernel(2, 0)]);
    run_all(&[&a]);
    assert!(a.handle.wait_empty(LIMIT));
    assert_eq!(b.run(), 0, "not read yet");
    engine.return_grant(id, Token { index: 1, generation: 0 });
    assert!(b.run() > 0, "long before the watchdog");
    engine.quiesce(next).unwrap();
    engine.drain(next, LIMIT).unwrap();
}

// A callback may stop its own context; what it answers then counts all the same.
#[test]
fn a_grant_of_a_callback_that_ends_its_own_subscription_still_comes_back() {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    static ID: OnceLock<SubscriptionId> = OnceLock::new();
    let device = FakeDevice::new();
    let engine = ENGINE.get_or_init(|| Engine::new(device.clone(), [AGENT]));
    let queue = FakeQueue::new(engine, &device, AGENT);
    let service = FakeService::new(|_| {
        let (engine, id) = (ENGINE.get().unwrap(), *ID.get().unwrap());
        engine.quiesce(id).unwrap();
        engine.drain(id, LIMIT).unwrap();
        engine.unsubscribe(id).unwrap();
        Plan::CountAndHold
    });
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    ID.set(id).unwrap();
    queue.submit(&[kernel(1, 0)]);
    run_all(&[&queue]);
    assert!(queue.handle.wait_empty(LIMIT));
    assert_eq!(service.retired(), 1);
    engine.return_grant(id, Token { index: 1, generation: 0 });
    engine.subscribe(FakeService::new(|_| Plan::Decline).subscription(&[AGENT], true)).unwrap();
    queue.submit(&[kernel(2, 0)]);
    run_all(&[&queue]);
}

// What went through unseen must be over before the first kernel is measured, where the queue can be asked.
#[test]
fn unseen_kernels_of_another_queue_hold_back_the_first_measured_one() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let a = Arc::new(FakeQueue::new(&engine, &device, AGENT));
    let b = FakeQueue::new(&engine, &device, AGENT);
    a.accept_marks();
    a.submit(&[kernel(1, 0)]);
    engine.subscribe(FakeService::new(|_| Plan::Count).subscription(&[AGENT], true)).unwrap();
    b.submit(&[kernel(2, 0)]);
    assert_eq!(b.run(), 0, "kernel 1 may still run");
    run_all(&[&a, &b]);
    assert_eq!(a.ran.lock().unwrap()[0], Ran::Kernel(1));
}

// Declined kernels of an earlier subscription may still wait for the agent, and the mark stands behind them.
#[test]
fn what_waits_from_an_earlier_subscription_goes_on_when_the_next_begins() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let a = Arc::new(FakeQueue::new(&engine, &device, AGENT));
    let b = Arc::new(FakeQueue::new(&engine, &device, AGENT));
    a.accept_marks();
    b.accept_marks();
    let first = engine.subscribe(FakeService::new(|_| Plan::Decline).subscription(&[AGENT], true)).unwrap();
    a.submit(&[kernel(1, 0)]);
    b.submit(&[kernel(2, 0)]);
    engine.quiesce(first).unwrap();
    engine.unsubscribe(first).unwrap();
    let service = FakeService::new(|_| Plan::Count);
    engine.set_watchdog(Duration::MAX);
    let next = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    b.submit(&[kernel(3, 0)]);
    run_all(&[&a, &b]);
    engine.drain(next, LIMIT).unwrap();
    assert_eq!(service.companies(), [Company::default()]);
}

// It may be waiting for the very kernel that is held back: then it is no longer waited for. What it runs nobody sees, so the
// records say until it comes to its mark that they may not have been alone.
#[test]
fn a_queue_that_does_not_come_to_its_mark_does_not_hang_the_others() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    engine.set_watchdog(Duration::from_millis(50));
    let a = Arc::new(FakeQueue::new(&engine, &device, AGENT));
    let b = FakeQueue::new(&engine, &device, AGENT);
    a.accept_marks();
    let signal = device.app_signal(1);
    a.submit(&[app_barrier(signal), kernel(1, 0)]);
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    b.submit(&[kernel(2, signal)]);
    run_all(&[&a, &b]);
    engine.drain(id, LIMIT).unwrap();
    let overrun = Company { overrun: true, unseen: false };
    assert_eq!(service.companies(), [overrun]);
    let deadline = std::time::Instant::now() + LIMIT;
    loop {
        // Until the mark's retirement was seen.
        b.submit(&[kernel(3, 0)]);
        run_all(&[&b]);
        engine.drain(id, LIMIT).unwrap();
        if service.companies().last() == Some(&Company::default()) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "nobody is alone again");
    }
}

// Kernels that spin on each other across queues cannot run one at a time: the watchdog lets both run.
#[test]
fn a_kernel_that_waits_for_another_queues_kernel_does_not_hang() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    engine.set_watchdog(Duration::from_millis(50));
    let (a, b) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    a.submit(&[kernel(1, 0)]);
    b.submit(&[kernel(2, 0)]);
    // Kernel 1 does not end before kernel 2 has run.
    let started = std::time::Instant::now();
    while b.run() == 0 {
        assert!(started.elapsed() < LIMIT, "the queues are stuck");
        std::thread::yield_now();
    }
    assert!(started.elapsed() >= Duration::from_millis(50));
    run_all(&[&a, &b]);
    engine.drain(id, LIMIT).unwrap();
    assert_eq!(service.companies(), [Company { overrun: true, unseen: false }; 2]);
    a.submit(&[kernel(3, 0)]);
    run_all(&[&a, &b]);
    engine.drain(id, LIMIT).unwrap();
    assert_eq!(service.companies()[2..], [Company::default()], "in order again");
}
