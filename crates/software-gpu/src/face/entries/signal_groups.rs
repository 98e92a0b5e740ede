//! Signal groups: several signals under one handle, waited for together.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hsa_sys::*;

use super::signals::patience;
use crate::face::error::{Failure, Outcome, status};
use crate::face::out::{array, put};
use crate::face::runtime::current;
use crate::face::signal::Signal;
use crate::face::wait::{Condition, Until, wait};

static GROUPS: Mutex<Option<HashMap<u64, Vec<hsa_signal_t>>>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(0x4772_0001);

fn with_groups<T>(f: impl FnOnce(&mut HashMap<u64, Vec<hsa_signal_t>>) -> T) -> T {
    f(GROUPS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_signal_group_create(
    num_signals: u32,
    signals: *const hsa_signal_t,
    num_consumers: u32,
    consumers: *const hsa_agent_t,
    signal_group: *mut hsa_signal_group_t,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        if num_signals == 0 || signal_group.is_null() {
            return Err(Failure::ARGUMENT);
        }
        // SAFETY: as many elements as stated, as HSA demands.
        let signals = unsafe { array(signals, num_signals as usize) }?;
        // SAFETY: as above.
        for consumer in unsafe { array(consumers, num_consumers as usize) }? {
            runtime.agents.find(consumer)?;
        }
        let handle = NEXT.fetch_add(1, Ordering::Relaxed);
        with_groups(|groups| groups.insert(handle, signals));
        // SAFETY: not null, and writable as HSA demands.
        unsafe { put(signal_group, hsa_signal_group_t { handle }) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_signal_group_destroy(
    signal_group: hsa_signal_group_t,
) -> hsa_status_t {
    status(current().and_then(|_| {
        let removed = with_groups(|groups| groups.remove(&signal_group.handle));
        removed.map(drop).ok_or(Failure(HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP))
    }))
}

/// # Safety
/// The arrays have as many elements as the group has signals; the others are null or writable.
unsafe fn wait_any(
    group: hsa_signal_group_t,
    (conditions, values): (*const hsa_signal_condition_t, *const i64),
    wait_state: hsa_wait_state_t,
    (signal, value): (*mut hsa_signal_t, *mut i64),
) -> Outcome {
    current()?;
    let signals = with_groups(|groups| groups.get(&group.handle).cloned());
    let signals = signals.ok_or(Failure(HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP))?;
    // SAFETY: one element per signal by the precondition.
    let conditions = unsafe { array(conditions, signals.len()) }?;
    // SAFETY: as above.
    let values = unsafe { array(values, signals.len()) }?;
    let wanted = signals.iter().zip(conditions).zip(values).map(|((&handle, condition), compare)| {
        // SAFETY: the group was made from handles that HSA demands to be live.
        let signal =
            unsafe { Signal::from_handle(handle) }.ok_or(Failure(HSA_STATUS_ERROR_INVALID_SIGNAL))?;
        Ok(Condition { signal, condition, compare })
    });
    let wanted = wanted.collect::<Outcome<Vec<_>>>()?;
    let met = wait(&wanted, Until::Any, Duration::MAX, patience(wait_state)).ok_or(Failure::ERROR)?;
    // SAFETY: null or writable by the precondition.
    unsafe { put(signal, signals[met]) }?;
    // SAFETY: as above.
    unsafe { put(value, wanted[met].signal.value().load(Ordering::Acquire)) }
}

macro_rules! group_waits {
    ($($name:ident),*) => { $(
        #[doc = hsa_contract!()]
        pub(in crate::face) unsafe extern "C-unwind" fn $name(
            signal_group: hsa_signal_group_t,
            conditions: *const hsa_signal_condition_t,
            compare_values: *const i64,
            wait_state_hint: hsa_wait_state_t,
            signal: *mut hsa_signal_t,
            value: *mut i64,
        ) -> hsa_status_t {
            // SAFETY: arrays and results as HSA demands of the caller.
            status(unsafe {
                wait_any(signal_group, (conditions, compare_values), wait_state_hint, (signal, value))
            })
        }
    )* };
}

// Both acquire: the weaker promise is kept too.
group_waits!(hsa_signal_group_wait_any_relaxed, hsa_signal_group_wait_any_scacquire);
