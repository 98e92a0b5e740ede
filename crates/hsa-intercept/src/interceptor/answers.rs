//! What interception answers to the application's calls of the table.

use std::ffi::c_int;
use std::ptr::NonNull;

use hsa_sys::{
    HSA_STATUS_ERROR, HSA_STATUS_ERROR_NOT_INITIALIZED, HSA_STATUS_SUCCESS, hsa_agent_t,
    hsa_amd_profiling_dispatch_time_t, hsa_executable_t, hsa_queue_t, hsa_signal_t, hsa_status_t,
};
use wavescope_core::sync::Deadline;
use wavescope_core::sync::atomic::Ordering;

use super::Interceptor;
use crate::application_queues::Made;
use crate::device::Signal;
use crate::runtime_queue::{self, Creation};
use crate::table;

impl Interceptor {
    /// Answers `hsa_queue_create`. Errors of the runtime come back unchanged and leave nothing behind.
    ///
    /// # Safety
    /// The arguments are those of the application's call.
    pub(crate) unsafe fn create_queue(
        &self,
        creation: &Creation,
        queue: *mut *mut hsa_queue_t,
    ) -> hsa_status_t {
        let plain = |queue| {
            // SAFETY: by this function's contract.
            unsafe { creation.plain(&self.hsa, queue) }
        };
        if self.is_inert() || self.over.load(Ordering::Acquire) {
            return plain(queue);
        }
        let gpu = self.hsa.gpu_by_handle(creation.agent);
        let Some(handle) = gpu.and_then(|gpu| self.engine.add_queue(gpu.id)) else { return plain(queue) };
        // SAFETY: by this function's contract.
        let status = match unsafe { self.queues.create(creation, &handle, queue) } {
            Ok(Made::Intercepted) => return HSA_STATUS_SUCCESS,
            Ok(Made::Plain(made)) => {
                // SAFETY: the runtime just made it.
                unsafe { table::met(made) };
                HSA_STATUS_SUCCESS
            }
            Err(status) => status,
        };
        self.engine.queue_destroyed(&handle);
        status
    }

    /// An application uses a queue.
    ///
    /// # Safety
    /// A queue of the runtime, or one that is intercepted.
    pub(crate) unsafe fn met(&self, queue: *const hsa_queue_t) {
        // SAFETY: by this function's contract.
        if let Some(agent) = unsafe { self.others.met(queue, table::owns) } {
            self.engine.unseen_queue_came(agent);
        }
    }

    /// An application destroys a queue; `ours` says whether it is intercepted.
    ///
    /// # Safety
    /// As for [`met`](Self::met), and it is still there.
    pub(crate) unsafe fn left(&self, queue: *const hsa_queue_t, ours: bool) {
        // SAFETY: by this function's contract.
        if let Some(agent) = unsafe { self.others.left(queue, ours) } {
            self.engine.unseen_queue_left(agent);
        }
    }

    /// Answers `hsa_queue_destroy`.
    ///
    /// # Safety
    /// The argument is that of the application's call.
    pub(crate) unsafe fn destroy_queue(&self, queue: *mut hsa_queue_t) -> hsa_status_t {
        if self.is_gone() {
            return HSA_STATUS_ERROR_NOT_INITIALIZED;
        }
        if self.is_inert() {
            // SAFETY: by this function's contract.
            return unsafe { runtime_queue::destroy(&self.hsa, queue) };
        }
        // SAFETY: the application's queue, which is still there.
        unsafe { table::left(queue) };
        // SAFETY: by this function's contract.
        unsafe { self.queues.destroy(queue, Deadline::after(self.options.destroy_timeout)) }
    }

    /// Answers `hsa_queue_inactivate`: what is in flight on one of our queues will not complete.
    ///
    /// # Safety
    /// The argument is that of the application's call.
    pub(crate) unsafe fn inactivate_queue(&self, queue: *mut hsa_queue_t) -> hsa_status_t {
        let Some(inactivate) = self.hsa.table().core.hsa_queue_inactivate_fn else { return HSA_STATUS_ERROR };
        if self.is_inert() {
            // SAFETY: by this function's contract.
            return unsafe { inactivate(queue) };
        }
        let Ok(known) = self.queues.find(queue) else { return HSA_STATUS_ERROR_NOT_INITIALIZED };
        let target = known.as_ref().map_or(queue, |known| known.runtimes);
        // SAFETY: by this function's contract; for a front the runtime's queue behind it.
        let status = unsafe { inactivate(target) };
        if status == HSA_STATUS_SUCCESS
            && let Some(known) = known
        {
            known.handle.failed();
        }
        status
    }

    /// Answers `hsa_amd_profiling_set_profiler_enabled`. On our queues times are recorded whatever the application wants: ours
    /// come from there too.
    ///
    /// # Safety
    /// The arguments are those of the application's call.
    pub(crate) unsafe fn set_profiler_enabled(
        &self,
        queue: *mut hsa_queue_t,
        enabled: c_int,
    ) -> hsa_status_t {
        let Some(set) = self.hsa.table().amd.hsa_amd_profiling_set_profiler_enabled_fn else {
            return HSA_STATUS_ERROR;
        };
        let known = if self.is_inert() { Ok(None) } else { self.queues.find(queue) };
        let Ok(known) = known else { return HSA_STATUS_ERROR_NOT_INITIALIZED };
        let (target, enabled) = known.map_or((queue, enabled), |known| (known.runtimes, 1));
        // SAFETY: by this function's contract; for a front the runtime's queue behind it.
        unsafe { set(target, enabled) }
    }

    /// Answers `hsa_amd_profiling_get_dispatch_time` with what is `known`, else with what the runtime says.
    ///
    /// # Safety
    /// The arguments are those of the application's call.
    pub(crate) unsafe fn dispatch_time(
        &self,
        known: Option<hsa_amd_profiling_dispatch_time_t>,
        agent: hsa_agent_t,
        signal: hsa_signal_t,
        time: *mut hsa_amd_profiling_dispatch_time_t,
    ) -> hsa_status_t {
        if let (Some(known), Some(mut time)) = (known, NonNull::new(time)) {
            // SAFETY: the application's result, by this function's contract.
            *unsafe { time.as_mut() } = known;
            return HSA_STATUS_SUCCESS;
        }
        let get = self.hsa.table().amd.hsa_amd_profiling_get_dispatch_time_fn;
        let Some(get) = get else { return hsa_sys::HSA_STATUS_ERROR };
        // SAFETY: by this function's contract.
        unsafe { get(agent, signal, time) }
    }

    /// When the kernel ran that completed `signal` last, if that was an instrumented one.
    pub(crate) fn times_of(
        &self,
        agent: hsa_agent_t,
        signal: hsa_signal_t,
    ) -> Option<hsa_amd_profiling_dispatch_time_t> {
        let agent = self.hsa.gpu_by_handle(agent)?.id;
        let times = self.engine.times_of(agent, Signal(signal.handle))?;
        let mut ticks = hsa_amd_profiling_dispatch_time_t::zeroed();
        ticks.start = self.hsa.ns_to_ticks(times.start_ns);
        ticks.end = self.hsa.ns_to_ticks(times.end_ns);
        Some(ticks)
    }

    pub(crate) fn signal_reused(&self, signal: hsa_signal_t) {
        self.engine.signal_reused(Signal(signal.handle));
    }

    pub(crate) fn executable_frozen(&self, executable: hsa_executable_t) {
        self.code.add(&self.hsa, executable);
    }

    pub(crate) fn executable_leaves(&self, executable: hsa_executable_t) {
        self.code.remove(executable);
    }
}
