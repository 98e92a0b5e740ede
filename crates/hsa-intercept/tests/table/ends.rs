//! The end of the runtime while there are queues: from then on nothing of ours touches it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hsa_sys::{HSA_STATUS_ERROR_NOT_INITIALIZED, HSA_STATUS_SUCCESS, hsa_queue_t};
use wavescope_core::{Interception, LossReason};
use wavescope_hsa_intercept::{Interceptor, Options, Technique};

use crate::application::*;
use crate::runtime::{self, Runtime, state};
use crate::service::*;

const LIMIT: Duration = Duration::from_secs(10);

/// Longer than any of our threads rests.
const A_WHILE: Duration = Duration::from_millis(150);

fn end_for_good(runtime: &Runtime) {
    state().last.store(true, Ordering::Relaxed);
    runtime.end();
    assert!(state().is_down.load(Ordering::Relaxed));
}

/// Has the tool that is unloaded do this.
fn on_unload(interceptor: &Arc<Interceptor>, work: impl FnOnce(&Interceptor) + Send + 'static) {
    let interceptor = Arc::clone(interceptor);
    *state().on_unload.lock().unwrap() = Some(Box::new(move || work(&interceptor)));
}

// The application ends the runtime and has not destroyed its queue; the tool may or may not end interception when it is
// unloaded.
#[test]
fn nothing_touches_a_runtime_that_went_down_with_a_queue() {
    for technique in TECHNIQUES {
        for tool_ends in [true, false] {
            let runtime = Runtime::start();
            let interceptor = runtime.install(technique);
            let service = FakeService::new(|_| Plan::Count);
            interceptor.subscribe(service.subscription(&[], true)).unwrap();
            let queue = runtime.queue(64);
            runtime.submit(queue, &(0..10).map(|n| kernel(n, 0)).collect::<Vec<_>>());
            runtime.run_until(|| service.retired() == 10);
            if tool_ends {
                on_unload(&interceptor, |interceptor| interceptor.shut_down().unwrap());
            }
            end_for_good(&runtime);
            std::thread::sleep(A_WHILE);
            interceptor.shut_down().unwrap();
            runtime.assert_clean();
        }
    }
}

