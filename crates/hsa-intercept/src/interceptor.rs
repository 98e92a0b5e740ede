//! The engine under a runtime's API table.
//!
//! The entries of a table carry no context, so the interceptor that they lead to is a global: the newest one that was
//! installed. It is never freed, since an application may keep a pointer to a replaced entry for good.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use hsa_sys::{
    HSA_STATUS_SUCCESS, HsaApiTable, hsa_agent_t, hsa_amd_profiling_dispatch_time_t, hsa_executable_t,
    hsa_queue_t, hsa_signal_t, hsa_status_t,
};
use wavescope_core::sync::Mutex;
use wavescope_core::{
    AgentId, Interception, InterceptionError, Subscription, SubscriptionId, Token, Topology,
};
use wavescope_hsa::Hsa;

use crate::Error;
use crate::application_queues::ApplicationQueues;
use crate::code_objects::{CodeObject, CodeObjectListener, CodeObjects, Kernel};
use crate::device::Signal;
use crate::engine::{Engine, QueueHandle};
use crate::hsa_device::HsaDevice;
use crate::patch::Patch;
use crate::runtime_queue::Creation;
use crate::table;
use crate::technique::Technique;

/// How to install an [`Interceptor`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether queues are intercepted. Without, only code objects are followed and queue creation is not replaced.
    pub queues: bool,
    /// How; `None` asks the environment ([`Technique::VARIABLE`]).
    pub technique: Option<Technique>,
    /// How long a kernel of a serialized agent may keep those of other queues waiting; then they run beside it.
    pub watchdog: Duration,
    /// How long destroying a queue waits for instrumented dispatches that are still in flight on it.
    pub destroy_timeout: Duration,
    /// How long [`Interceptor::shut_down`] waits for each subscription.
    pub drain_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queues: true,
            technique: None,
            watchdog: Duration::from_secs(10),
            destroy_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(60),
        }
    }
}

/// Interception of one runtime: implements [`Interception`] for the services.
pub struct Interceptor {
    hsa: Hsa,
    engine: Engine,
    code: CodeObjects,
    options: Options,
    queues: ApplicationQueues,
    patch: Mutex<Option<Patch>>,
}

impl Interceptor {
    /// Saves the table's entries and replaces those that interception needs. Call it from `OnLoad`, or wherever the
    /// runtime hands over its table, before other threads use it.
    ///
    /// A table that this process intercepts already is left as it is, and its interceptor returned.
    ///
    /// # Safety
    /// As for [`Hsa::from_table`]; the table can be written, and nobody else calls through it meanwhile.
    ///
    /// # Errors
    /// [`Error::Hsa`] for a table of an unknown version or without the entries that interception needs. The table
    /// is untouched then.
    pub unsafe fn install(
        table: *mut HsaApiTable,
        topology: Option<&Topology>,
        options: Options,
    ) -> Result<Arc<Self>, Error> {
        // SAFETY: by this function's contract.
        if let Some(installed) = unsafe { table::installed_on(table) } {
            return Ok(installed);
        }
        // SAFETY: likewise.
        let hsa = unsafe { Hsa::from_table(table, topology) }?;
        let agents = hsa.gpus().iter().map(|gpu| gpu.id).collect::<Vec<_>>();
        let device = Arc::new(HsaDevice::new(hsa.clone()));
        let technique = options.queues.then(|| options.technique.unwrap_or_else(Technique::from_environment));
        let interceptor = Arc::new(Self {
            queues: ApplicationQueues::new(&hsa, &device, technique),
            hsa,
            engine: Engine::new(device, agents),
            code: CodeObjects::default(),
            options,
            patch: Mutex::new(None),
        });
        // SAFETY: likewise.
        let slots = unsafe { table::slots(table, &interceptor) }?;
        interceptor.engine.set_watchdog(interceptor.options.watchdog);
        table::lead_to(&interceptor);
        interceptor.queues.lead_entries_here();
        // SAFETY: likewise.
        *interceptor.patch.lock() = Some(unsafe { Patch::apply(table, slots) });
        Ok(interceptor)
    }

    /// How queues are intercepted; `None` if they are not.
    pub fn technique(&self) -> Option<Technique> {
        self.queues.technique()
    }

    /// The runtime, through its own entries.
    pub fn hsa(&self) -> &Hsa {
        &self.hsa
    }

    /// The kernel whose descriptor lies at `kernel_object`.
    pub fn kernel(&self, kernel_object: u64) -> Option<Kernel> {
        self.code.kernel(kernel_object)
    }

    /// All code objects that are loaded.
    pub fn code_objects(&self) -> Vec<CodeObject> {
        self.code.list()
    }

    /// Tells `listener` of every load and unload from now on.
    pub fn listen(&self, listener: Arc<dyn CodeObjectListener>) {
        self.code.listen(listener);
    }

