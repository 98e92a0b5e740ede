//! The table's entries that answer for fronts: indices, doorbells, and calls that take a queue.
//!
//! They are called millions of times a second and mostly for something that is not ours, so they reach the registry
//! and the saved entries through one pointer, without a lock.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
// Read on every signal store of the process.
use std::sync::atomic::{AtomicPtr, Ordering};

use hsa_sys::{
    AmdExtTable, CoreApiTable, HSA_STATUS_ERROR, HSA_STATUS_ERROR_NOT_INITIALIZED, hsa_amd_queue_priority_t,
    hsa_queue_info_attribute_t, hsa_queue_t, hsa_signal_t, hsa_status_t, pfn,
};
use wavescope_hsa::SavedTable;

use super::Front;
use super::registry::Registry;
use super::table::Found;
use crate::blind::Others;
use crate::patch::{Slot, slot};
use crate::table;

/// What the entries need.
pub(crate) struct Hot {
    saved: SavedTable,
    fronts: &'static Registry,
    others: &'static Others,
}

/// Never freed once it was set: an entry may be running.
static HOT: AtomicPtr<Hot> = AtomicPtr::new(std::ptr::null_mut());

/// Sets what the entries lead to.
pub(crate) fn lead_to(saved: SavedTable, fronts: &'static Registry, others: &'static Others) {
    HOT.store(Box::into_raw(Box::new(Hot { saved, fronts, others })), Ordering::Release);
}

fn hot() -> Option<&'static Hot> {
    let hot = HOT.load(Ordering::Acquire);
    // SAFETY: null, or leaked by `lead_to`.
    unsafe { hot.as_ref() }
}

