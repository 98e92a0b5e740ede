//! The machine under test.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hsa_sys::HsaApiTable;
use tempfile::TempDir;
use wavescope_aql_profile::{AgentShape, Choice, Memory, PacketPrograms};
use wavescope_att_resources::Limits;
use wavescope_core::{Agent, AgentId, ClaimTable, Topology};
use wavescope_hsa_intercept::{Interceptor, Options as InterceptOptions, ProgramMemory, Technique};
use wavescope_on_rocr::runtime_table;
use wavescope_software_gpu::face::{Options, SoftwareRuntime};
use wavescope_software_gpu::{FaultPlan, TruthFile};
use wavescope_workload::{Application, Gpu, Module, kernels};

use crate::face::Inside;
use crate::{Placement, Resources};

/// Longer than anything takes that works.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How long a machine with faults is waited for.
pub const FAULT_PATIENCE: Duration = Duration::from_millis(300);

/// HSA's entries have no argument that says which runtime is meant, so there is one machine per process at a time.
static TURN: Mutex<()> = Mutex::new(());

/// A machine with interception and an application. Fields drop in this order.
pub struct Bed {
    /// The kernels of the workload, GPU by GPU.
    pub modules: Vec<Module>,
    /// The application whose dispatches are measured.
    pub application: Application,
    /// Interception of its runtime.
    pub interceptor: Arc<Interceptor>,
    /// Claims of all contexts.
    pub claims: Arc<ClaimTable>,
    /// Who makes the packets of the services.
    pub programs: Arc<dyn PacketPrograms>,
    /// What really ran.
    pub placement: Placement,
    patience: Duration,
    topology: Topology,
    _runtime: Option<SoftwareRuntime>,
    _folder: Option<TempDir>,
    _turn: MutexGuard<'static, ()>,
}

/// What the two faces have in common.
struct Parts {
    table: *mut HsaApiTable,
    topology: Topology,
    placement: Placement,
    programs: Arc<dyn PacketPrograms>,
    patience: Duration,
    technique: Technique,
    runtime: Option<SoftwareRuntime>,
    folder: Option<TempDir>,
    turn: MutexGuard<'static, ()>,
}

impl Bed {
    /// A machine like `gfx942` or `gfx942-x2` on the in-process runtime.
    pub fn in_process(machine: &str, technique: Technique) -> Self {
        Self::start(machine, technique, FaultPlan::default(), PATIENCE)
    }

    /// The same where things go wrong; nobody waits longer than [`FAULT_PATIENCE`].
    pub fn with_faults(machine: &str, technique: Technique, faults: FaultPlan) -> Self {
        Self::start(machine, technique, faults, FAULT_PATIENCE)
    }

    fn start(machine: &str, technique: Technique, faults: FaultPlan, patience: Duration) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("placement.jsonl");
        let truth = Arc::new(TruthFile::create(&log).expect("a placement log"));
        let (target, gpus) = machine.split_once("-x").unwrap_or((machine, "1"));
        let target = target.parse().expect("a known target");
        let options = Options::preset(target, gpus.parse().expect("a number")).truth(truth).faults(faults);
        let runtime = SoftwareRuntime::start(options).expect("one runtime per process");
        Self::new(Parts {
            table: runtime.table(),
            topology: runtime.topology().clone(),
            placement: Placement::open(&log),
            programs: Choice::Builtin.open().expect("always there"),
            patience,
            technique,
            runtime: Some(runtime),
            folder: Some(folder),
            turn,
        })
    }

    /// The machine of a process that runs on the real runtime.
    pub(crate) fn on_runtime(inside: &Inside) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let table = runtime_table().expect("the process was started on the real runtime").cast_mut();
        Self::new(Parts {
            table,
            topology: Topology::read(&inside.topology).expect("the topology of the machine"),
            // The driver makes the file when the runtime opens it.
            placement: Placement::open(&inside.placement),
            programs: inside.programs.open().expect("the runtime is initialised"),
            patience: PATIENCE,
            technique: inside.technique,
            runtime: None,
            folder: None,
            turn,
        })
    }

    fn new(parts: Parts) -> Self {
        let Parts { table, topology, placement, programs, patience, technique, runtime, folder, turn } =
            parts;
        let options = InterceptOptions {
            technique: Some(technique),
            destroy_timeout: patience,
            drain_timeout: patience,
            ..InterceptOptions::default()
        };
        // SAFETY: the table of a runtime that outlives the application, which nobody calls through yet.
        let interceptor = unsafe { Interceptor::install(table, Some(&topology), options) };
        let interceptor = interceptor.expect("the runtime has all entries");
        // SAFETY: no entry is replaced while the application is there.
        let application = unsafe { Application::open(table) }.expect("the runtime starts");
        let load = |gpu: &Gpu| {
            let code = kernels::vectors(gpu.target()).expect("kernels of the target");
            application.load(gpu, code).expect("a code object that the runtime takes")
        };
        let modules = application.gpus().iter().map(load).collect();
        Self {
            modules,
            application,
            interceptor,
            claims: Arc::new(ClaimTable::new()),
            programs,
            placement,
            patience,
            topology,
            _runtime: runtime,
            _folder: folder,
            _turn: turn,
        }
    }

    /// A GPU as the topology describes it.
    pub fn agent(&self, index: u32) -> &Agent {
        self.topology.agent(AgentId(index)).expect("a GPU of this machine")
    }

    /// A GPU as the application sees it.
    pub fn gpu(&self, index: u32) -> &Gpu {
        &self.application.gpus()[index as usize]
    }

    /// A GPU as packet programs see it.
    pub fn shape(&self, index: u32) -> AgentShape {
        let agent = self.agent(index);
        let mut shape = AgentShape::from(agent);
        shape.hsa_agent = Some(self.gpu(index).agent().handle);
        shape
    }

    /// Memory for packet programs on a GPU.
    pub fn memory(&self, index: u32) -> Arc<dyn Memory> {
        Arc::new(ProgramMemory::new(self.interceptor.hsa().clone(), self.agent(index).id))
    }

    /// Trace resources of a GPU. One set for all contexts: ask once.
    pub fn resources(&self, index: u32) -> Resources {
        let limits = Limits { patience: self.patience, traces: 8 };
        Resources::new(&self.interceptor, self.agent(index).id, limits)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // After a fault it says what did not drain, which the tests of faults look at where it happens.
        let _ = self.interceptor.shut_down();
    }
}
