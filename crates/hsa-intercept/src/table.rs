//! Our entries in the runtime's tables that are called rarely: queues and executables come and go, times are asked for.

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
// Read in forked children, where nothing may be locked.
use std::sync::atomic::{AtomicPtr, Ordering};

use hsa_sys::{
    AmdExtTable, CoreApiTable, HSA_STATUS_ERROR, HSA_STATUS_SUCCESS, HsaApiTable, hsa_agent_t,
    hsa_amd_profiling_dispatch_time_t, hsa_executable_t, hsa_queue_t, hsa_queue_type32_t, hsa_signal_t,
    hsa_status_t, pfn,
};

use crate::Error;
use crate::front::entries;
use crate::gate::{ForApplication, GoingDown};
use crate::interceptor::Interceptor;
use crate::patch::{Slot, slot};
use crate::runtime_queue::{Creation, ErrorCallback};
use crate::signal_entries;
use crate::technique::Technique;

/// The interceptors that were installed, newest first. Our entries lead to the newest; a queue goes on with the one that
/// made it, whoever dropped that. Nothing of it is ever freed, and nothing is locked: a forked child can still read it.
static NEWEST: AtomicPtr<Installed> = AtomicPtr::new(std::ptr::null_mut());

struct Installed {
    interceptor: Arc<Interceptor>,
    older: *const Self,
}

/// All interceptors, newest first.
fn installed() -> impl Iterator<Item = &'static Arc<Interceptor>> {
    // SAFETY: null, or leaked by `lead_to`; likewise what it points to.
    let newest = unsafe { NEWEST.load(Ordering::Acquire).as_ref() };
    // SAFETY: likewise.
    let older = |installed: &&'static Installed| unsafe { installed.older.as_ref() };
    std::iter::successors(newest, older).map(|installed| &installed.interceptor)
}

/// The interceptor whose entries `table` already leads to. If there is none, what earlier ones left in the table is put
/// back, so that nobody takes our own entries for the runtime's.
///
/// # Safety
/// `table` is null or a table that a runtime hands over; nobody else uses it meanwhile.
pub(crate) unsafe fn installed_on(table: *mut HsaApiTable) -> Option<Arc<Interceptor>> {
    // SAFETY: by this function's contract.
    let found = installed().find(|interceptor| unsafe { interceptor.holds(table) });
    if found.is_none() {
        installed().for_each(|interceptor| interceptor.put_back());
    }
    found.cloned()
}

/// Slots of `table` in which another tool's entry lies over an earlier one of ours.
pub(crate) fn covered(table: *mut HsaApiTable) -> Vec<Slot> {
    installed().flat_map(|interceptor| interceptor.covered(table)).collect()
}

/// Makes `interceptor` the one that our entries lead to.
pub(crate) fn lead_to(interceptor: &Arc<Interceptor>) {
    let mut older = NEWEST.load(Ordering::Acquire);
    loop {
        let newest = Box::new(Installed { interceptor: Arc::clone(interceptor), older });
        let newest = Box::into_raw(newest);
        match NEWEST.compare_exchange(older, newest, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(now) => older = now,
        }
        // SAFETY: made above, and nobody else saw it.
        drop(unsafe { Box::from_raw(newest) });
    }
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
    slots.extend(slot!(core, CoreApiTable, hsa_shut_down_fn, shut_down, pfn::hsa_shut_down).ok());
    slots.extend(
        slot!(core, CoreApiTable, hsa_queue_inactivate_fn, queue_inactivate, pfn::hsa_queue_inactivate).ok(),
    );
    slots.extend(
        slot!(
            amd,
            AmdExtTable,
            hsa_amd_profiling_set_profiler_enabled_fn,
            set_profiler_enabled,
            pfn::hsa_amd_profiling_set_profiler_enabled
        )
        .ok(),
    );
    slots.extend(
        slot!(
            amd,
            AmdExtTable,
            hsa_amd_queue_intercept_create_fn,
            intercept_create,
            pfn::hsa_amd_queue_intercept_create
        )
        .ok(),
    );
    let saved = &interceptor.hsa().table().amd;
    match technique {
        Technique::Runtime => {
            require(saved.hsa_amd_queue_intercept_create_fn, "hsa_amd_queue_intercept_create")?;
            require(saved.hsa_amd_queue_intercept_register_fn, "hsa_amd_queue_intercept_register")?;
        }
        // SAFETY: by this function's contract.
        Technique::Doorbell => slots.extend(unsafe { entries::slots(core, amd) }),
    }
    if technique == Technique::Runtime && interceptor.is_late() {
        // SAFETY: likewise.
        slots.extend(unsafe { entries::writers(core) });
    }
    // SAFETY: likewise.
    slots.extend(unsafe { signal_entries::slots(core) });
    Ok(slots)
}

