//! The engine under a runtime's API table.
//!
//! The entries of a table carry no context, so the interceptor that they lead to is a global: the newest one that was
//! installed. None is ever freed: an application may keep a pointer to a replaced entry for good, and its queues go on with
//! the interceptor that made them.

mod answers;
mod ends;

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use hsa_sys::{HsaApiTable, hsa_queue_t};
use wavescope_core::sync::atomic::{AtomicBool, Ordering};
use wavescope_core::sync::{Deadline, Mutex};
use wavescope_core::{Interception, InterceptionError, Subscription, SubscriptionId, Token, Topology};
use wavescope_hsa::{Hsa, SavedTable};

use self::ends::{Ends, LONGEST_FAREWELL};
use crate::Error;
use crate::application_queues::ApplicationQueues;
use crate::blind::{OtherQueues, Others};
use crate::code_objects::{CodeObject, CodeObjectListener, CodeObjects, Kernel};
use crate::copies;
use crate::engine::Engine;
use crate::gate::{ForApplication, GoingDown};
use crate::hsa_device::HsaDevice;
use crate::kernel_trace::Tracing;
use crate::patch::{Patch, Slot};
use crate::process::Origin;
use crate::signal_entries;
use crate::table;
use crate::technique::Technique;
use crate::thread_mark::InsideHook;

/// How to install an [`Interceptor`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether queues are intercepted. Without, only code objects are followed and queue creation is not replaced.
    pub queues: bool,
    /// How; `None` asks the environment ([`Technique::VARIABLE`]).
    pub technique: Option<Technique>,
    /// Whether the application may have created queues before: the table came late. The technique `runtime` looks out for
    /// such queues only then ([`Interceptor::other_queues`]); `doorbell` always does.
    pub late: bool,
    /// How long a kernel of a serialized agent may keep those of other queues waiting; then they run beside it.
    pub watchdog: Duration,
    /// How long such a kernel's queue may go on with further ones ([`Engine::set_turn`]); `None` leaves what is usual.
    pub turn: Option<Duration>,
    /// See [`Engine::set_retire_by_barrier`].
    pub retire_by_barrier: bool,
    /// How long destroying a queue waits for instrumented dispatches that are still in flight on it.
    pub destroy_timeout: Duration,
    /// How long [`Interceptor::shut_down`] waits, for everything together.
    pub drain_timeout: Duration,
    /// How long stopping a service waits for a callback of it that does not return.
    pub callback_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queues: true,
            technique: None,
            late: false,
            watchdog: Duration::from_secs(10),
            turn: None,
            retire_by_barrier: false,
            destroy_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(60),
            callback_timeout: Duration::from_secs(10),
        }
    }
}

/// Interception of one runtime: implements [`Interception`] for the services.
pub struct Interceptor {
    hsa: Hsa,
    device: Arc<HsaDevice>,
    engine: Arc<Engine>,
    code: CodeObjects,
    options: Options,
    queues: ApplicationQueues,
    others: &'static Others,
    patch: Mutex<Option<Patch>>,
    over: AtomicBool,
    ends: Mutex<Ends>,
    origin: Origin,
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
    /// [`Error::Hsa`] for a table of an unknown version, [`Error::MissingEntry`] for one without the entries that
    /// interception needs, [`Error::InstalledElsewhere`] if another copy of this library was faster. The table is untouched
    /// then.
    pub unsafe fn install(
        table: *mut HsaApiTable,
        topology: Option<&Topology>,
        options: Options,
    ) -> Result<Arc<Self>, Error> {
        // SAFETY: by this function's contract.
        if let Some(installed) = unsafe { table::installed_on(table) } {
            return Ok(installed);
        }
        let covered = table::covered(table);
        // SAFETY: likewise.
        let hsa = unsafe { uncovered(table, &covered, topology) }?;
        let interceptor = Arc::new(Self::new(hsa, options));
        // SAFETY: likewise.
        let mut slots = unsafe { table::slots(table, &interceptor) }?;
        if let Some(path) = copies::installed_in(&slots) {
            return Err(Error::InstalledElsewhere { path });
        }
        // They lead to us already, through the other tool.
        slots.retain(|slot| !covered.iter().any(|covered| covered.is_at(slot)));
        table::lead_to(&interceptor);
        interceptor.queues.lead_entries_here(interceptor.others);
        signal_entries::lead_to(interceptor.hsa.table().clone());
        interceptor.others.listen();
        // SAFETY: likewise.
        *interceptor.patch.lock() = Some(unsafe { Patch::apply(table, slots) });
        Ok(interceptor)
    }

