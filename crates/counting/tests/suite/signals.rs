//! How many signals exist that were made through the runtime's table: the application's and interception's, but not the
//! runtime's own. Counted in the table, below everybody else.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use hsa_sys::{HSA_STATUS_SUCCESS, HsaApiTable, hsa_agent_t, hsa_signal_t, hsa_status_t, pfn};

static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

/// The runtime's entries.
#[derive(Clone, Copy)]
struct Entries {
    create: pfn::hsa_signal_create,
    create_amd: pfn::hsa_amd_signal_create,
    destroy: pfn::hsa_signal_destroy,
}

static ENTRIES: Mutex<Option<Entries>> = Mutex::new(None);

fn entries() -> Entries {
    ENTRIES.lock().unwrap_or_else(PoisonError::into_inner).expect("the entries were replaced")
}

/// Counts from now on, from 0. Before anybody else sees the table.
pub(crate) fn count_in(table: *mut HsaApiTable) {
    // SAFETY: the runtime's table, which nobody uses now.
    let table = unsafe { &mut *table };
    // SAFETY: likewise.
    let core = unsafe { &mut *table.core_ };
    // SAFETY: likewise.
    let amd = unsafe { &mut *table.amd_ext_ };
    let theirs = Entries {
        create: core.hsa_signal_create_fn.replace(create).unwrap(),
        create_amd: amd.hsa_amd_signal_create_fn.replace(create_amd).unwrap(),
        destroy: core.hsa_signal_destroy_fn.replace(destroy).unwrap(),
    };
    // A runtime that comes up again may have the table that was patched before.
    if theirs.create as usize != create as *const () as usize {
        *ENTRIES.lock().unwrap_or_else(PoisonError::into_inner) = Some(theirs);
    }
    LIVE.store(0, Ordering::Relaxed);
    PEAK.store(0, Ordering::Relaxed);
}

/// How many there are, and the most there were.
pub(crate) fn live_and_peak() -> (i64, i64) {
    (LIVE.load(Ordering::Relaxed), PEAK.load(Ordering::Relaxed))
}

fn created(status: hsa_status_t) -> hsa_status_t {
    if status == HSA_STATUS_SUCCESS {
        let live = LIVE.fetch_add(1, Ordering::Relaxed) + 1;
        PEAK.fetch_max(live, Ordering::Relaxed);
    }
    status
}

unsafe extern "C-unwind" fn create(
    value: i64,
    consumers: u32,
    list: *const hsa_agent_t,
    signal: *mut hsa_signal_t,
) -> hsa_status_t {
    // SAFETY: the caller's arguments.
    created(unsafe { (entries().create)(value, consumers, list, signal) })
}

unsafe extern "C-unwind" fn create_amd(
    value: i64,
    consumers: u32,
    list: *const hsa_agent_t,
    attributes: u64,
    signal: *mut hsa_signal_t,
) -> hsa_status_t {
    // SAFETY: the caller's arguments.
    created(unsafe { (entries().create_amd)(value, consumers, list, attributes, signal) })
}

unsafe extern "C-unwind" fn destroy(signal: hsa_signal_t) -> hsa_status_t {
    // SAFETY: the caller's argument.
    let status = unsafe { (entries().destroy)(signal) };
    if status == HSA_STATUS_SUCCESS {
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
    status
}