    /// Ends all subscriptions, puts back the table's entries that still hold ours, and ends our threads. Twice is fine.
    ///
    /// Queues that exist go on unchanged. While there are fronts among them, the entries that answer for fronts stay,
    /// and the worker with them: call this again when the application has destroyed its queues.
    ///
    /// # Errors
    /// [`InterceptionError::DrainTimedOut`] if dispatches did not retire in time; everything else was done.
    pub fn shut_down(&self) -> Result<(), InterceptionError> {
        let outcome = self.engine.shut_down(self.options.drain_timeout);
        if self.queues.end_if_no_fronts()
            && let Some(patch) = self.patch.lock().take()
        {
            patch.restore();
        }
        outcome
    }

    /// Whether `table` still leads to this interceptor.
    ///
    /// # Safety
    /// `table` is null or a table that a runtime hands over.
    pub(crate) unsafe fn holds(&self, table: *mut HsaApiTable) -> bool {
        // SAFETY: a runtime's table is static memory, so the patched one is there too.
        self.patch.lock().as_ref().is_some_and(|patch| unsafe { patch.holds(table) })
    }

    /// Answers `hsa_queue_create`. Errors of the runtime come back unchanged and leave nothing behind.
    ///
    /// # Safety
    /// The arguments are those of the application's call.
    pub(crate) unsafe fn create_queue(
        &self,
        creation: &Creation,
        queue: *mut *mut hsa_queue_t,
    ) -> hsa_status_t {
        let gpu = self.hsa.gpu_by_handle(creation.agent);
        let handle = gpu.and_then(|gpu| self.engine.add_queue(gpu.id));
        let Some(handle) = handle else {
            // SAFETY: by this function's contract.
            return unsafe { creation.plain(&self.hsa, queue) };
        };
        // SAFETY: likewise.
        match unsafe { self.queues.create(creation, &handle, queue) } {
            Ok(()) => HSA_STATUS_SUCCESS,
            Err(status) => {
                self.engine.queue_destroyed(&handle);
                status
            }
        }
    }

    /// Answers `hsa_queue_destroy`.
    ///
    /// # Safety
    /// The argument is that of the application's call.
    pub(crate) unsafe fn destroy_queue(&self, queue: *mut hsa_queue_t) -> hsa_status_t {
        let timeout = self.options.destroy_timeout;
        // SAFETY: by this function's contract.
        let (status, gone) = unsafe { self.queues.destroy(queue, timeout) };
        if let Some(gone) = gone {
            self.engine.queue_destroyed(&gone);
        }
        status
    }

    /// The runtime reported `status` on a queue.
    pub(crate) fn queue_failed(&self, queue: &QueueHandle) {
        self.engine.queue_failed(queue);
    }

    /// Answers `hsa_amd_profiling_get_dispatch_time`.
    ///
    /// # Safety
    /// The arguments are those of the application's call.
    pub(crate) unsafe fn dispatch_time(
        &self,
        agent: hsa_agent_t,
        signal: hsa_signal_t,
        time: *mut hsa_amd_profiling_dispatch_time_t,
    ) -> hsa_status_t {
        let known = self.hsa.gpu_by_handle(agent).and_then(|gpu| self.times_of(gpu.id, signal));
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

    fn times_of(&self, agent: AgentId, signal: hsa_signal_t) -> Option<hsa_amd_profiling_dispatch_time_t> {
        let times = self.engine.times_of(agent, Signal(signal.handle))?;
        let mut ticks = hsa_amd_profiling_dispatch_time_t::zeroed();
        ticks.start = self.hsa.ns_to_ticks(times.start_ns);
        ticks.end = self.hsa.ns_to_ticks(times.end_ns);
        Some(ticks)
    }

    pub(crate) fn signal_destroyed(&self, signal: hsa_signal_t) {
        self.engine.signal_destroyed(Signal(signal.handle));
    }

    pub(crate) fn executable_frozen(&self, executable: hsa_executable_t) {
        self.code.add(&self.hsa, executable);
    }

    pub(crate) fn executable_leaves(&self, executable: hsa_executable_t) {
        self.code.remove(executable);
    }
}

impl Interception for Interceptor {
    fn subscribe(&self, subscription: Subscription) -> Result<SubscriptionId, InterceptionError> {
        self.engine.subscribe(subscription)
    }

    fn quiesce(&self, id: SubscriptionId) -> Result<(), InterceptionError> {
        self.engine.quiesce(id)
    }

    fn drain(&self, id: SubscriptionId, timeout: Duration) -> Result<(), InterceptionError> {
        self.engine.drain(id, timeout)
    }

    fn unsubscribe(&self, id: SubscriptionId) -> Result<(), InterceptionError> {
        self.engine.unsubscribe(id)
    }

    fn return_grant(&self, id: SubscriptionId, token: Token) {
        self.engine.return_grant(id, token);
    }
}

impl std::fmt::Debug for Interceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interceptor").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// Data pointers of callbacks: a record that outlives them.
pub(crate) fn as_data<T>(record: &T) -> *mut c_void {
    std::ptr::from_ref(record).cast_mut().cast()
}
