//! The table's entries that re-arm a signal: `hsa_signal_silent_store_*`.
//!
//! HIP reads a kernel's times right after it waited for the signal, then arms the signal for the next kernel with a silent
//! store. From there on the signal stands for nothing that we know, wherever it is used next: it may be a queue that is
//! not ours.

use hsa_sys::{CoreApiTable, hsa_signal_t, pfn};
use wavescope_hsa::SavedTable;
// Read on every silent store of the process.
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::patch::{Slot, slot};
use crate::table;
use crate::times;

/// The runtime's entries. Never freed once they were set: an entry may be running.
static SAVED: AtomicPtr<SavedTable> = AtomicPtr::new(std::ptr::null_mut());

/// Sets the entries that calls are passed on to.
pub(crate) fn lead_to(saved: SavedTable) {
    SAVED.store(Box::into_raw(Box::new(saved)), Ordering::Release);
}

macro_rules! silent_stores {
    ($($name:ident($field:ident);)*) => { $(
        unsafe extern "C-unwind" fn $name(signal: hsa_signal_t, value: i64) {
            if times::any_known() {
                table::signal_reused(signal);
            }
            // SAFETY: null, or leaked by `lead_to`.
            let saved = unsafe { SAVED.load(Ordering::Acquire).as_ref() };
            let Some(entry) = saved.and_then(|saved| saved.core.$field) else { return };
            // SAFETY: the application's own arguments.
            unsafe { entry(signal, value) };
        }
    )* };
}

silent_stores! {
    silent_store_relaxed(hsa_signal_silent_store_relaxed_fn);
    silent_store_release(hsa_signal_silent_store_screlease_fn);
}

/// The slots that these entries replace; older runtimes do not have them.
///
/// # Safety
/// The part is live and begins with its version.
pub(crate) unsafe fn slots(core: *mut CoreApiTable) -> Vec<Slot> {
    let relaxed = slot!(
        core,
        CoreApiTable,
        hsa_signal_silent_store_relaxed_fn,
        silent_store_relaxed,
        pfn::hsa_signal_silent_store_relaxed
    );
    let release = slot!(
        core,
        CoreApiTable,
        hsa_signal_silent_store_screlease_fn,
        silent_store_release,
        pfn::hsa_signal_silent_store_screlease
    );
    [relaxed, release].into_iter().flatten().collect()
}
