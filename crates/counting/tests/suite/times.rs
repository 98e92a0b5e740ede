//! Kernel times as the application asks for them, the way HIP does: ask right after the wait, then arm the signal again with a
//! silent store, and use it anywhere.

use hsa_sys::{HSA_STATUS_SUCCESS, hsa_amd_profiling_dispatch_time_t};
use wavescope_counting::PoolSize;
use wavescope_workload::Signal;

use crate::packets::{PlainQueue, amd, core, packet, submit};
use crate::rig::*;

/// Start and end, if the runtime has an answer.
fn asked(rig: &Rig, signal: &Signal) -> Option<(u64, u64)> {
    let get = amd(rig).hsa_amd_profiling_get_dispatch_time_fn.unwrap();
    let mut time = hsa_amd_profiling_dispatch_time_t { start: 0, end: 0 };
    // SAFETY: a GPU's handle, a signal that lives, and a result that is ours.
    let status = unsafe { get(rig.gpu(0).agent(), signal.handle(), &raw mut time) };
    (status == HSA_STATUS_SUCCESS).then_some((time.start, time.end))
}

fn silent_store(rig: &Rig, signal: &Signal, value: i64) {
    let store = core(rig).hsa_signal_silent_store_relaxed_fn.unwrap();
    // SAFETY: the signal lives.
    unsafe { store(signal.handle(), value) };
}

/// Ticks of the clock that times are told in.
fn now(rig: &Rig) -> u64 {
    let (mut ticks, get) = (0_u64, core(rig).hsa_system_get_info_fn.unwrap());
    // SAFETY: the attribute is a 64-bit number.
    let status = unsafe { get(hsa_sys::HSA_SYSTEM_INFO_TIMESTAMP, (&raw mut ticks).cast()) };
    assert_eq!(status, HSA_STATUS_SUCCESS);
    ticks
}

on_both_faces! {
    fn a_signal_that_is_armed_again_has_the_times_of_its_next_kernel_only(rig on "gfx942") {
        let (counting, records) = rig.counting(1, &[0], always(rig.config(0, &["SQ_WAVES"], PoolSize(4))));
        counting.start().unwrap();
        let (queue, done) = (rig.queue(0), rig.application.signal(1).unwrap());
        let kernel = |waves| packet(rig, waves, done.handle().handle);
        let mut last = 0;
        // Counted kernels, each of them on the re-armed signal.
        for waves in 1..=20 {
            let before = now(rig);
            submit(rig, &queue, &[kernel(waves)]);
            done.wait_below(1, LIMIT).unwrap();
            let (start, end) = asked(rig, &done).unwrap();
            let after = now(rig);
            assert!(before <= start && start < end && end <= after, "{before} {start}..{end} {after}");
            assert!(last <= start, "the times of the kernel before");
            assert_eq!(asked(rig, &done), Some((start, end)), "the same answer again");
            last = end;
            let counted = records.recv_timeout(LIMIT).unwrap();
            assert_eq!(asked(rig, &done), Some((start, end)), "and when the record is there");
            let hsa = rig.interceptor.hsa();
            let told = (hsa.ns_to_ticks(counted.times.start_ns), hsa.ns_to_ticks(counted.times.end_ns));
            assert_eq!((told, counted.dispatch.grid[0]), ((start, end), 64 * waves), "the record says the same");
            silent_store(rig, &done, 1);
        }
        // Then it completes a kernel that we know nothing of: the runtime's own answer counts.
        let plain = PlainQueue::new(rig);
        let before = now(rig);
        plain.submit(&kernel(30));
        done.wait_below(1, LIMIT).unwrap();
        let (start, end) = asked(rig, &done).unwrap();
        assert!(before <= start && start < end, "{start}..{end} is from before {before}");
        counting.stop(LIMIT).unwrap();
        // And one of an intercepted queue that nobody listens to.
        silent_store(rig, &done, 1);
        let before = now(rig);
        submit(rig, &queue, &[kernel(31)]);
        done.wait_below(1, LIMIT).unwrap();
        let (start, end) = asked(rig, &done).unwrap();
        assert!(before <= start && start < end, "{start}..{end} is from before {before}");
        assert!(records.try_recv().is_none());
    }
}