// Through entries that somebody kept, a front of a runtime that is gone is not touched and not passed on.
#[test]
fn late_calls_find_a_front_that_does_nothing() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let queue = runtime.queue(64);
    let bell = doorbell(queue);
    runtime.reserve(queue, 3);
    end_for_good(&runtime);
    assert_eq!(runtime.reserve(queue, 1), 0);
    assert_eq!(runtime.read_index(queue), 0);
    runtime.store(bell, 0);
    let core = runtime.core();
    // SAFETY: the application's queue, wrong as it is.
    let inactivated = unsafe { core.hsa_queue_inactivate_fn.unwrap()(queue) };
    assert_eq!(inactivated, HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_eq!(runtime.destroy(queue), HSA_STATUS_ERROR_NOT_INITIALIZED);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// What is in flight when the runtime goes down is waited for by a tool that asks; what nobody waits for is lost.
#[test]
fn work_in_flight_at_the_end_is_drained_or_lost() {
    for technique in TECHNIQUES {
        for waits in [true, false] {
            let runtime = Runtime::start();
            let interceptor = runtime.install(technique);
            let service = FakeService::new(|_| Plan::Count);
            let id = interceptor.subscribe(service.subscription(&[], true)).unwrap();
            let queue = runtime.queue(64);
            // More than the ring behind a front takes.
            runtime.submit(queue, &(0..64).map(|n| kernel(n, 0)).collect::<Vec<_>>());
            if waits {
                on_unload(&interceptor, move |interceptor| {
                    std::thread::scope(|scope| {
                        let drained = scope.spawn(|| {
                            let started = Instant::now();
                            while started.elapsed() < A_WHILE {
                                runtime::run();
                                std::thread::yield_now();
                            }
                        });
                        interceptor.quiesce(id).unwrap();
                        interceptor.drain(id, LIMIT).unwrap();
                        drained.join().unwrap();
                    });
                    interceptor.shut_down().unwrap();
                });
            }
            end_for_good(&runtime);
            let started = Instant::now();
            while service.retired() < 64 {
                assert!(started.elapsed() < LIMIT, "{technique:?}: {} were told", service.retired());
                std::thread::yield_now();
            }
            let lost = if waits { vec![] } else { vec![LossReason::QueueDestroyed; 64] };
            assert_eq!(service.lost(), lost, "{technique:?}");
            interceptor.shut_down().unwrap();
            runtime.assert_clean();
        }
    }
}

// One of several `hsa_shut_down`, with queues and work: everything goes on.
#[test]
fn an_end_that_is_not_the_last_changes_nothing() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let service = FakeService::new(|_| Plan::Count);
        interceptor.subscribe(service.subscription(&[], true)).unwrap();
        let queue = runtime.queue(64);
        for round in 1..=5 {
            // More than the ring behind a front takes.
            runtime.submit(queue, &(0..64).map(|n| kernel(n, 0)).collect::<Vec<_>>());
            runtime.end();
            runtime.run_until(|| service.retired() == 64 * round);
        }
        assert_eq!(service.lost(), []);
        assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// While other threads ring and ring, somebody calls `hsa_shut_down`, and one of them is the last.
#[test]
fn the_end_comes_while_others_submit() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let service = FakeService::new(|_| Plan::Count);
        interceptor.subscribe(service.subscription(&[], true)).unwrap();
        let queue = runtime.queue(64).expose_provenance();
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (shared, over) = (Shared(&runtime), &over);
            scope.spawn(move || {
                let queue: *mut hsa_queue_t = std::ptr::with_exposed_provenance_mut(queue);
                let mut submitted = 0;
                while !over.load(Ordering::Acquire) {
                    shared.get().submit(queue, &[kernel(submitted, 0)]);
                    submitted += 1;
                    while service.retired() < submitted as usize && !over.load(Ordering::Acquire) {
                        runtime::run();
                        std::thread::yield_now();
                    }
                }
            });
            for _ in 0..200 {
                runtime.end();
            }
            over.store(true, Ordering::Release);
        });
        end_for_good(&runtime);
        std::thread::sleep(A_WHILE);
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// The last `hsa_shut_down` joins the runtime's event thread, on which handlers of the application ask for times and queues
// fail.
#[test]
fn what_the_event_thread_calls_returns_while_the_runtime_waits_for_it() {
    for technique in TECHNIQUES {
        for failing in [false, true] {
            let runtime = Runtime::start();
            let interceptor = runtime.install(technique);
            let service = FakeService::new(|_| Plan::Count);
            interceptor.subscribe(service.subscription(&[], true)).unwrap();
            let queue = runtime.try_queue(runtime::gpu(0), 64, Some(on_error), std::ptr::null_mut()).unwrap();
            let app = runtime.signal(1);
            runtime.submit(queue, &[kernel(1, app)]);
            let (get, object) = (get_times(&runtime), runtime::object(queue));
            let (told, joined) = std::sync::mpsc::channel();
            *state().on_unload.lock().unwrap() = Some(Box::new(move || {
                runtime::run();
                let (done, returned) = std::sync::mpsc::channel();
                std::thread::spawn(move || {
                    if failing {
                        object.fail(hsa_sys::HSA_STATUS_ERROR)
                    } else {
                        get(app)
                    }
                    let _ = done.send(());
                });
                told.send(returned.recv_timeout(LIMIT).is_ok()).unwrap();
            }));
            end_for_good(&runtime);
            assert!(joined.recv().unwrap(), "{technique:?}, failing: {failing}");
            interceptor.shut_down().unwrap();
        }
    }
}

unsafe extern "C-unwind" fn on_error(
    _: hsa_sys::hsa_status_t,
    _: *mut hsa_queue_t,
    _: *mut std::ffi::c_void,
) {
}

/// Asks for the times of a signal's kernel on the first GPU.
fn get_times(runtime: &Runtime) -> impl Fn(u64) + Copy + Send + 'static {
    let get = runtime.amd().hsa_amd_profiling_get_dispatch_time_fn.unwrap();
    move |signal| {
        let mut time = hsa_sys::hsa_amd_profiling_dispatch_time_t::zeroed();
        // SAFETY: the arguments are in order.
        let _ = unsafe { get(runtime::gpu(0), hsa_sys::hsa_signal_t { handle: signal }, &raw mut time) };
    }
}

