//! Something is refused, by the runtime or for want of memory: the application's packets still run.

use std::sync::atomic::Ordering;

use hsa_sys::{HSA_STATUS_ERROR_INVALID_QUEUE, HSA_STATUS_ERROR_OUT_OF_RESOURCES, HSA_STATUS_SUCCESS};
use wavescope_core::{AgentId, Interception};
use wavescope_hsa_intercept::{OtherQueues, Technique};

use crate::application::*;
use crate::runtime::{Runtime, gpu, state};
use crate::service::*;

#[test]
fn a_queue_that_the_runtime_refuses_is_refused_with_its_status_and_leaves_nothing() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let signals = state().live_signals.load(Ordering::Relaxed);
        state().refuse_queues.store(true, Ordering::Relaxed);
        for _ in 0..3 {
            let status = runtime.try_queue(gpu(0), 64, None, std::ptr::null_mut()).unwrap_err();
            assert_eq!(status, HSA_STATUS_ERROR_OUT_OF_RESOURCES);
        }
        state().refuse_queues.store(false, Ordering::Relaxed);
        let live =
            (state().live_queues.load(Ordering::Relaxed), state().live_signals.load(Ordering::Relaxed));
        // One signal for the runtime's event thread stays.
        assert!(live.0 == 0 && live.1 <= signals + 1, "{live:?}");
        let queue = runtime.queue(64);
        runtime.submit(queue, &[kernel(1, 0)]);
        runtime.run_until(|| ran(queue) == [1]);
        runtime.destroy(queue);
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

#[test]
fn a_hook_that_cannot_be_registered_gives_the_queue_back() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Runtime);
    state().refuse_hook.store(true, Ordering::Relaxed);
    let status = runtime.try_queue(gpu(0), 64, None, std::ptr::null_mut()).unwrap_err();
    assert_eq!(status, HSA_STATUS_ERROR_INVALID_QUEUE);
    assert_eq!(state().live_queues.load(Ordering::Relaxed), 0);
    interceptor.shut_down().unwrap();
}

// The ring behind a front is larger than the application's; a runtime that has no such ring gives one of the same size.
#[test]
fn a_front_makes_do_with_a_ring_of_the_applications_size() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    state().largest_queue.store(64, Ordering::Relaxed);
    let service = FakeService::new(|_| Plan::Count);
    interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let queue = runtime.queue(64);
    assert_eq!(crate::runtime::object(queue).size(), 64);
    // 64 kernels become 5 packets each: many laps of the ring behind.
    runtime.submit(queue, &(1..=64).map(|n| kernel(n, 0)).collect::<Vec<_>>());
    runtime.run_until(|| service.retired() == 64);
    assert_eq!(ran(queue), (1..=64).collect::<Vec<_>>());
    assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// Without memory or a signal for a front the application gets a plain queue, and its agent is reported blind.
#[test]
fn a_front_that_cannot_be_made_leaves_the_application_a_plain_queue() {
    for refuse in [&state_memory as &dyn Fn(bool), &state_signals] {
        let runtime = Runtime::start();
        let interceptor = runtime.install(Technique::Doorbell);
        let blind = |unseen| OtherQueues { agent: AgentId(0), unseen, internal: 0 };
        let service = FakeService::new(|_| Plan::Count);
        interceptor.subscribe(service.subscription(&[], true)).unwrap();
        refuse(true);
        let queue = runtime.queue(64);
        refuse(false);
        assert_eq!(interceptor.other_queues()[0], blind(1));
        runtime.submit(queue, &[kernel(1, 0)]);
        runtime.run_until(|| ran(queue) == [1]);
        assert!(service.dispatched().is_empty());
        let seen = runtime.queue(64);
        runtime.submit(seen, &[kernel(2, 0)]);
        runtime.run_until(|| service.retired() == 1);
        assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
        assert_eq!(interceptor.other_queues()[0], blind(0), "and sees again when that queue is gone");
        runtime.destroy(seen);
        interceptor.shut_down().unwrap();
        assert_eq!(state().live_queues.load(Ordering::Relaxed), 0);
        runtime.assert_clean();
    }
}

fn state_memory(refuse: bool) {
    state().refuse_memory.store(refuse, Ordering::Relaxed);
}

fn state_signals(refuse: bool) {
    state().refuse_signals.store(refuse, Ordering::Relaxed);
}

#[test]
fn without_signals_in_the_hook_packets_run_as_they_are() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let queue = runtime.queue(64);
        let service = FakeService::new(|_| Plan::Count);
        interceptor.subscribe(service.subscription(&[], true)).unwrap();
        let app = runtime.signal(1);
        state_signals(true);
        runtime.submit(queue, &[kernel(1, app), kernel(2, 0)]);
        runtime.run_until(|| ran(queue) == [1, 2]);
        assert_eq!(crate::runtime::value(app), 0);
        assert!(service.dispatched().is_empty());
        state_signals(false);
        runtime.submit(queue, &[kernel(3, 0), kernel(4, 0)]);
        runtime.run_until(|| service.retired() == 2);
        // Carriers for two are there: the third of a batch has none.
        state_signals(true);
        runtime.submit(queue, &[kernel(5, 0), kernel(6, 0), kernel(7, 0)]);
        runtime.run_until(|| ran(queue).len() == 7 && service.retired() == 4);
        state_signals(false);
        runtime.destroy(queue);
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}
