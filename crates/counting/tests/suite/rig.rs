//! An application with interception and counting around it, on two faces of the software GPU: the runtime in this
//! process, and the real one. One per process: HSA's entries have no argument that says which runtime is meant, so
//! tests take turns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hsa_sys::HsaApiTable;
use wavescope_aql_profile::{Builtin, Memory};
use wavescope_core::{
    Agent, ClaimTable, ContextId, Dispatch, DispatchCounters, Interception, Overflow, Records, Topology,
    record_stream,
};
use wavescope_counting::{Choice, CounterConfig, Delivery, DispatchCounting, PoolSize, Setup};
use wavescope_hsa_intercept::{Interceptor, ProgramMemory};
pub(crate) use wavescope_hsa_intercept::{Options, Technique};
use wavescope_on_rocr::{Gpus, Place, Profile, rerun, runtime_table};
use wavescope_software_gpu::face::{self, SoftwareRuntime};
use wavescope_workload::{Application, Batch, Gpu, Kernel, Launch, Module, Queue, kernels};

use crate::signals;

pub(crate) const LIMIT: Duration = Duration::from_secs(60);

static TURN: Mutex<()> = Mutex::new(());

/// Fields drop in order: the application, then interception, then the runtime.
pub(crate) struct Rig {
    modules: Vec<Module>,
    pub(crate) application: Application,
    pub(crate) interceptor: Arc<Interceptor>,
    pub(crate) claims: Arc<ClaimTable>,
    pub(crate) table: *mut HsaApiTable,
    topology: Topology,
    runtime: Option<SoftwareRuntime>,
    _turn: MutexGuard<'static, ()>,
}