// A delivery thread of ours that asks for times is no thread that the tool that is unloaded has to wait for.
#[test]
fn a_tool_that_is_unloaded_may_destroy_a_signal() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Runtime);
    let service = FakeService::new(|_| Plan::Count);
    interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let queue = runtime.queue(64);
    let app = runtime.signal(1);
    runtime.submit(queue, &[kernel(1, app)]);
    let get = get_times(&runtime);
    let destroy = runtime.core().hsa_signal_destroy_fn.unwrap();
    let (told, destroyed) = std::sync::mpsc::channel();
    *state().on_unload.lock().unwrap() = Some(Box::new(move || {
        runtime::run();
        wavescope_core::threads::create("wavescope-test", move || get(app)).unwrap();
        std::thread::sleep(A_WHILE);
        // The unloading thread cannot give up, so the process does.
        std::thread::spawn(move || {
            if destroyed.recv_timeout(LIMIT).is_err() {
                eprintln!("the unloading thread waits for a lock whose holder waits for it");
                std::process::abort();
            }
        });
        // SAFETY: the application's signal.
        let _ = unsafe { destroy(hsa_sys::hsa_signal_t { handle: app }) };
        told.send(()).unwrap();
    }));
    end_for_good(&runtime);
    interceptor.shut_down().unwrap();
}

/// Runs `meanwhile` on this thread while another is in the callback of a queue that the callback has destroyed; the callback
/// returns when `meanwhile` called what it got, or did.
fn inside_a_callback_that_destroyed_its_queue(
    runtime: &Runtime,
    interceptor: &Interceptor,
    meanwhile: impl FnOnce(std::sync::mpsc::Sender<()>),
) {
    let (target, destroy) = (Arc::new(std::sync::atomic::AtomicUsize::new(0)), Destroy::of(runtime));
    let (told, destroyed) = std::sync::mpsc::channel();
    let (let_return, may_return) = std::sync::mpsc::channel();
    let (queue_of_callback, may_return) = (Arc::clone(&target), std::sync::Mutex::new(may_return));
    let service = FakeService::new(move |_| {
        assert_eq!(destroy.call(queue_of_callback.load(Ordering::Acquire)), HSA_STATUS_SUCCESS);
        told.send(()).unwrap();
        let _ = may_return.lock().unwrap().recv();
        Plan::Decline
    });
    interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let queue = runtime.queue(64).expose_provenance();
    target.store(queue, Ordering::Release);
    std::thread::scope(|scope| {
        let shared = Shared(runtime);
        scope.spawn(move || {
            shared.get().submit(std::ptr::with_exposed_provenance_mut(queue), &[kernel(1, 0)])
        });
        destroyed.recv().unwrap();
        meanwhile(let_return);
    });
}

fn live_queues() -> i64 {
    state().live_queues.load(Ordering::Relaxed)
}

#[test]
fn a_queue_whose_callback_outlasts_the_runtime_is_not_destroyed_after_it() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Runtime);
    inside_a_callback_that_destroyed_its_queue(&runtime, &interceptor, |let_return| {
        end_for_good(&runtime);
        drop(let_return);
    });
    std::thread::sleep(A_WHILE);
    assert_eq!(live_queues(), 1, "it went with its runtime");
    interceptor.shut_down().unwrap();
}

#[test]
fn the_end_waits_for_a_queue_that_outlasts_interception() {
    let runtime = Runtime::start();
    let options =
        Options { technique: Some(Technique::Runtime), drain_timeout: A_WHILE, ..Options::default() };
    let interceptor = runtime.install_with(options);
    inside_a_callback_that_destroyed_its_queue(&runtime, &interceptor, |let_return| {
        let _ = interceptor.shut_down();
        std::thread::spawn(move || {
            std::thread::sleep(A_WHILE);
            drop(let_return);
        });
        end_for_good(&runtime);
        assert_eq!(live_queues(), 0);
    });
}
