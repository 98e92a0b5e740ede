//! Kernel times as the application asks for them.

use std::time::Duration;

use wavescope_core::{DispatchTimes, Interception};
use wavescope_hsa_intercept::{Engine, Signal};

use crate::common::*;

const LIMIT: Duration = Duration::from_secs(10);

/// What the scripted GPU gives kernel `n`.
fn times_of_kernel(n: u64) -> Option<DispatchTimes> {
    Some(DispatchTimes { start_ns: n * 10, end_ns: n * 10 + 5 })
}

#[test]
fn application_gets_the_kernels_times_as_soon_as_its_signal_falls() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let id = engine.subscribe(FakeService::new(|_| Plan::Count).subscription(&[AGENT], true)).unwrap();
    let app = device.app_signal(1);
    assert_eq!(engine.times_of(AGENT, Signal(app)), None, "never used: the runtime is asked");
    queue.submit(&[kernel(7, app)]);
    queue.run_at_most(3);
    assert_eq!(device.value(app), 0);
    assert_eq!(engine.times_of(AGENT, Signal(app)), times_of_kernel(7), "the read has not even begun");
    queue.run();
    engine.drain(id, LIMIT).unwrap();
    // Other kernels recycle the carrier; the answer stays.
    queue.submit(&[kernel(8, 0), kernel(9, 0)]);
    run_all(&[&queue]);
    assert_eq!(engine.times_of(AGENT, Signal(app)), times_of_kernel(7));
}

#[test]
fn the_answer_ends_when_the_signal_is_used_again() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let service =
        FakeService::new(|dispatch| if dispatch.kernel_object == 2 { Plan::Decline } else { Plan::Count });
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    let (app, other) = (device.app_signal(2), device.app_signal(1));
    queue.submit(&[kernel(1, app)]);
    run_all(&[&queue]);
    engine.drain(id, LIMIT).unwrap();
    queue.submit(&[kernel(2, app), kernel(3, other)]);
    assert_eq!(engine.times_of(AGENT, Signal(app)), None, "kernel 2 was declined: the runtime knows");
    engine.signal_reused(Signal(other));
    assert_eq!(engine.times_of(AGENT, Signal(other)), None);
    run_all(&[&queue]);
}

#[test]
fn answers_outlast_the_subscription_until_every_signal_was_used_again() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    let (first, second) = (device.app_signal(2), device.app_signal(2));
    queue.submit(&[kernel(1, first), kernel(2, second)]);
    run_all(&[&queue]);
    engine.quiesce(id).unwrap();
    engine.drain(id, LIMIT).unwrap();
    engine.unsubscribe(id).unwrap();
    for (signal, object) in [(first, 1), (second, 2)] {
        assert_eq!(engine.times_of(AGENT, Signal(signal)), times_of_kernel(object));
        let batch = [kernel(8, signal)];
        assert_eq!(queue.submit(&batch), batch, "nobody listens: identical");
        assert_eq!(engine.times_of(AGENT, Signal(signal)), None);
    }
    assert_eq!(queue.submit(&[kernel(9, first)]), [kernel(9, first)]);
    engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    assert_eq!(
        queue.submit(&[kernel(10, 0)]).len(),
        8,
        "announcement, bell, gate: unseen kernels may still run"
    );
}
