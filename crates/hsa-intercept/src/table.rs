//! The runtime's tables with our entries in them, and the way back.
//!
//! Before a slot is read or written its end must lie within the table's `minor_id`, the size with which the runtime was
//! built. Slots are put back only where they still hold ours: another tool may have come after us.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

use hsa_sys::{
    AmdExtTable, ApiTableVersion, CoreApiTable, HSA_STATUS_ERROR, HSA_STATUS_SUCCESS, HsaApiTable,
    hsa_agent_t, hsa_amd_profiling_dispatch_time_t, hsa_executable_t, hsa_queue_t, hsa_queue_type32_t,
    hsa_signal_t, hsa_status_t, pfn,
};

use crate::Error;
use crate::interceptor::Interceptor;
use crate::runtime_queue::{Creation, ErrorCallback};

/// The interceptor that our entries lead to. Written when one is installed, read by entries that are called rarely.
static CURRENT: RwLock<Option<Arc<Interceptor>>> = RwLock::new(None);

/// The newest interceptor.
pub(crate) fn current() -> Option<Arc<Interceptor>> {
    CURRENT.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The interceptor whose entries `table` already leads to.
///
/// # Safety
/// `table` is null or a table that a runtime hands over.
pub(crate) unsafe fn installed_on(table: *mut HsaApiTable) -> Option<Arc<Interceptor>> {
    let current = current()?;
    // SAFETY: by this function's contract.
    let holds = unsafe { current.holds(table) };
    holds.then_some(current)
}

/// One replaced slot.
#[derive(Debug)]
struct Slot {
    /// Where it is: a function pointer in the runtime's table.
    place: *mut *const c_void,
    ours: *const c_void,
    original: *const c_void,
}

/// What was replaced in one table.
#[derive(Debug)]
pub(crate) struct Patch {
    table: *mut HsaApiTable,
    slots: Vec<Slot>,
}

// SAFETY: the places are static memory of the runtime, written by `apply` and `restore` only; both are called where
// the runtime lets tools change its table.
unsafe impl Send for Patch {}

/// A slot of a table part: refused if the runtime's part ends before it, or if it is empty.
macro_rules! slot {
    ($part:expr, $table:ty, $field:ident, $ours:expr, $kind:ty) => {{
        let part: *mut $table = $part;
        let end = std::mem::offset_of!($table, $field) + size_of::<usize>();
        // SAFETY: the part is live and begins with its version, by the contract of `Patch::apply`.
        let size = unsafe { part.cast::<ApiTableVersion>().read() }.minor_id as usize;
        if end > size {
            Err(Error::MissingEntry { call: stringify!($field) })
        } else {
            let ours: $kind = $ours;
            // SAFETY: the field lies within the part, as just checked.
            let place = unsafe { &raw mut (*part).$field }.cast::<*const c_void>();
            Slot::new(place, ours as *const c_void, stringify!($field))
        }
    }};
}

impl Slot {
    fn new(place: *mut *const c_void, ours: *const c_void, call: &'static str) -> Result<Self, Error> {
        // SAFETY: the place is a slot of a live table: a function pointer or null.
        let original = unsafe { place.read() };
        if original.is_null() {
            return Err(Error::MissingEntry { call });
        }
        Ok(Self { place, ours, original })
    }
}

impl Patch {
    /// Replaces the entries and makes `interceptor` the current one.
    ///
    /// # Safety
    /// `table` is live, of a version that was checked, and nobody calls through it or writes it meanwhile.
    ///
    /// # Errors
    /// [`Error::MissingEntry`]; nothing was replaced.
    pub(crate) unsafe fn apply(
        table: *mut HsaApiTable,
        interceptor: &Arc<Interceptor>,
    ) -> Result<Self, Error> {
        // SAFETY: by this function's contract.
        let parts = unsafe { &*table };
        let (core, amd) = (parts.core_, parts.amd_ext_);
        let mut slots = vec![
            slot!(
                core,
                CoreApiTable,
                hsa_executable_freeze_fn,
                executable_freeze,
                pfn::hsa_executable_freeze
            )?,
            slot!(
                core,
                CoreApiTable,
                hsa_executable_destroy_fn,
                executable_destroy,
                pfn::hsa_executable_destroy
            )?,
        ];
        if interceptor.options().queues {
            require(
                interceptor.hsa().table().amd.hsa_amd_queue_intercept_create_fn,
                "hsa_amd_queue_intercept_create",
            )?;
            require(
                interceptor.hsa().table().amd.hsa_amd_queue_intercept_register_fn,
                "hsa_amd_queue_intercept_register",
            )?;
            slots.push(slot!(core, CoreApiTable, hsa_queue_create_fn, queue_create, pfn::hsa_queue_create)?);
            slots.push(slot!(
                core,
                CoreApiTable,
                hsa_queue_destroy_fn,
                queue_destroy,
                pfn::hsa_queue_destroy
            )?);
            slots.push(slot!(
                core,
                CoreApiTable,
                hsa_signal_destroy_fn,
                signal_destroy,
                pfn::hsa_signal_destroy
            )?);
            slots.push(slot!(
                amd,
                AmdExtTable,
                hsa_amd_profiling_get_dispatch_time_fn,
                dispatch_time,
                pfn::hsa_amd_profiling_get_dispatch_time
            )?);
        }
        *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(interceptor));
        for slot in &slots {
            // SAFETY: as in `Slot::new`; the caller lets nobody else use the table.
            unsafe { slot.place.write(slot.ours) };
        }
        Ok(Self { table, slots })
    }

    /// Whether `table` is the one that was patched and has not been reset by the runtime since.
    ///
    /// # Safety
    /// The patched table is still there.
    pub(crate) unsafe fn holds(&self, table: *mut HsaApiTable) -> bool {
        let reset = |slot: &Slot| {
            // SAFETY: by this function's contract.
            let now = unsafe { slot.place.read() };
            now == slot.original
        };
        self.table == table && !self.slots.iter().all(reset)
    }

    /// Puts back what still holds ours.
    pub(crate) fn restore(self) {
        for slot in &self.slots {
            // SAFETY: the table is static memory of the runtime.
            let now = unsafe { slot.place.read() };
            if now == slot.ours {
                // SAFETY: likewise.
                unsafe { slot.place.write(slot.original) };
            }
        }
    }
}

