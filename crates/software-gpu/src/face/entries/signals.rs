//! Signals: creation, every read-modify-write in every memory order, waits.

use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hsa_sys::*;

use crate::face::async_events::Handler;
use crate::face::error::{Failure, Outcome, status};
use crate::face::out::{array, put};
use crate::face::runtime::current;
use crate::face::signal::{Signal, Wake};
use crate::face::wait::{Condition, Patience, Until, timeout, wait};

const INVALID: Failure = Failure(HSA_STATUS_ERROR_INVALID_SIGNAL);

/// The signal of a handle that a caller passed.
fn find(handle: hsa_signal_t) -> Option<&'static Signal> {
    // SAFETY: HSA demands a handle that the runtime created, perhaps destroyed; zero is checked inside.
    unsafe { Signal::from_handle(handle) }
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_signal_create(
    initial_value: i64,
    num_consumers: u32,
    consumers: *const hsa_agent_t,
    signal: *mut hsa_signal_t,
) -> hsa_status_t {
    // SAFETY: `consumers` has `num_consumers` elements and `signal` is writable, as HSA demands of the caller.
    status(unsafe { create(initial_value, num_consumers, consumers, 0, signal) })
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_signal_create(
    initial_value: i64,
    num_consumers: u32,
    consumers: *const hsa_agent_t,
    attributes: u64,
    signal: *mut hsa_signal_t,
) -> hsa_status_t {
    // SAFETY: as for `hsa_signal_create`.
    status(unsafe { create(initial_value, num_consumers, consumers, attributes, signal) })
}

/// # Safety
/// `consumers` has `num_consumers` elements; `signal` is null or writable.
unsafe fn create(
    value: i64,
    num_consumers: u32,
    consumers: *const hsa_agent_t,
    attributes: u64,
    signal: *mut hsa_signal_t,
) -> Outcome {
    let runtime = current()?;
    if signal.is_null() || attributes & u64::from(HSA_AMD_SIGNAL_IPC.0) != 0 {
        return Err(Failure::ARGUMENT);
    }
    // SAFETY: passed on from the caller.
    let consumers = unsafe { array(consumers, num_consumers as usize) }?;
    let mut host_waits = consumers.is_empty();
    for consumer in consumers {
        host_waits |= runtime.agents.find(consumer)? == crate::face::agents::AgentIndex::Cpu;
    }
    let gpu_only = attributes & u64::from(HSA_AMD_SIGNAL_AMD_GPU_ONLY.0) != 0;
    let wake = if host_waits && !gpu_only { Wake::Interrupt } else { Wake::Poll };
    // SAFETY: not null, writable by the precondition.
    unsafe { put(signal, Signal::create(value, wake).handle()) }
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_signal_destroy(signal: hsa_signal_t) -> hsa_status_t {
    status(match find(signal) {
        Some(signal) if signal.destroy() => Ok(()),
        _ if signal.handle == 0 => Err(Failure::ARGUMENT),
        _ => Err(INVALID),
    })
}

macro_rules! loads {
    ($($name:ident $order:ident),*) => { $(
        #[doc = hsa_contract!()]
        pub(in crate::face) unsafe extern "C-unwind" fn $name(signal: hsa_signal_t) -> i64 {
            // A doorbell has no value to read; ROCr answers 0.
            find(signal).filter(|signal| signal.doorbell().is_none())
                .map_or(0, |signal| signal.value().load(Ordering::$order))
        }
    )* };
}

loads!(hsa_signal_load_relaxed Relaxed, hsa_signal_load_scacquire Acquire);

macro_rules! stores {
    ($($name:ident $order:ident $wakes:literal),*) => { $(
        #[doc = hsa_contract!()]
        pub(in crate::face) unsafe extern "C-unwind" fn $name(signal: hsa_signal_t, value: i64) {
            let Some(signal) = find(signal) else { return };
            if let Some(doorbell) = signal.doorbell() {
                return doorbell.ring(value.cast_unsigned());
            }
            signal.value().store(value, Ordering::$order);
            if $wakes {
                signal.notify();
            }
        }
    )* };
}

stores!(
    hsa_signal_store_relaxed Relaxed true,
    hsa_signal_store_screlease Release true,
    hsa_signal_silent_store_relaxed Relaxed false,
    hsa_signal_silent_store_screlease Release false
);

macro_rules! updates {
    ($($name:ident $operation:ident $order:ident),*) => { $(
        #[doc = hsa_contract!()]
        pub(in crate::face) unsafe extern "C-unwind" fn $name(signal: hsa_signal_t, value: i64) {
            if let Some(signal) = find(signal) {
                signal.value().$operation(value, Ordering::$order);
                signal.notify();
            }
        }
    )* };
}

updates!(
    hsa_signal_add_relaxed fetch_add Relaxed,
    hsa_signal_add_scacquire fetch_add Acquire,
    hsa_signal_add_screlease fetch_add Release,
    hsa_signal_add_scacq_screl fetch_add AcqRel,
    hsa_signal_subtract_relaxed fetch_sub Relaxed,
    hsa_signal_subtract_scacquire fetch_sub Acquire,
    hsa_signal_subtract_screlease fetch_sub Release,
    hsa_signal_subtract_scacq_screl fetch_sub AcqRel,
    hsa_signal_and_relaxed fetch_and Relaxed,
    hsa_signal_and_scacquire fetch_and Acquire,
    hsa_signal_and_screlease fetch_and Release,
    hsa_signal_and_scacq_screl fetch_and AcqRel,
    hsa_signal_or_relaxed fetch_or Relaxed,
    hsa_signal_or_scacquire fetch_or Acquire,
    hsa_signal_or_screlease fetch_or Release,
    hsa_signal_or_scacq_screl fetch_or AcqRel,
    hsa_signal_xor_relaxed fetch_xor Relaxed,
    hsa_signal_xor_scacquire fetch_xor Acquire,
    hsa_signal_xor_screlease fetch_xor Release,
    hsa_signal_xor_scacq_screl fetch_xor AcqRel
);

macro_rules! exchanges {
    ($($name:ident $order:ident),*) => { $(
        #[doc = hsa_contract!()]
        pub(in crate::face) unsafe extern "C-unwind" fn $name(signal: hsa_signal_t, value: i64) -> i64 {
            let Some(signal) = find(signal) else { return 0 };
            let old = signal.value().swap(value, Ordering::$order);
            signal.notify();
            old
        }
    )* };
}

exchanges!(
    hsa_signal_exchange_relaxed Relaxed,
    hsa_signal_exchange_scacquire Acquire,
    hsa_signal_exchange_screlease Release,
    hsa_signal_exchange_scacq_screl AcqRel
);

macro_rules! swaps {
    ($($name:ident $success:ident $failure:ident),*) => { $(
        #[doc = hsa_contract!()]
        pub(in crate::face) unsafe extern "C-unwind" fn $name(
            signal: hsa_signal_t,
            expected: i64,
            value: i64,
        ) -> i64 {
            let Some(signal) = find(signal) else { return 0 };
            let swapped =
                signal.value().compare_exchange(expected, value, Ordering::$success, Ordering::$failure);
            signal.notify();
            swapped.unwrap_or_else(|found| found)
        }
    )* };
}

swaps!(
    hsa_signal_cas_relaxed Relaxed Relaxed,
    hsa_signal_cas_scacquire Acquire Acquire,
    hsa_signal_cas_screlease Release Relaxed,
    hsa_signal_cas_scacq_screl AcqRel Acquire
);

/// `hsa_wait_state_t` as patience.
pub(in crate::face) fn patience(wait_state: hsa_wait_state_t) -> Patience {
    if wait_state == HSA_WAIT_STATE_ACTIVE { Patience::Active } else { Patience::Blocked }
}

macro_rules! waits {
    ($($name:ident),*) => { $(
        #[doc = hsa_contract!()]
        pub(in crate::face) unsafe extern "C-unwind" fn $name(
            signal: hsa_signal_t,
            condition: hsa_signal_condition_t,
            compare: i64,
            timeout_hint: u64,
            wait_state: hsa_wait_state_t,
        ) -> i64 {
            let Some(signal) = find(signal) else { return 0 };
            let condition = Condition { signal, condition, compare };
            wait(&[condition], Until::Any, timeout(timeout_hint), patience(wait_state));
            signal.value().load(Ordering::Acquire)
        }
    )* };
}

// Both acquire: the weaker promise is kept too.
waits!(hsa_signal_wait_relaxed, hsa_signal_wait_scacquire);

/// Waits on several signals. A handle of 0 never meets its condition. Returns the index of one that did.
///
/// # Safety
/// The arrays have `count` elements.
unsafe fn wait_several(
    count: u32,
    (signals, conditions, values): (*mut hsa_signal_t, *mut hsa_signal_condition_t, *mut i64),
    (until, time, patience): (Until, Duration, Patience),
) -> Outcome<(usize, Vec<Condition>)> {
    let count = count as usize;
    // SAFETY: `count` elements by the precondition.
    let signals = unsafe { array(signals.cast_const(), count) }?;
    // SAFETY: as above.
    let conditions = unsafe { array(conditions.cast_const(), count) }?;
    // SAFETY: as above.
    let values = unsafe { array(values.cast_const(), count) }?;
    let mut places = Vec::with_capacity(count);
    let mut wanted = Vec::with_capacity(count);
    for (place, handle) in signals.into_iter().enumerate().filter(|(_, handle)| handle.handle != 0) {
        let signal = find(handle).ok_or(INVALID)?;
        places.push(place);
        wanted.push(Condition { signal, condition: conditions[place], compare: values[place] });
    }
    let found = wait(&wanted, until, time, patience).ok_or(Failure::ERROR)?;
    Ok((places.get(found).copied().unwrap_or(0), wanted))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_signal_wait_any(
    signal_count: u32,
    signals: *mut hsa_signal_t,
    conds: *mut hsa_signal_condition_t,
    values: *mut i64,
    timeout_hint: u64,
    wait_hint: hsa_wait_state_t,
    satisfying_value: *mut i64,
) -> u32 {
    let how = (Until::Any, timeout(timeout_hint), patience(wait_hint));
    // SAFETY: the arrays have `signal_count` elements, as the extension demands.
    let Ok((place, wanted)) = (unsafe { wait_several(signal_count, (signals, conds, values), how) }) else {
        // ROCr 7.2.4 reads the value of signal number -1 and crashes (seen). A program that gets here will meet that.
        tracing::warn!("hsa_amd_signal_wait_any timed out: ROCr 7.2.4 crashes at this point");
        return u32::MAX;
    };
    let met = wanted.iter().find_map(Condition::met);
    if let Some(value) = met.filter(|_| !satisfying_value.is_null()) {
        // SAFETY: not null, and writable as the extension demands.
        let _ = unsafe { put(satisfying_value, value) };
    }
    place as u32
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_signal_wait_all(
    signal_count: u32,
    signals: *mut hsa_signal_t,
    conds: *mut hsa_signal_condition_t,
    values: *mut i64,
    timeout_hint: u64,
    wait_hint: hsa_wait_state_t,
    satisfying_values: *mut i64,
) -> u32 {
    let how = (Until::All, timeout(timeout_hint), patience(wait_hint));
    // SAFETY: the arrays have `signal_count` elements, as the extension demands.
    let Ok((_, wanted)) = (unsafe { wait_several(signal_count, (signals, conds, values), how) }) else {
        return u32::MAX;
    };
    for (place, condition) in wanted.iter().enumerate().filter(|_| !satisfying_values.is_null()) {
        // SAFETY: an array of `signal_count` elements where not null.
        let _ = unsafe { put(satisfying_values.wrapping_add(place), condition.met().unwrap_or(0)) };
    }
    0
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_signal_async_handler(
    signal: hsa_signal_t,
    condition: hsa_signal_condition_t,
    compare: i64,
    handler: hsa_amd_signal_handler,
    data: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let signal = find(signal).ok_or(INVALID)?;
        let function = handler.ok_or(Failure::ARGUMENT)?;
        let condition = Condition { signal, condition, compare };
        let started = runtime.events.watch(condition, Handler::C { function, data });
        started.then_some(()).ok_or(Failure(HSA_STATUS_ERROR_OUT_OF_RESOURCES))
    }))
}

/// A function and its argument, on their way to the event thread.
struct AsyncCall {
    function: unsafe extern "C-unwind" fn(*mut c_void),
    data: *mut c_void,
}

// SAFETY: the pointer only goes back to the function it came with, which the caller wants called from the runtime's
// thread.
unsafe impl Send for AsyncCall {}

impl AsyncCall {
    fn run(self) {
        // SAFETY: the caller asked for exactly this call.
        unsafe { (self.function)(self.data) }
    }
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_async_function(
    callback: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    data: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let call = AsyncCall { function: callback.ok_or(Failure::ARGUMENT)?, data };
        let started = runtime.events.run(Box::new(move || call.run()));
        started.then_some(()).ok_or(Failure(HSA_STATUS_ERROR_OUT_OF_RESOURCES))
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_signal_value_pointer(
    signal: hsa_signal_t,
    value_ptr: *mut *mut i64,
) -> hsa_status_t {
    status(find(signal).ok_or(INVALID).and_then(|signal| {
        if signal.doorbell().is_some() {
            return Err(Failure::ARGUMENT);
        }
        // SAFETY: null or writable, as the extension demands.
        unsafe { put(value_ptr, signal.value().as_ptr()) }
    }))
}
