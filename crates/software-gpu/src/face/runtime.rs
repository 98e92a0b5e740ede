//! The runtime of the process: what `hsa_init` makes and the last `hsa_shut_down` takes away.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hsa_sys::{
    HSA_STATUS_ERROR_NOT_INITIALIZED, HSA_STATUS_ERROR_OUT_OF_RESOURCES, HSA_STATUS_ERROR_REFCOUNT_OVERFLOW,
    HSA_STATUS_SUCCESS, HsaApiTable,
};
use wavescope_core::Topology;

use super::Error;
use super::address_map::AddressMap;
use super::agents::{AgentIndex, Agents, Gpu};
use super::allocations::Allocations;
use super::async_events::AsyncEvents;
use super::clock::Clock;
use super::code::CodeObjects;
use super::copies::Copies;
use super::error::{Failure, Outcome, status};
use super::hardware_queue::{HardwareQueue, Request, next_queue_id};
use super::host::QueueErrors;
use super::intercept_queue::{InterceptQueue, SMALLEST};
use super::options::{Options, Tools};
use super::pools::Pool;
use super::queue_block::Limits;
use super::queue_table::{AnyQueue, QueueTable};
use super::{table, tools};
use crate::DeviceOptions;

static STATE: RwLock<State> = RwLock::new(State { settings: None, references: 0, runtime: None });

/// Whether this process is a forked child. The runtime's threads stayed behind, and any lock may be held for ever.
static FORKED: AtomicBool = AtomicBool::new(false);

static AT_FORK: Once = Once::new();

extern "C" fn in_forked_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// What outlives a shut-down.
struct State {
    /// Chosen by [`SoftwareRuntime::start`]; otherwise `hsa_init` asks the environment.
    settings: Option<Settings>,
    references: u32,
    runtime: Option<Arc<Runtime>>,
}

/// What a runtime is made from.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) topology: Topology,
    pub(super) options: Options,
    pub(super) device: DeviceOptions,
}

/// Everything between the first `hsa_init` and the last `hsa_shut_down`.
pub(super) struct Runtime {
    pub(super) clock: Arc<Clock>,
    pub(super) agents: Agents,
    pub(super) memory: Arc<Allocations>,
    pub(super) queues: Arc<QueueTable>,
    pub(super) events: Arc<AsyncEvents>,
    pub(super) copies: Copies,
    pub(super) code: CodeObjects,
    poll_doorbells: bool,
    tools: Tools,
}

/// The in-process runtime, held by whoever started it. Dropping it shuts the runtime down, whatever the count of
/// `hsa_init` says.
///
/// There is one per process, since HSA's entries have no argument that says which.
#[derive(Debug)]
pub struct SoftwareRuntime {
    topology: Topology,
}

impl SoftwareRuntime {
    /// Starts the runtime and initialises it once, so that its table can be used at once.
    ///
    /// # Errors
    /// [`Error::AlreadyRunning`] while another handle lives; otherwise what is wrong with topology, options or
    /// environment.
    pub fn start(options: Options) -> Result<Self, Error> {
        let settings = Settings::new(options)?;
        let topology = settings.topology.clone();
        let mut state = write();
        if state.settings.is_some() || state.runtime.is_some() {
            return Err(Error::AlreadyRunning);
        }
        state.settings = Some(settings);
        drop(state);
        // From here on dropping the handle cleans up.
        let handle = Self { topology };
        match status(init()) {
            HSA_STATUS_SUCCESS => Ok(handle),
            failed => Err(Error::Init(failed)),
        }
    }

    /// The table as tools get it. It lives as long as the process and stays at this address; its entries may be
    /// replaced while no other thread calls through them.
    pub fn table(&self) -> *mut HsaApiTable {
        table::table()
    }

    /// The agents that it simulates.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }
}

impl Drop for SoftwareRuntime {
    fn drop(&mut self) {
        end();
        if !FORKED.load(Ordering::Relaxed) {
            write().settings = None;
        }
    }
}

/// Ends the runtime whatever its count of references.
fn end() {
    if FORKED.load(Ordering::Relaxed) {
        return;
    }
    // Tools still have a whole runtime when they are told.
    tools::unload();
    let mut state = write();
    state.references = 0;
    let runtime = state.runtime.take();
    drop(state);
    if let Some(runtime) = runtime {
        runtime.close();
    }
}

/// `hsa_init`.
pub(super) fn init() -> Outcome {
    AT_FORK.call_once(|| {
        // SAFETY: the function only stores to an atomic, which is allowed in a forked child.
        unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
    });
    refuse_in_forked_child()?;
    let mut state = write();
    if state.references > 0 {
        state.references =
            state.references.checked_add(1).ok_or(Failure(HSA_STATUS_ERROR_REFCOUNT_OVERFLOW))?;
        return Ok(());
    }
    let settings = state.settings.clone().map_or_else(|| Settings::new(Options::from_environment()?), Ok);
    let runtime =
        settings.and_then(|settings| Runtime::new(&settings)).map_err(|error| init_failure(&error))?;
    state.references = 1;
    state.runtime = Some(Arc::clone(&runtime));
    // Tools call into the runtime: the lock must be free.
    drop(state);
    tools::load(&runtime.tools);
    Ok(())
}