/// The front that the application calls `queue`. Any other queue makes its agent blind.
///
/// # Safety
/// A queue that the application was given.
unsafe fn front_of(hot: &'static Hot, queue: *const hsa_queue_t) -> Option<Found<'static, Front>> {
    let front = hot.fronts.by_queue(queue.addr());
    if front.is_none() {
        // SAFETY: by this function's contract; as no front it is the runtime's.
        unsafe { meet(hot, queue) };
    }
    front
}

/// # Safety
/// A queue of the runtime.
unsafe fn meet(hot: &'static Hot, queue: *const hsa_queue_t) {
    if !hot.others.know(queue) {
        // SAFETY: by this function's contract.
        unsafe { table::met(queue) };
    }
}

/// Rings a front. A panic of ours, or of a callback, ends here instead of unwinding into the application.
fn ring(hot: &Hot, front: &Front, value: i64) {
    if hot.fronts.is_inert() || front.is_over() {
        return;
    }
    if catch_unwind(AssertUnwindSafe(|| front.ring(value))).is_err() {
        tracing::error!("panic while packets were rewritten");
    }
}

/// Index entries: `front => answer` for a front, the saved entry otherwise.
macro_rules! index_entries {
    ($($name:ident($field:ident$(, $argument:ident)*) -> $result:ty: $front:ident => $answer:expr;)*) => { $(
        unsafe extern "C-unwind" fn $name(queue: *const hsa_queue_t$(, $argument: u64)*) -> $result {
            let Some(hot) = hot() else { return <$result>::default() };
            // SAFETY: the application's own queue.
            if let Some($front) = unsafe { front_of(hot, queue) } {
                return if $front.is_over() { <$result>::default() } else { $answer };
            }
            let Some(entry) = hot.saved.core.$field else { return <$result>::default() };
            // SAFETY: the application's own arguments.
            unsafe { entry(queue$(, $argument)*) }
        }
    )* };
}

/// The current thread exchanged the write index, if so: it reserved what lies between. Returns the previous value.
fn exchanged(front: &Front, value: u64, result: Result<u64, u64>) -> u64 {
    result.inspect(|first| front.reserved(*first, value.saturating_sub(*first))).unwrap_or_else(|found| found)
}

/// The current thread moved the write index on from `first`, which is returned.
fn added(front: &Front, count: u64, first: u64) -> u64 {
    front.reserved(first, count);
    first
}

/// The current thread set the write index: it alone writes to the queue.
fn stored(front: &Front, value: u64, before: u64) {
    front.reserved(before, value.saturating_sub(before));
}

use Ordering::{AcqRel, Acquire, Relaxed, Release};

index_entries! {
    load_read_acquire(hsa_queue_load_read_index_scacquire_fn) -> u64: front => front.read_index().load(Acquire);
    load_read_relaxed(hsa_queue_load_read_index_relaxed_fn) -> u64: front => front.read_index().load(Relaxed);
    load_write_acquire(hsa_queue_load_write_index_scacquire_fn) -> u64:
        front => front.write_index().load(Acquire);
    load_write_relaxed(hsa_queue_load_write_index_relaxed_fn) -> u64:
        front => front.write_index().load(Relaxed);
    store_write_relaxed(hsa_queue_store_write_index_relaxed_fn, value) -> ():
        front => stored(&front, value, front.write_index().swap(value, Relaxed));
    store_write_release(hsa_queue_store_write_index_screlease_fn, value) -> ():
        front => stored(&front, value, front.write_index().swap(value, Release));
    cas_write_both(hsa_queue_cas_write_index_scacq_screl_fn, expected, value) -> u64:
        front => exchanged(&front, value, front.write_index().compare_exchange(expected, value, AcqRel, Acquire));
    cas_write_acquire(hsa_queue_cas_write_index_scacquire_fn, expected, value) -> u64:
        front => exchanged(&front, value, front.write_index().compare_exchange(expected, value, Acquire, Acquire));
    cas_write_relaxed(hsa_queue_cas_write_index_relaxed_fn, expected, value) -> u64:
        front => exchanged(&front, value, front.write_index().compare_exchange(expected, value, Relaxed, Relaxed));
    cas_write_release(hsa_queue_cas_write_index_screlease_fn, expected, value) -> u64:
        front => exchanged(&front, value, front.write_index().compare_exchange(expected, value, Release, Relaxed));
    add_write_both(hsa_queue_add_write_index_scacq_screl_fn, value) -> u64:
        front => added(&front, value, front.write_index().fetch_add(value, AcqRel));
    add_write_acquire(hsa_queue_add_write_index_scacquire_fn, value) -> u64:
        front => added(&front, value, front.write_index().fetch_add(value, Acquire));
    add_write_relaxed(hsa_queue_add_write_index_relaxed_fn, value) -> u64:
        front => added(&front, value, front.write_index().fetch_add(value, Relaxed));
    add_write_release(hsa_queue_add_write_index_screlease_fn, value) -> u64:
        front => added(&front, value, front.write_index().fetch_add(value, Release));
    store_read_relaxed(hsa_queue_store_read_index_relaxed_fn, value) -> ():
        front => front.read_index().store(value, Relaxed);
    store_read_release(hsa_queue_store_read_index_screlease_fn, value) -> ():
        front => front.read_index().store(value, Release);
}

macro_rules! store_entries {
    ($($name:ident($field:ident);)*) => { $(
        unsafe extern "C-unwind" fn $name(signal: hsa_signal_t, value: i64) {
            let Some(hot) = hot() else { return };
            if let Some(front) = hot.fronts.by_doorbell(signal.handle) {
                return ring(hot, &front, value);
            }
            let Some(entry) = hot.saved.core.$field else { return };
            // SAFETY: the application's own arguments.
            unsafe { entry(signal, value) };
        }
    )* };
}

store_entries! {
    store_relaxed(hsa_signal_store_relaxed_fn);
    store_release(hsa_signal_store_screlease_fn);
}

/// Entries that take a queue: the runtime gets its own.
macro_rules! queue_entries {
    ($($name:ident($part:ident.$field:ident: $queue:ty$(, $argument:ident: $kind:ty)*);)*) => { $(
        unsafe extern "C-unwind" fn $name(queue: $queue$(, $argument: $kind)*) -> hsa_status_t {
            let Some(hot) = hot() else { return HSA_STATUS_ERROR };
            let Some(entry) = hot.saved.$part.$field else { return HSA_STATUS_ERROR };
            let front = hot.fronts.by_queue(queue.addr());
            if front.as_ref().is_some_and(|front| front.is_over()) {
                return HSA_STATUS_ERROR_NOT_INITIALIZED;
            }
            let queue = front.as_ref().map_or(queue, |front| front.hardware().pointer().as_ptr());
            // SAFETY: the application's own arguments, but for the queue, which is the runtime's behind the front.
            unsafe { entry(queue$(, $argument)*) }
        }
    )* };
}

queue_entries! {
    cu_set_mask(amd.hsa_amd_queue_cu_set_mask_fn: *const hsa_queue_t, count: u32, mask: *const u32);
    cu_get_mask(amd.hsa_amd_queue_cu_get_mask_fn: *const hsa_queue_t, count: u32, mask: *mut u32);
    set_priority(amd.hsa_amd_queue_set_priority_fn: *mut hsa_queue_t, priority: hsa_amd_queue_priority_t);
    get_info(amd.hsa_amd_queue_get_info_fn: *mut hsa_queue_t, attribute: hsa_queue_info_attribute_t, value: *mut c_void);
}

/// Slots, those that the runtime has.
macro_rules! all {
    ($($part:ident: $table:ty { $($field:ident => $ours:ident: $kind:ident,)* })*) => {
        [$($(slot!($part, $table, $field, $ours, pfn::$kind),)*)*].into_iter().flatten().collect::<Vec<_>>()
    };
}

/// The slots that these entries replace. One that the runtime does not have needs no answer.
///
/// # Safety
/// Both parts are live and begin with their versions.
pub(crate) unsafe fn slots(core: *mut CoreApiTable, amd: *mut AmdExtTable) -> Vec<Slot> {
    // SAFETY: by this function's contract.
    let mut slots = unsafe { writers(core) };
    slots.extend(all! {
        core: CoreApiTable {
            hsa_queue_load_read_index_scacquire_fn => load_read_acquire: hsa_queue_load_read_index_scacquire,
            hsa_queue_load_read_index_relaxed_fn => load_read_relaxed: hsa_queue_load_read_index_relaxed,
            hsa_queue_load_write_index_scacquire_fn => load_write_acquire: hsa_queue_load_write_index_scacquire,
            hsa_queue_load_write_index_relaxed_fn => load_write_relaxed: hsa_queue_load_write_index_relaxed,
            hsa_queue_store_read_index_relaxed_fn => store_read_relaxed: hsa_queue_store_read_index_relaxed,
            hsa_queue_store_read_index_screlease_fn => store_read_release: hsa_queue_store_read_index_screlease,
            hsa_signal_store_relaxed_fn => store_relaxed: hsa_signal_store_relaxed,
            hsa_signal_store_screlease_fn => store_release: hsa_signal_store_screlease,
        }
        amd: AmdExtTable {
            hsa_amd_queue_cu_set_mask_fn => cu_set_mask: hsa_amd_queue_cu_set_mask,
            hsa_amd_queue_cu_get_mask_fn => cu_get_mask: hsa_amd_queue_cu_get_mask,
            hsa_amd_queue_set_priority_fn => set_priority: hsa_amd_queue_set_priority,
            hsa_amd_queue_get_info_fn => get_info: hsa_amd_queue_get_info,
        }
    });
    slots
}

/// The slots through which an application reserves packets: enough to notice a queue that is not ours.
///
/// # Safety
/// The part is live and begins with its version.
pub(crate) unsafe fn writers(core: *mut CoreApiTable) -> Vec<Slot> {
    all! {
        core: CoreApiTable {
            hsa_queue_store_write_index_relaxed_fn => store_write_relaxed: hsa_queue_store_write_index_relaxed,
            hsa_queue_store_write_index_screlease_fn =>
                store_write_release: hsa_queue_store_write_index_screlease,
            hsa_queue_cas_write_index_scacq_screl_fn => cas_write_both: hsa_queue_cas_write_index_scacq_screl,
            hsa_queue_cas_write_index_scacquire_fn => cas_write_acquire: hsa_queue_cas_write_index_scacquire,
            hsa_queue_cas_write_index_relaxed_fn => cas_write_relaxed: hsa_queue_cas_write_index_relaxed,
            hsa_queue_cas_write_index_screlease_fn => cas_write_release: hsa_queue_cas_write_index_screlease,
            hsa_queue_add_write_index_scacq_screl_fn => add_write_both: hsa_queue_add_write_index_scacq_screl,
            hsa_queue_add_write_index_scacquire_fn => add_write_acquire: hsa_queue_add_write_index_scacquire,
            hsa_queue_add_write_index_relaxed_fn => add_write_relaxed: hsa_queue_add_write_index_relaxed,
            hsa_queue_add_write_index_screlease_fn => add_write_release: hsa_queue_add_write_index_screlease,
        }
    }
}
