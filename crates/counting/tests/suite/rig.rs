//! An application on the software GPU with interception and counting around it. One per process: HSA's entries have no
//! argument that says which runtime is meant, so tests take turns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wavescope_aql_profile::{Builtin, Memory};
use wavescope_core::{
    Agent, ClaimTable, ContextId, Dispatch, DispatchCounters, Interception, Overflow, Records, record_stream,
};
use wavescope_counting::{Choice, CounterConfig, Delivery, DispatchCounting, PoolSize, Setup};
use wavescope_hsa_intercept::{Interceptor, Options, ProgramMemory};
use wavescope_software_gpu::face::{self, SoftwareRuntime};
use wavescope_workload::{Application, Batch, Gpu, Kernel, Launch, Module, Queue, kernels};

pub(crate) const LIMIT: Duration = Duration::from_secs(30);

static TURN: Mutex<()> = Mutex::new(());

/// Fields drop in order: the application, then interception, then the runtime.
pub(crate) struct Rig {
    modules: Vec<Module>,
    pub(crate) application: Application,
    pub(crate) interceptor: Arc<Interceptor>,
    pub(crate) claims: Arc<ClaimTable>,
    runtime: SoftwareRuntime,
    _turn: MutexGuard<'static, ()>,
}

impl Rig {
    pub(crate) fn new(target: &str, gpus: u32) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let runtime = SoftwareRuntime::start(face::Options::preset(target.parse().unwrap(), gpus)).unwrap();
        let table = runtime.table();
        // SAFETY: the runtime's own table; nobody else uses it yet.
        let interceptor =
            unsafe { Interceptor::install(table, Some(runtime.topology()), Options::default()) }.unwrap();
        // SAFETY: the same table, with entries that were replaced for good.
        let application = unsafe { Application::open(table) }.unwrap();
        let load = |gpu: &Gpu| application.load(gpu, kernels::vectors(gpu.target()).unwrap()).unwrap();
        let modules = application.gpus().iter().map(load).collect();
        Self { modules, application, interceptor, claims: Arc::new(ClaimTable::new()), runtime, _turn: turn }
    }

    pub(crate) fn agent(&self, index: usize) -> &Agent {
        &self.runtime.topology().agents()[index]
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

impl Drop for Rig {
    fn drop(&mut self) {
        self.interceptor.shut_down().unwrap();
    }
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