    fn new(hsa: Hsa, options: Options) -> Self {
        let agents = hsa.gpus().iter().map(|gpu| gpu.id).collect::<Vec<_>>();
        let device = Arc::new(HsaDevice::new(hsa.clone()));
        let technique = options.queues.then(|| options.technique.unwrap_or_else(Technique::from_environment));
        let engine = Arc::new(Engine::new(Arc::<HsaDevice>::clone(&device), agents));
        let queues = ApplicationQueues::new(&hsa, &device, &engine, technique);
        engine.set_watchdog(options.watchdog);
        engine.set_retire_by_barrier(options.retire_by_barrier);
        options.turn.into_iter().for_each(|turn| engine.set_turn(turn));
        engine.set_callback_timeout(options.callback_timeout);
        Self {
            queues,
            others: Box::leak(Box::new(Others::new(&hsa))),
            hsa,
            device,
            engine,
            code: CodeObjects::default(),
            options,
            patch: Mutex::new(None),
            over: AtomicBool::new(false),
            ends: Mutex::new(Ends::default()),
            origin: Origin::here(),
        }
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

    /// Queues that are not intercepted, by agent: those of the application, which make their agent blind, and the runtime's
    /// own.
    pub fn other_queues(&self) -> Vec<OtherQueues> {
        self.others.list()
    }

    /// Tells `tracer` of every kernel from now on; see [`KernelTracer`](crate::KernelTracer).
    ///
    /// # Errors
    /// [`InterceptionError::ShutDown`].
    pub fn trace(&self, tracing: Tracing) -> Result<SubscriptionId, InterceptionError> {
        let _called = ForApplication::enter();
        self.engine.trace(tracing)
    }

    /// Ends all subscriptions, puts back the table's entries that still hold ours, and ends our threads. Twice is fine.
    ///
    /// Queues that exist go on unchanged. While there are fronts among them, the entries that answer for fronts stay,
    /// and the worker with them: call this again when the application has destroyed its queues.
    ///
    /// In a forked child it does nothing: what is there belongs to the parent.
    ///
    /// # Errors
    /// What did not end in time, and where; everything else was done.
    pub fn shut_down(&self) -> Result<(), Error> {
        if self.is_inert() {
            return Ok(());
        }
        self.over.store(true, Ordering::Release);
        let deadline = Deadline::after(self.options.drain_timeout);
        let _called = self.called();
        let outcome = self.engine.shut_down_until(deadline);
        let none_left = self.queues.end_if_no_fronts(deadline);
        if matches!(none_left, Ok(true)) {
            self.put_back();
        }
        if GoingDown::is_current() {
            // A tool is unloaded: when it returns, the runtime goes.
            self.set_gone(&mut self.hold(Deadline::after(LONGEST_FAREWELL)));
        }
        outcome.and(none_left.map(drop))
    }

    /// Whether `table` still leads to this interceptor.
    ///
    /// # Safety
    /// `table` is null or a table that a runtime hands over.
    pub(crate) unsafe fn holds(&self, table: *mut HsaApiTable) -> bool {
        // SAFETY: a runtime's table is static memory, so the patched one is there too.
        !self.is_inert() && self.patch.lock().as_ref().is_some_and(|patch| unsafe { patch.holds(table) })
    }

    /// Puts back the table's entries that still hold ours.
    pub(crate) fn put_back(&self) {
        if !self.is_inert()
            && let Some(patch) = self.patch.lock().as_mut()
        {
            patch.restore();
        }
    }

    /// Slots of `table` where another tool's entry lies over ours.
    pub(crate) fn covered(&self, table: *mut HsaApiTable) -> Vec<Slot> {
        let covered = |patch: &Patch| patch.covered(table).to_vec();
        if self.is_inert() { Vec::new() } else { self.patch.lock().as_ref().map(covered).unwrap_or_default() }
    }

    /// Whether it belongs to a process of which this is a forked child: calls are passed on, nothing is locked.
    pub(crate) fn is_inert(&self) -> bool {
        self.origin.is_parent()
    }

    /// Whether queues may be there that are older than it.
    pub(crate) fn is_late(&self) -> bool {
        self.options.late
    }

    /// Whether one of its queues has this address.
    pub(crate) fn owns(&self, queue: *const hsa_queue_t) -> bool {
        self.queues.have(queue)
    }
}

/// The runtime behind `table`, without earlier entries of ours that other tools lie over.
///
/// # Safety
/// As for [`Hsa::from_table`].
unsafe fn uncovered(
    table: *mut HsaApiTable,
    covered: &[Slot],
    topology: Option<&Topology>,
) -> Result<Hsa, wavescope_hsa::Error> {
    if covered.is_empty() {
        // SAFETY: by this function's contract.
        return unsafe { Hsa::from_table(table, topology) };
    }
    // SAFETY: it was patched before, so it is there; its parts were checked then.
    let original = unsafe { table.read() };
    // SAFETY: likewise.
    let SavedTable { mut core, mut amd } = unsafe { SavedTable::copy(table) }?;
    for slot in covered {
        // SAFETY: the copies have the sizes of their types.
        unsafe { slot.undo_in(original.core_.cast(), (&raw mut core).cast(), size_of_val(&core)) };
        // SAFETY: likewise.
        unsafe { slot.undo_in(original.amd_ext_.cast(), (&raw mut amd).cast(), size_of_val(&amd)) };
    }
    let cap = |version: &mut hsa_sys::ApiTableVersion, size: usize| {
        version.minor_id = version.minor_id.min(size as u32);
    };
    cap(&mut core.version, size_of::<hsa_sys::CoreApiTable>());
    cap(&mut amd.version, size_of::<hsa_sys::AmdExtTable>());
    let copy = HsaApiTable { core_: &raw mut core, amd_ext_: &raw mut amd, ..original };
    // SAFETY: a table whose parts live until it was copied; its functions are the runtime's.
    unsafe { Hsa::from_table(&raw const copy, topology) }
}

impl Interception for Interceptor {
    fn subscribe(&self, subscription: Subscription) -> Result<SubscriptionId, InterceptionError> {
        let _called = ForApplication::enter();
        self.engine.subscribe(subscription)
    }

    fn quiesce(&self, id: SubscriptionId) -> Result<(), InterceptionError> {
        let _called = self.called();
        self.engine.quiesce(id)
    }

    fn settle(&self, id: SubscriptionId, timeout: Duration) -> Result<(), InterceptionError> {
        let _called = self.called();
        let deadline = Deadline::after(if InsideHook::is_current() { Duration::ZERO } else { timeout });
        if !self.is_inert() && !self.queues.wait_asked(deadline) {
            // At least one that nobody has been asked about.
            let in_flight = self.engine.in_flight(id) + 1;
            return Err(InterceptionError::DrainTimedOut { subscription: id, in_flight, timeout });
        }
        self.engine.settle(id, deadline.left())
    }

    fn drain(&self, id: SubscriptionId, timeout: Duration) -> Result<(), InterceptionError> {
        let _called = self.called();
        self.engine.drain(id, timeout)
    }

    fn unsubscribe(&self, id: SubscriptionId) -> Result<(), InterceptionError> {
        let _called = self.called();
        self.engine.unsubscribe(id)
    }

    fn return_grant(&self, id: SubscriptionId, token: Token) {
        // A service's thread waits for the runtime here, where nothing is locked.
        let _pass = self.device.gate().enter();
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
