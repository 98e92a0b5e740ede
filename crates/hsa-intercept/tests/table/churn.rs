//! Queues that come and go: what that costs those that stay, and threads that are late.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hsa_sys::{HSA_STATUS_SUCCESS, hsa_queue_t};
use wavescope_core::Interception;
use wavescope_hsa_intercept::Technique;

use crate::application::*;
use crate::runtime::{self, Runtime, state};
use crate::service::*;

// The memory of a front goes back to the runtime with its queue.
#[test]
fn queues_that_are_gone_keep_no_memory() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let allocated = || state().live_bytes.load(Ordering::Relaxed);
    let before = allocated();
    for _ in 0..32 {
        let queue = runtime.queue(1 << 17);
        assert!(allocated() - before >= 64 << 17);
        assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
    }
    let started = Instant::now();
    // The worker lets go of the last one.
    while allocated() > before {
        assert!(started.elapsed() < Duration::from_secs(10), "{} bytes are kept", allocated() - before);
        std::thread::yield_now();
    }
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// One thread submits on its queue while another destroys and creates queues.
#[test]
fn a_thread_submits_while_another_destroys_and_creates_queues() {
    const ROUNDS: usize = 10_000;
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let service = FakeService::new(|_| Plan::Count);
    interceptor.subscribe(service.subscription(&[], false)).unwrap();
    let queue = runtime.queue(64).expose_provenance();
    let over = AtomicBool::new(false);
    let submitted = std::thread::scope(|scope| {
        let (shared, over) = (Shared(&runtime), &over);
        let submits = scope.spawn(move || {
            let queue: *mut hsa_queue_t = std::ptr::with_exposed_provenance_mut(queue);
            let mut submitted = 0;
            while !over.load(Ordering::Acquire) {
                shared.get().submit(queue, &[kernel(submitted, 0)]);
                submitted += 1;
                while shared.get().read_index(queue) < submitted {
                    std::thread::yield_now();
                }
                runtime::object(queue).run(usize::MAX);
            }
            submitted
        });
        for round in 0..ROUNDS {
            let other = runtime.queue(16);
            if round % 16 == 0 {
                runtime.submit(other, &[kernel(round as u64, 0)]);
                runtime::object(other).run(usize::MAX);
            }
            assert_eq!(runtime.destroy(other), HSA_STATUS_SUCCESS);
        }
        over.store(true, Ordering::Release);
        submits.join().unwrap()
    });
    let queue: *mut hsa_queue_t = std::ptr::with_exposed_provenance_mut(queue);
    runtime.run_until(|| service.retired() as u64 == submitted + ROUNDS as u64 / 16);
    assert_eq!(ran(queue), (0..submitted).collect::<Vec<_>>());
    assert_eq!(service.lost(), []);
    runtime.destroy(queue);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// A thread still rings a queue, and asks for its indices, while another destroys it: wrong, but it must not take us with
// it. What it finds, it finds whole.
#[test]
fn a_late_thread_finds_a_front_whole_or_not_at_all() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let service = FakeService::new(|_| Plan::Decline);
    interceptor.subscribe(service.subscription(&[], false)).unwrap();
    let (bell, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (shared, bell, over) = (Shared(&runtime), &bell, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Acquire) {
                    // A signal of the scripted runtime can be stored to after its end.
                    match bell.load(Ordering::Acquire) {
                        0 => std::thread::yield_now(),
                        bell => shared.get().store(bell as u64, 63),
                    }
                }
            });
        }
        for n in 0..3000 {
            let queue = runtime.queue(64);
            bell.store(doorbell(queue) as usize, Ordering::Release);
            runtime.submit(queue, &[kernel(n, 0)]);
            assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
        }
        over.store(true, Ordering::Release);
    });
    interceptor.shut_down().unwrap();
}
