//! Times of dispatches and copies, and the conversion between clocks.

use std::ffi::c_int;

use hsa_sys::*;

use crate::face::clock::system_ns_of;
use crate::face::error::{Failure, Outcome, status};
use crate::face::out::put;
use crate::face::queue_table::AnyQueue;
use crate::face::runtime::current;
use crate::face::signal::Signal;

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_profiling_set_profiler_enabled(
    queue: *mut hsa_queue_t,
    enable: c_int,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let queue = runtime.queues.find(queue)?;
        queue.block().set_profiling(enable != 0);
        if let AnyQueue::Intercept(queue) = &queue {
            queue.hardware().block().set_profiling(enable != 0);
        }
        Ok(())
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_profiling_async_copy_enable(
    _enable: bool,
) -> hsa_status_t {
    // Copies always leave their times.
    status(current().map(drop))
}

/// Start and end of what completed on a signal, in system nanoseconds.
fn times(signal: hsa_signal_t) -> Outcome<(u64, u64)> {
    // SAFETY: HSA demands a handle that the runtime created; zero is checked inside.
    let signal = unsafe { Signal::from_handle(signal) }.ok_or(Failure(HSA_STATUS_ERROR_INVALID_SIGNAL))?;
    let (start, end) = signal.times().ok_or(Failure::ERROR)?;
    Ok((system_ns_of(start), system_ns_of(end)))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_profiling_get_dispatch_time(
    agent: hsa_agent_t,
    signal: hsa_signal_t,
    time: *mut hsa_amd_profiling_dispatch_time_t,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        runtime.agents.find_gpu(agent)?;
        let (start, end) = times(signal)?;
        // SAFETY: null or writable, as the extension demands.
        unsafe { put(time, hsa_amd_profiling_dispatch_time_t { start, end }) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_profiling_get_async_copy_time(
    signal: hsa_signal_t,
    time: *mut hsa_amd_profiling_async_copy_time_t,
) -> hsa_status_t {
    status(current().and_then(|_| {
        let (start, end) = times(signal)?;
        // SAFETY: null or writable, as the extension demands.
        unsafe { put(time, hsa_amd_profiling_async_copy_time_t { start, end }) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_profiling_convert_tick_to_system_domain(
    agent: hsa_agent_t,
    agent_tick: u64,
    system_tick: *mut u64,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        runtime.agents.find_gpu(agent)?;
        // SAFETY: null or writable, as the extension demands.
        unsafe { put(system_tick, system_ns_of(agent_tick)) }
    }))
}