fn require<F>(entry: Option<F>, call: &'static str) -> Result<(), Error> {
    entry.map(drop).ok_or(Error::MissingEntry { call })
}

/// Answers an entry with the newest interceptor; a panic of ours becomes an error instead of unwinding into the application.
fn answer(call: &'static str, work: impl FnOnce(&Interceptor) -> hsa_status_t) -> hsa_status_t {
    let Some(interceptor) = installed().next() else { return HSA_STATUS_ERROR };
    let _called = ForApplication::enter();
    catch_unwind(AssertUnwindSafe(|| work(interceptor))).unwrap_or_else(|_| {
        tracing::error!(call, "panicked");
        HSA_STATUS_ERROR
    })
}

/// All interceptors that belong to this process, newest first.
fn alive() -> impl Iterator<Item = &'static Arc<Interceptor>> {
    installed().filter(|interceptor| !interceptor.is_inert())
}

/// Whether a queue is one that we intercept.
pub(crate) fn owns(queue: *const hsa_queue_t) -> bool {
    alive().any(|interceptor| interceptor.owns(queue))
}

/// An application uses a queue: every interceptor counts it that has not met it, and does not intercept it.
///
/// # Safety
/// A queue of the runtime, or one that we intercept.
pub(crate) unsafe fn met(queue: *const hsa_queue_t) {
    alive().for_each(|interceptor| {
        // SAFETY: by this function's contract.
        unsafe { interceptor.met(queue) };
    });
}

