//! Dispatch callbacks that destroy queues: their own, and those that another thread is inside of.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hsa_sys::HSA_STATUS_SUCCESS;
use wavescope_core::{Interception, LossReason};
use wavescope_hsa_intercept::Options;

use crate::application::*;
use crate::runtime::{self, Runtime, state};
use crate::service::*;

const LIMIT: Duration = Duration::from_secs(10);

/// Waits for what another thread does.
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < LIMIT, "{what}");
        std::thread::yield_now();
    }
}

fn live_queues() -> i64 {
    state().live_queues.load(Ordering::Relaxed)
}

// A queue is destroyed by the callback that is called for it: what came before it runs, the batch in hand is dropped, and
// what was instrumented of it is lost, told once.
#[test]
fn a_callback_may_destroy_its_queue() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let (target, destroy) = (Arc::new(AtomicUsize::new(0)), Destroy::of(&runtime));
        let queue_of_callback = Arc::clone(&target);
        let service = FakeService::new(move |dispatch| {
            if dispatch.kernel_object == 3 {
                let queue = queue_of_callback.swap(0, Ordering::AcqRel);
                assert_eq!(destroy.call(queue), HSA_STATUS_SUCCESS);
            }
            Plan::Count
        });
        let id = interceptor.subscribe(service.subscription(&[], true)).unwrap();
        let queue = runtime.queue(64);
        target.store(queue.expose_provenance(), Ordering::Release);
        runtime.submit(queue, &[kernel(1, 0)]);
        runtime.run_until(|| service.retired() == 1);
        let started = Instant::now();
        runtime.submit(queue, &[kernel(2, 0), kernel(3, 0), kernel(4, 0)]);
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        wait_until("the queue goes", || live_queues() == 0);
        wait_until("all are told", || service.retired() == 4);
        assert_eq!(service.lost(), [LossReason::QueueDestroyed; 3], "{technique:?}");
        interceptor.quiesce(id).unwrap();
        interceptor.drain(id, LIMIT).unwrap();
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// The callback of one queue destroys another, which a second thread is inside of: the second goes on untouched, and the
// queue ends when it leaves.
#[test]
fn a_callback_may_destroy_a_queue_that_another_thread_is_inside_of() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let (target, step, destroy) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Destroy::of(&runtime));
        let (queue_of_callback, steps) = (Arc::clone(&target), Arc::clone(&step));
        let service = FakeService::new(move |dispatch| {
            if dispatch.kernel_object == 1 {
                steps.store(1, Ordering::Release);
                wait_until("the destruction", || steps.load(Ordering::Acquire) == 2);
            } else {
                let started = Instant::now();
                assert_eq!(destroy.call(queue_of_callback.load(Ordering::Acquire)), HSA_STATUS_SUCCESS);
                assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
                assert_eq!(live_queues(), 2, "somebody is inside: the runtime has not heard of it yet");
                steps.store(2, Ordering::Release);
            }
            Plan::Count
        });
        interceptor.subscribe(service.subscription(&[], true)).unwrap();
        let (first, second) = (runtime.queue(64), runtime.queue(64));
        let second_address = second.expose_provenance();
        target.store(second_address, Ordering::Release);
        std::thread::scope(|scope| {
            let shared = Shared(&runtime);
            scope.spawn(move || {
                let queue = std::ptr::with_exposed_provenance_mut(second_address);
                shared.get().submit(queue, &[kernel(1, 0)]);
            });
            wait_until("the second callback", || step.load(Ordering::Acquire) == 1);
            runtime.submit(first, &[kernel(2, 0)]);
        });
        wait_until("the queue goes", || live_queues() == 1);
        runtime.run_until(|| service.retired() == 2);
        assert_eq!(service.lost().len(), 1, "the kernel of the queue that went");
        assert_eq!(ran(first), [2]);
        assert_eq!(runtime.destroy(first), HSA_STATUS_SUCCESS);
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// Two callbacks destroy each other's queues at once: neither waits for long.
#[test]
fn callbacks_may_destroy_each_others_queues() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let addresses = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let (of_callbacks, both, destroy) =
            (Arc::clone(&addresses), Arc::new(std::sync::Barrier::new(2)), Destroy::of(&runtime));
        let service = FakeService::new(move |dispatch| {
            both.wait();
            let other = &of_callbacks[1 - dispatch.kernel_object as usize];
            assert_eq!(destroy.call(other.load(Ordering::Acquire)), HSA_STATUS_SUCCESS);
            both.wait();
            if dispatch.kernel_object == 0 { Plan::Count } else { Plan::Decline }
        });
        interceptor.subscribe(service.subscription(&[], false)).unwrap();
        for address in addresses.iter() {
            address.store(runtime.queue(64).expose_provenance(), Ordering::Release);
        }
        let started = Instant::now();
        std::thread::scope(|scope| {
            for (number, address) in addresses.iter().enumerate() {
                let (shared, queue) = (Shared(&runtime), address.load(Ordering::Acquire));
                scope.spawn(move || {
                    let queue = std::ptr::with_exposed_provenance_mut(queue);
                    shared.get().submit(queue, &[kernel(number as u64, 0)]);
                });
            }
        });
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        wait_until("both queues go", || live_queues() == 0);
        wait_until("all are told", || service.lost().len() == 1);
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// A callback does not return for longer than the application waits: its queue ends later, and what was in flight on it is
// lost at once.
#[test]
fn a_queue_whose_callback_is_slow_ends_when_it_returns() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let options = Options {
            technique: Some(technique),
            destroy_timeout: Duration::from_millis(50),
            ..Options::default()
        };
        let interceptor = runtime.install_with(options);
        let step = Arc::new(AtomicUsize::new(0));
        let steps = Arc::clone(&step);
        let service = FakeService::new(move |dispatch| {
            if dispatch.kernel_object == 2 {
                steps.store(1, Ordering::Release);
                wait_until("the destruction", || steps.load(Ordering::Acquire) == 2);
            }
            Plan::Count
        });
        interceptor.subscribe(service.subscription(&[], true)).unwrap();
        let queue = runtime.queue(64);
        let address = queue.expose_provenance();
        runtime.submit(queue, &[kernel(1, 0)]);
        std::thread::scope(|scope| {
            let shared = Shared(&runtime);
            scope.spawn(move || {
                shared.get().submit(std::ptr::with_exposed_provenance_mut(address), &[kernel(2, 0)]);
            });
            wait_until("the callback", || step.load(Ordering::Acquire) == 1);
            assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
            assert_eq!(live_queues(), 1);
            step.store(2, Ordering::Release);
        });
        wait_until("the queue goes", || live_queues() == 0);
        wait_until("all are told", || service.lost().len() == 2);
        runtime::run();
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}
