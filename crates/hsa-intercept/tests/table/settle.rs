//! Waiting for what was submitted before.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use wavescope_core::Interception;
use wavescope_hsa_intercept::Technique;

use crate::application::*;
use crate::runtime::{Runtime, object};
use crate::service::*;

const LIMIT: Duration = Duration::from_secs(10);

// The ring behind is full: most of it has no number yet.
#[test]
fn settle_waits_for_what_is_still_in_the_ring_of_the_front() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let service = FakeService::new(|_| Plan::Count);
    let id = interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let queue = runtime.queue(4096);
    let app = runtime.signal(4096);
    runtime.submit(queue, &(1..=4096).map(|n| kernel(n, app)).collect::<Vec<_>>());
    let behind = object(queue);
    let retired = std::thread::scope(|scope| {
        let settled = scope.spawn(|| {
            interceptor.settle(id, LIMIT).unwrap();
            service.retired()
        });
        while !settled.is_finished() {
            behind.run(100);
            std::thread::sleep(Duration::from_micros(500));
        }
        settled.join().unwrap()
    });
    runtime.run_until(|| service.retired() == 4096);
    interceptor.shut_down().unwrap();
    assert_eq!(retired, 4096, "all were submitted before");
}

// A thread that finds the front busy leaves its packets to whoever reads.
#[test]
fn settle_waits_for_what_another_thread_reads() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let gates = Arc::new((Barrier::new(2), Barrier::new(2)));
    let callback = Arc::clone(&gates);
    let service = FakeService::new(move |dispatch| {
        if dispatch.kernel_object == 1 {
            callback.0.wait();
            callback.1.wait();
        }
        Plan::Count
    });
    let id = interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let queue = runtime.queue(64).expose_provenance();
    let at = || std::ptr::with_exposed_provenance_mut::<hsa_sys::hsa_queue_t>(queue);
    let settled = std::thread::scope(|scope| {
        let shared = Shared(&runtime);
        scope.spawn(move || {
            shared.get().submit(std::ptr::with_exposed_provenance_mut(queue), &[kernel(1, 0)])
        });
        gates.0.wait();
        runtime.submit(at(), &[kernel(2, 0)]);
        let settled = interceptor.settle(id, Duration::from_millis(300));
        gates.1.wait();
        settled
    });
    runtime.run_until(|| service.retired() == 2);
    interceptor.shut_down().unwrap();
    assert!(settled.is_err(), "kernel 2 was submitted before, and nobody had even been asked about it");
}