fn require<F>(entry: Option<F>, call: &'static str) -> Result<(), Error> {
    entry.map(drop).ok_or(Error::MissingEntry { call })
}

/// Answers an entry; a panic of ours becomes an error instead of unwinding into the application.
fn answer(call: &'static str, work: impl FnOnce(&Interceptor) -> hsa_status_t) -> hsa_status_t {
    let Some(interceptor) = current() else { return HSA_STATUS_ERROR };
    catch_unwind(AssertUnwindSafe(|| work(&interceptor))).unwrap_or_else(|_| {
        tracing::error!(call, "panicked");
        HSA_STATUS_ERROR
    })
}

unsafe extern "C-unwind" fn queue_create(
    agent: hsa_agent_t,
    size: u32,
    kind: hsa_queue_type32_t,
    callback: ErrorCallback,
    data: *mut c_void,
    private_segment_size: u32,
    group_segment_size: u32,
    queue: *mut *mut hsa_queue_t,
) -> hsa_status_t {
    let creation = Creation { agent, size, kind, callback, data, private_segment_size, group_segment_size };
    answer("hsa_queue_create", |interceptor| {
        // SAFETY: the application's own arguments.
        unsafe { interceptor.create_queue(&creation, queue) }
    })
}

unsafe extern "C-unwind" fn queue_destroy(queue: *mut hsa_queue_t) -> hsa_status_t {
    answer("hsa_queue_destroy", |interceptor| {
        // SAFETY: the application's own argument.
        unsafe { interceptor.destroy_queue(queue) }
    })
}

unsafe extern "C-unwind" fn signal_destroy(signal: hsa_signal_t) -> hsa_status_t {
    answer("hsa_signal_destroy", |interceptor| {
        interceptor.signal_destroyed(signal);
        let Some(destroy) = interceptor.hsa().table().core.hsa_signal_destroy_fn else {
            return HSA_STATUS_ERROR;
        };
        // SAFETY: the application's own argument.
        unsafe { destroy(signal) }
    })
}

unsafe extern "C-unwind" fn dispatch_time(
    agent: hsa_agent_t,
    signal: hsa_signal_t,
    time: *mut hsa_amd_profiling_dispatch_time_t,
) -> hsa_status_t {
    answer("hsa_amd_profiling_get_dispatch_time", |interceptor| {
        // SAFETY: the application's own arguments.
        unsafe { interceptor.dispatch_time(agent, signal, time) }
    })
}

unsafe extern "C-unwind" fn executable_freeze(
    executable: hsa_executable_t,
    options: *const c_char,
) -> hsa_status_t {
    answer("hsa_executable_freeze", |interceptor| {
        let Some(freeze) = interceptor.hsa().table().core.hsa_executable_freeze_fn else {
            return HSA_STATUS_ERROR;
        };
        // SAFETY: the application's own arguments.
        let status = unsafe { freeze(executable, options) };
        if status == HSA_STATUS_SUCCESS {
            interceptor.executable_frozen(executable);
        }
        status
    })
}

unsafe extern "C-unwind" fn executable_destroy(executable: hsa_executable_t) -> hsa_status_t {
    answer("hsa_executable_destroy", |interceptor| {
        interceptor.executable_leaves(executable);
        let Some(destroy) = interceptor.hsa().table().core.hsa_executable_destroy_fn else {
            return HSA_STATUS_ERROR;
        };
        // SAFETY: the application's own argument.
        unsafe { destroy(executable) }
    })
}