/// Defines tests that hold on both faces and with both techniques, on a machine like `gfx942` or `gfx942-x2`.
macro_rules! on_both_faces {
    ($($(#[$doc:meta])* fn $name:ident($rig:ident on $machine:literal) $body:block)*) => { $(
        $(#[$doc])*
        mod $name {
            use super::*;

            fn check($rig: &Rig) $body

            #[test]
            fn in_process_runtime() {
                check(&Rig::in_process($machine, Technique::Runtime));
            }

            #[test]
            fn in_process_doorbell() {
                check(&Rig::in_process($machine, Technique::Doorbell));
            }

            #[test]
            fn on_rocr_runtime() {
                Rig::on_rocr(module_path!(), "on_rocr_runtime", $machine, Technique::Runtime, check);
            }

            #[test]
            fn on_rocr_doorbell() {
                Rig::on_rocr(module_path!(), "on_rocr_doorbell", $machine, Technique::Doorbell, check);
            }
        }
    )* };
}

/// The same for what only holds with one technique.
macro_rules! with_technique {
    ($technique:ident: $($(#[$doc:meta])* fn $name:ident($rig:ident on $machine:literal) $body:block)*) => { $(
        $(#[$doc])*
        mod $name {
            use super::*;

            fn check($rig: &Rig) $body

            #[test]
            fn in_process() {
                check(&Rig::in_process($machine, Technique::$technique));
            }

            #[test]
            fn on_rocr() {
                Rig::on_rocr(module_path!(), "on_rocr", $machine, Technique::$technique, check);
            }
        }
    )* };
}

/// What only holds with queue fronts.
macro_rules! with_fronts {
    ($($tests:tt)*) => { with_technique! { Doorbell: $($tests)* } };
}

/// What only holds with the runtime's intercept queues.
macro_rules! with_intercept_queues {
    ($($tests:tt)*) => { with_technique! { Runtime: $($tests)* } };
}

pub(crate) use {on_both_faces, with_fronts, with_intercept_queues, with_technique};

impl Rig {
    /// On the runtime in this process.
    pub(crate) fn in_process(machine: &str, technique: Technique) -> Self {
        Self::in_process_with(preset(machine), technique)
    }

    /// As [`in_process`](Self::in_process), on any machine.
    pub(crate) fn in_process_with(options: face::Options, technique: Technique) -> Self {
        Ground::in_process(options).install(technique)
    }

    /// Runs `check` on the real runtime, in a process of its own, which runs `test` in `module`.
    pub(crate) fn on_rocr(
        module: &str,
        test: &str,
        machine: &str,
        technique: Technique,
        check: impl FnOnce(&Self),
    ) {
        let inside = module.split_once("::").map_or(module, |(_, inside)| inside);
        let gpus: Gpus = machine.parse().unwrap();
        if rerun(&format!("{inside}::{test}"), Profile::Libs, &gpus).unwrap() == Place::OnRuntime {
            check(&Ground::on_rocr(&gpus).install(technique));
        }
    }

    /// Whether the runtime is the real one.
    pub(crate) fn is_rocr(&self) -> bool {
        self.runtime.is_none()
    }

    pub(crate) fn agent(&self, index: usize) -> &Agent {
        &self.topology.agents()[index]
    }

    pub(crate) fn gpu(&self, index: usize) -> &Gpu {
        &self.application.gpus()[index]
    }

    pub(crate) fn queue(&self, index: usize) -> Queue {
        self.application.queue(self.gpu(index), 1024).unwrap()
    }

    pub(crate) fn kernel(&self, index: usize, name: &str) -> Kernel {
        self.modules[index].kernel(name).unwrap()
    }

    pub(crate) fn config(&self, index: usize, counters: &[&str], pool: PoolSize) -> Arc<CounterConfig> {
        let agent = self.agent(index);
        let memory: Arc<dyn Memory> = Arc::new(ProgramMemory::new(self.interceptor.hsa().clone(), agent.id));
        CounterConfig::new(agent, counters, &Builtin, memory, pool).unwrap()
    }

    pub(crate) fn counting(
        &self,
        context: u64,
        agents: &[usize],
        choose: impl Fn(&Dispatch) -> Choice + Send + Sync + 'static,
    ) -> (DispatchCounting, Records<DispatchCounters>) {
        let (sink, records) = record_stream(1 << 16, Overflow::DropNewest);
        let interception: Arc<dyn Interception> = Arc::<Interceptor>::clone(&self.interceptor);
        let setup = Setup {
            context: ContextId(context),
            agents: agents.iter().map(|&index| self.agent(index).id).collect(),
            interception,
            claims: Arc::clone(&self.claims),
            choose: Arc::new(choose),
            delivery: Delivery::Stream(sink),
        };
        (DispatchCounting::new(setup).unwrap(), records)
    }
}

/// A runtime that nobody intercepts yet.
pub(crate) struct Ground {
    table: *mut HsaApiTable,
    topology: Topology,
    runtime: Option<SoftwareRuntime>,
    turn: MutexGuard<'static, ()>,
}

impl Ground {
    pub(crate) fn in_process(options: face::Options) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let runtime = SoftwareRuntime::start(options).unwrap();
        let (table, topology) = (runtime.table(), runtime.topology().clone());
        Self { table, topology, runtime: Some(runtime), turn }
    }

    /// In a process on the real runtime.
    pub(crate) fn on_rocr(gpus: &Gpus) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let topology = Topology::read(&gpus.folder().unwrap()).unwrap();
        Self { table: runtime_table().unwrap().cast_mut(), topology, runtime: None, turn }
    }

    pub(crate) fn install(self, technique: Technique) -> Rig {
        self.install_with(Options { technique: Some(technique), ..Options::default() })
    }

    pub(crate) fn install_with(self, options: Options) -> Rig {
        let interceptor = self.intercept(options);
        let application = self.application();
        self.rig(application, interceptor)
    }

    /// The application is there first, and has what `early` makes.
    pub(crate) fn install_late<T>(
        self,
        technique: Technique,
        early: impl FnOnce(&Application) -> T,
    ) -> (T, Rig) {
        let application = self.application();
        let early = early(&application);
        let options = Options { technique: Some(technique), late: true, ..Options::default() };
        let interceptor = self.intercept(options);
        (early, self.rig(application, interceptor))
    }

    fn intercept(&self, options: Options) -> Arc<Interceptor> {
        signals::count_in(self.table);
        // SAFETY: the runtime's own table; nobody is inside a call now.
        unsafe { Interceptor::install(self.table, Some(&self.topology), options) }.unwrap()
    }

    fn application(&self) -> Application {
        // SAFETY: the rig drops the application before the runtime; entries are replaced while nobody calls them.
        unsafe { Application::open(self.table) }.unwrap()
    }

    fn rig(self, application: Application, interceptor: Arc<Interceptor>) -> Rig {
        let Self { table, topology, runtime, turn } = self;
        let load = |gpu: &Gpu| application.load(gpu, kernels::vectors(gpu.target()).unwrap()).unwrap();
        let modules = application.gpus().iter().map(load).collect();
        let claims = Arc::new(ClaimTable::new());
        Rig { modules, application, interceptor, claims, table, topology, runtime, _turn: turn }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.interceptor.shut_down().unwrap();
    }
}

/// A machine like `gfx942` or `gfx942-x2`.
pub(crate) fn preset(machine: &str) -> face::Options {
    let (target, gpus) = machine.split_once("-x").unwrap_or((machine, "1"));
    face::Options::preset(target.parse().unwrap(), gpus.parse().unwrap())
}

/// Chooses `config` for every dispatch.
pub(crate) fn always(config: Arc<CounterConfig>) -> impl Fn(&Dispatch) -> Choice + Send + Sync + 'static {
    move |dispatch| Choice { config: Some(Arc::clone(&config)), user_data: dispatch.id.0 * 10 }
}

pub(crate) fn batch(launches: impl IntoIterator<Item = Launch>) -> Batch {
    let mut batch = Batch::new().own_signals();
    for launch in launches {
        batch.launch(launch);
    }
    batch
}

/// The sum of a counter over all places.
pub(crate) fn total(counters: &DispatchCounters, name: &str) -> f64 {
    let catalogue = |id| wavescope_counting::Catalogue::name_of(id) == Some(name);
    counters.records.iter().filter(|record| catalogue(record.counter)).map(|record| record.value).sum()
}
