//! What a store to a signal costs that is no doorbell, through the table with fronts installed and without:
//! `intercept/store/*`. HIP stores to signals all the time. And what one packet costs that is reserved, written and rung for,
//! with nobody subscribed: `intercept/submit/*`.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "the scripted runtime of the tests")]
#![expect(dead_code, reason = "the scripted runtime of the tests")]

#[path = "../tests/table/application.rs"]
mod application;
#[path = "../tests/table/entries.rs"]
mod entries;
#[path = "../tests/table/runtime.rs"]
mod runtime;

use std::hint::black_box;
use std::time::Duration;

use criterion::Criterion;
use hsa_sys::hsa_signal_t;
use wavescope_hsa_intercept::Technique;

use runtime::Runtime;

unsafe extern "C-unwind" fn plain_store(signal: hsa_signal_t, value: i64) {
    let word = std::ptr::with_exposed_provenance::<std::sync::atomic::AtomicI64>(signal.handle as usize);
    // SAFETY: the bench's own signal.
    unsafe { &*word }.store(value, std::sync::atomic::Ordering::Release);
}

/// Processor time of this thread: a busy machine does not count.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the result outlives the call.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "the clock of a thread");
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// Submits one packet; the queue behind counts as empty.
fn submit_one(runtime: &Runtime, queue: *mut hsa_sys::hsa_queue_t) {
    let packet = wavescope_core::AqlPacket([2; 16]);
    let index = runtime.reserve(queue, 1);
    application::write(queue, index, black_box(&packet));
    runtime.store(application::doorbell(queue), index.cast_signed());
    let hardware = runtime::object(queue);
    let written = hardware.index(entries::WRITE_INDEX).load(std::sync::atomic::Ordering::Relaxed);
    hardware.index(entries::READ_INDEX).store(written, std::sync::atomic::Ordering::Relaxed);
}

fn bench_submit(criterion: &mut Criterion, runtime: &Runtime) {
    let mut group = criterion.benchmark_group("intercept/submit");
    for technique in [None, Some(Technique::Doorbell)] {
        let interceptor = technique.map(|technique| runtime.install(technique));
        let queue = runtime.queue(64);
        let name = if technique.is_some() { "front" } else { "not installed" };
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let start = processor_time();
                (0..rounds).for_each(|_| submit_one(runtime, queue));
                processor_time() - start
            });
        });
        assert_eq!(runtime.destroy(queue), hsa_sys::HSA_STATUS_SUCCESS);
        interceptor.iter().for_each(|interceptor| interceptor.shut_down().unwrap());
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("intercept/store");
    let signal: &'static std::sync::atomic::AtomicI64 = Box::leak(Box::default());
    let signal = hsa_signal_t { handle: std::ptr::from_ref(signal).expose_provenance() as u64 };
    let runtime = Runtime::start();
    // A runtime whose store is a store.
    runtime::parts(runtime.table).0.hsa_signal_store_screlease_fn = Some(plain_store);
    for technique in [None, Some(Technique::Doorbell)] {
        let interceptor = technique.map(|technique| runtime.install(technique));
        let queues: Vec<_> = (0..64).map(|_| runtime.queue(64)).collect();
        let store = runtime.core().hsa_signal_store_screlease_fn.unwrap();
        let name = if technique.is_some() { "64 fronts" } else { "not installed" };
        let store_one = || {
            // SAFETY: the bench's own signal.
            unsafe { store(black_box(signal), black_box(1)) }
        };
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let start = processor_time();
                (0..rounds).for_each(|_| store_one());
                processor_time() - start
            });
        });
        for queue in queues {
            assert_eq!(runtime.destroy(queue), hsa_sys::HSA_STATUS_SUCCESS);
        }
        interceptor.iter().for_each(|interceptor| interceptor.shut_down().unwrap());
    }
    group.finish();
    bench_submit(&mut criterion, &runtime);
    criterion.final_summary();
}