/// An application destroys a queue: every interceptor that counted it does so no more.
///
/// # Safety
/// As for [`met`], and it is still there.
pub(crate) unsafe fn left(queue: *const hsa_queue_t) {
    let ours = owns(queue);
    alive().for_each(|interceptor| {
        // SAFETY: by this function's contract.
        unsafe { interceptor.left(queue, ours) };
    });
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

/// Another tool makes an intercept queue: its own, whose packets nobody of ours sees.
unsafe extern "C-unwind" fn intercept_create(
    agent: hsa_agent_t,
    size: u32,
    kind: hsa_queue_type32_t,
    callback: ErrorCallback,
    data: *mut c_void,
    private_segment_size: u32,
    group_segment_size: u32,
    queue: *mut *mut hsa_queue_t,
) -> hsa_status_t {
    answer("hsa_amd_queue_intercept_create", |newest| {
        let create = newest.hsa().table().amd.hsa_amd_queue_intercept_create_fn;
        let Some(create) = create else { return HSA_STATUS_ERROR };
        // SAFETY: the caller's own arguments.
        let status = unsafe {
            create(agent, size, kind, callback, data, private_segment_size, group_segment_size, queue)
        };
        if status == HSA_STATUS_SUCCESS && !newest.is_inert() {
            // SAFETY: the result, where the runtime just wrote it.
            let made = unsafe { queue.read() };
            // SAFETY: the queue that it made.
            unsafe { met(made) };
        }
        status
    })
}

unsafe extern "C-unwind" fn shut_down() -> hsa_status_t {
    answer("hsa_shut_down", |newest| {
        let Some(shut_down) = newest.hsa().table().core.hsa_shut_down_fn else { return HSA_STATUS_ERROR };
        let ending: Vec<_> = alive().collect();
        ending.iter().for_each(|interceptor| interceptor.let_go());
        let going_down = GoingDown::enter();
        ending.iter().for_each(|interceptor| interceptor.before_end());
        // SAFETY: the application's own call.
        let status = unsafe { shut_down() };
        ending.iter().for_each(|interceptor| interceptor.after_end());
        drop(going_down);
        status
    })
}

unsafe extern "C-unwind" fn queue_inactivate(queue: *mut hsa_queue_t) -> hsa_status_t {
    answer("hsa_queue_inactivate", |newest| {
        // SAFETY: the application's own argument.
        unsafe { owner(newest, queue).inactivate_queue(queue) }
    })
}

unsafe extern "C-unwind" fn set_profiler_enabled(queue: *mut hsa_queue_t, enabled: c_int) -> hsa_status_t {
    answer("hsa_amd_profiling_set_profiler_enabled", |newest| {
        // SAFETY: the application's own arguments.
        unsafe { owner(newest, queue).set_profiler_enabled(queue, enabled) }
    })
}

/// Who intercepts a queue, else the newest.
fn owner(newest: &Interceptor, queue: *const hsa_queue_t) -> &Interceptor {
    alive().find(|interceptor| interceptor.owns(queue)).map_or(newest, |owner| owner)
}

unsafe extern "C-unwind" fn queue_destroy(queue: *mut hsa_queue_t) -> hsa_status_t {
    answer("hsa_queue_destroy", |newest| {
        // SAFETY: the application's own argument.
        unsafe { owner(newest, queue).destroy_queue(queue) }
    })
}

unsafe extern "C-unwind" fn signal_destroy(signal: hsa_signal_t) -> hsa_status_t {
    answer("hsa_signal_destroy", |newest| {
        signal_reused(signal);
        let Some(destroy) = newest.hsa().table().core.hsa_signal_destroy_fn else { return HSA_STATUS_ERROR };
        // SAFETY: the application's own argument.
        unsafe { destroy(signal) }
    })
}

/// A signal of the application no longer stands for the kernel that completed it last.
pub(crate) fn signal_reused(signal: hsa_signal_t) {
    alive().for_each(|interceptor| interceptor.signal_reused(signal));
}

unsafe extern "C-unwind" fn dispatch_time(
    agent: hsa_agent_t,
    signal: hsa_signal_t,
    time: *mut hsa_amd_profiling_dispatch_time_t,
) -> hsa_status_t {
    answer("hsa_amd_profiling_get_dispatch_time", |newest| {
        let known = alive().find_map(|interceptor| interceptor.times_of(agent, signal));
        // SAFETY: the application's own arguments.
        unsafe { newest.dispatch_time(known, agent, signal, time) }
    })
}

unsafe extern "C-unwind" fn executable_freeze(
    executable: hsa_executable_t,
    options: *const c_char,
) -> hsa_status_t {
    answer("hsa_executable_freeze", |newest| {
        let Some(freeze) = newest.hsa().table().core.hsa_executable_freeze_fn else {
            return HSA_STATUS_ERROR;
        };
        // SAFETY: the application's own arguments.
        let status = unsafe { freeze(executable, options) };
        if status == HSA_STATUS_SUCCESS && !newest.is_inert() {
            newest.executable_frozen(executable);
        }
        status
    })
}

unsafe extern "C-unwind" fn executable_destroy(executable: hsa_executable_t) -> hsa_status_t {
    answer("hsa_executable_destroy", |newest| {
        alive().for_each(|interceptor| interceptor.executable_leaves(executable));
        let Some(destroy) = newest.hsa().table().core.hsa_executable_destroy_fn else {
            return HSA_STATUS_ERROR;
        };
        // SAFETY: the application's own argument.
        unsafe { destroy(executable) }
    })
}
