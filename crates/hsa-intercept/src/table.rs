//! Our entries in the runtime's tables that are called rarely: queues and executables come and go, times are asked for.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

use hsa_sys::{
    AmdExtTable, CoreApiTable, HSA_STATUS_ERROR, HSA_STATUS_SUCCESS, HsaApiTable, hsa_agent_t,
    hsa_amd_profiling_dispatch_time_t, hsa_executable_t, hsa_queue_t, hsa_queue_type32_t, hsa_signal_t,
    hsa_status_t, pfn,
};

use crate::Error;
use crate::front::entries;
use crate::interceptor::Interceptor;
use crate::patch::{Slot, slot};
use crate::runtime_queue::{Creation, ErrorCallback};
use crate::technique::Technique;

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

/// Our entries for `table`, none of them written yet.
///
/// # Safety
/// `table` is live, of a version that was checked, and nobody writes it meanwhile.
///
/// # Errors
/// [`Error::MissingEntry`] if the runtime lacks one that interception needs.
pub(crate) unsafe fn slots(table: *mut HsaApiTable, interceptor: &Interceptor) -> Result<Vec<Slot>, Error> {
    // SAFETY: by this function's contract.
    let parts = unsafe { &*table };
    let (core, amd) = (parts.core_, parts.amd_ext_);
    macro_rules! needed {
        ($part:ident: $table:ty, $field:ident => $ours:ident: $kind:ident) => {
            slot!($part, $table, $field, $ours, pfn::$kind)?
        };
    }
    let mut slots = vec![
        needed!(core: CoreApiTable, hsa_executable_freeze_fn => executable_freeze: hsa_executable_freeze),
        needed!(core: CoreApiTable, hsa_executable_destroy_fn => executable_destroy: hsa_executable_destroy),
    ];
    let Some(technique) = interceptor.technique() else { return Ok(slots) };
    slots.extend([
        needed!(core: CoreApiTable, hsa_queue_create_fn => queue_create: hsa_queue_create),
        needed!(core: CoreApiTable, hsa_queue_destroy_fn => queue_destroy: hsa_queue_destroy),
        needed!(core: CoreApiTable, hsa_signal_destroy_fn => signal_destroy: hsa_signal_destroy),
        needed!(amd: AmdExtTable, hsa_amd_profiling_get_dispatch_time_fn =>
            dispatch_time: hsa_amd_profiling_get_dispatch_time),
    ]);
    let saved = &interceptor.hsa().table().amd;
    match technique {
        Technique::Runtime => {
            require(saved.hsa_amd_queue_intercept_create_fn, "hsa_amd_queue_intercept_create")?;
            require(saved.hsa_amd_queue_intercept_register_fn, "hsa_amd_queue_intercept_register")?;
        }
        // SAFETY: by this function's contract.
        Technique::Doorbell => slots.extend(unsafe { entries::slots(core, amd) }),
    }
    Ok(slots)
}

/// Makes `interceptor` the one that our entries lead to.
pub(crate) fn lead_to(interceptor: &Arc<Interceptor>) {
    *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(interceptor));
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
