//! States of a queue that the application changes: active, profiled.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hsa_sys::HSA_STATUS_SUCCESS;
use wavescope_core::{Interception, LossReason};

use crate::application::*;
use crate::runtime::{Runtime, state};
use crate::service::*;

const LIMIT: Duration = Duration::from_secs(10);

// The hardware stops: what is in flight will never complete, and nobody waits for it.
#[test]
fn what_is_in_flight_on_an_inactivated_queue_is_lost_at_once() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let service = FakeService::new(|_| Plan::Count);
        let id = interceptor.subscribe(service.subscription(&[], true)).unwrap();
        let (queue, other) = (runtime.queue(64), runtime.queue(64));
        runtime.submit(queue, &[kernel(1, 0)]);
        let started = Instant::now();
        // SAFETY: the application's own queue.
        let status = unsafe { runtime.core().hsa_queue_inactivate_fn.unwrap()(queue) };
        assert_eq!(status, HSA_STATUS_SUCCESS);
        runtime.run_until(|| !service.lost().is_empty());
        assert_eq!(service.lost(), [LossReason::QueueError]);
        runtime.submit(other, &[kernel(2, 0)]);
        runtime.run_until(|| service.retired() == 2);
        runtime.destroy(queue);
        interceptor.drain(id, LIMIT).unwrap();
        assert!(started.elapsed() < Duration::from_secs(5), "nobody waited for what is lost");
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// Ours come from there too: the runtime never hears that times are not wanted.
#[test]
fn profiling_of_a_queue_stays_on_whatever_the_application_wants() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let queue = runtime.queue(64);
        for enabled in [0, 1, 0] {
            // SAFETY: the application's own queue.
            let status =
                unsafe { runtime.amd().hsa_amd_profiling_set_profiler_enabled_fn.unwrap()(queue, enabled) };
            assert_eq!(status, HSA_STATUS_SUCCESS);
            assert!(state().profiled.load(Ordering::Relaxed));
        }
        runtime.destroy(queue);
        interceptor.shut_down().unwrap();
    }
}
