//! A runtime with interception, an application, and a service that counts on its first GPU.

use std::sync::Arc;
use std::time::Duration;

use hsa_sys::HsaApiTable;
use wavescope_aql_profile::{Builtin, Memory};
use wavescope_core::{
    ClaimTable, ContextId, DispatchCounters, Interception, Overflow, Records, Topology, record_stream,
};
use wavescope_counting::{Choice, CounterConfig, Delivery, DispatchCounting, PoolSize, Setup};
use wavescope_hsa_intercept::{Interceptor, Options, ProgramMemory, Technique};
use wavescope_workload::{Application, Batch, Launch, Queue, kernels};

pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct World {
    application: Application,
    interceptor: Arc<Interceptor>,
    topology: Topology,
}

impl World {
    /// `table` is of a runtime that outlives it, and nobody uses it yet.
    pub(crate) fn new(table: *mut HsaApiTable, topology: Topology, technique: Technique) -> Self {
        let options = Options { technique: Some(technique), ..Options::default() };
        // SAFETY: the runtime's own table; nobody else uses it yet.
        let interceptor = unsafe { Interceptor::install(table, Some(&topology), options) }.unwrap();
        // SAFETY: the same table, with entries that were replaced for good.
        let application = unsafe { Application::open(table) }.unwrap();
        Self { application, interceptor, topology }
    }

    /// Counts the waves of every kernel.
    pub(crate) fn counting(&self) -> (DispatchCounting, Records<DispatchCounters>) {
        let agent = &self.topology.agents()[0];
        let memory: Arc<dyn Memory> = Arc::new(ProgramMemory::new(self.interceptor.hsa().clone(), agent.id));
        let config = CounterConfig::new(agent, &["SQ_WAVES"], &Builtin, memory, PoolSize::default()).unwrap();
        let (sink, records) = record_stream(16, Overflow::DropNewest);
        let interception: Arc<dyn Interception> = Arc::<Interceptor>::clone(&self.interceptor);
        let setup = Setup {
            context: ContextId(1),
            agents: vec![agent.id],
            interception,
            claims: Arc::new(ClaimTable::new()),
            choose: Arc::new(move |_| Choice { config: Some(Arc::clone(&config)), user_data: 0 }),
            delivery: Delivery::Stream(sink),
        };
        (DispatchCounting::new(setup).unwrap(), records)
    }

    /// Runs a kernel of one wave on a queue of its own, which it returns.
    pub(crate) fn run(&self) -> Queue {
        let gpu = &self.application.gpus()[0];
        let module = self.application.load(gpu, kernels::vectors(gpu.target()).unwrap()).unwrap();
        let queue = self.application.queue(gpu, 64).unwrap();
        let mut batch = Batch::new();
        batch.launch(Launch::new(module.kernel("empty").unwrap(), [64, 1, 1], [64, 1, 1]));
        queue.submit(&batch).unwrap().wait(LIMIT).unwrap();
        queue
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.interceptor.shut_down().unwrap();
    }
}