/// `hsa_shut_down`.
pub(super) fn shut_down() -> Outcome {
    refuse_in_forked_child()?;
    let mut state = write();
    match state.references {
        0 => return Err(Failure(HSA_STATUS_ERROR_NOT_INITIALIZED)),
        1 => {}
        _ => {
            state.references -= 1;
            return Ok(());
        }
    }
    drop(state);
    end();
    Ok(())
}

/// The runtime that API entries work on.
pub(super) fn current() -> Outcome<Arc<Runtime>> {
    refuse_in_forked_child()?;
    read().runtime.clone().ok_or(Failure(HSA_STATUS_ERROR_NOT_INITIALIZED))
}

/// In a forked child there is no runtime, and no way to start one.
fn refuse_in_forked_child() -> Outcome {
    if FORKED.load(Ordering::Relaxed) { Err(Failure(HSA_STATUS_ERROR_NOT_INITIALIZED)) } else { Ok(()) }
}

/// An unusable topology or environment is an error of the machine as HSA sees it, and worth a line: the status says
/// nothing.
fn init_failure(error: &Error) -> Failure {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    tracing::error!("{text}");
    eprintln!("wavescope: the in-process runtime cannot start: {text}");
    Failure(HSA_STATUS_ERROR_OUT_OF_RESOURCES)
}

impl Settings {
    fn new(options: Options) -> Result<Self, Error> {
        let mut device = DeviceOptions::from_environment()?;
        options.apply_to(&mut device);
        Ok(Self { topology: options.topology()?, options, device })
    }
}

impl Runtime {
    fn new(settings: &Settings) -> Result<Arc<Self>, Error> {
        let clock = Arc::new(Clock::new(settings.options.time));
        let map = Arc::new(AddressMap::default());
        let agents = Agents::new(&settings.topology, &clock, &map, &settings.device)?;
        let events = Arc::new(AsyncEvents::default());
        let queues = Arc::new(QueueTable::new(Arc::clone(&events)));
        let errors: Arc<dyn QueueErrors> = Arc::clone(&queues) as _;
        agents.gpus().iter().for_each(|gpu| gpu.host.report_errors_to(Arc::downgrade(&errors)));
        let memory = Arc::new(Allocations::new(map));
        Ok(Arc::new(Self {
            copies: Copies::new(Arc::clone(&clock)),
            code: CodeObjects::new(Arc::clone(&memory)),
            clock,
            agents,
            memory,
            queues,
            events,
            poll_doorbells: settings.options.poll_doorbells,
            tools: settings.options.tools.clone(),
        }))
    }

    /// Creates a queue for an application.
    pub(super) fn create_queue(&self, index: usize, gpu: &Gpu, request: Request) -> Outcome<AnyQueue> {
        Ok(AnyQueue::Hardware(Arc::new(self.hardware_queue(index, gpu, request)?)))
    }

    /// Creates an intercept queue.
    pub(super) fn create_intercept_queue(
        &self,
        index: usize,
        gpu: &Gpu,
        request: Request,
    ) -> Outcome<AnyQueue> {
        if request.packets < SMALLEST {
            return Err(Failure::ARGUMENT);
        }
        let kind = request.kind;
        let hardware = self.hardware_queue(index, gpu, request)?;
        let (id, limits) = (next_queue_id(), Limits::of(gpu));
        let queue = InterceptQueue::create(hardware, id, kind, limits, &self.memory, &self.events)?;
        Ok(AnyQueue::Intercept(queue))
    }

    /// Allocates from a pool, unless the fault plan says no.
    pub(super) fn allocate(&self, pool: Pool, bytes: u64) -> Outcome<u64> {
        let device = match pool.owner {
            AgentIndex::Gpu(index) => Some(&self.agents.gpus()[index].device),
            // Host memory belongs to no device: the first one's plan speaks for it.
            AgentIndex::Cpu => self.agents.gpus().first().map(|gpu| &gpu.device),
        };
        if device.is_some_and(crate::Device::allocation_fails) {
            return Err(Failure(HSA_STATUS_ERROR_OUT_OF_RESOURCES));
        }
        self.memory.allocate(pool, bytes)
    }

    fn hardware_queue(&self, index: usize, gpu: &Gpu, mut request: Request) -> Outcome<HardwareQueue> {
        request.poll_doorbell = self.poll_doorbells;
        HardwareQueue::create(index, gpu, &self.memory, &request)
    }

    /// Stops everything in the order in which it depends on each other: devices first, then whoever hears of them.
    fn close(&self) {
        self.queues.clear();
        self.copies.stop();
        self.events.stop();
        self.code.clear();
    }
}

fn read() -> RwLockReadGuard<'static, State> {
    STATE.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, State> {
    STATE.write().unwrap_or_else(PoisonError::into_inner)
}
