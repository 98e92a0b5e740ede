//! The machine under test.

use std::sync::Arc;

use wavescope_core::{Agent, AgentId, ClaimTable};
use wavescope_hsa_intercept::{Interceptor, Options as InterceptOptions};
use wavescope_software_gpu::face::{Options, SoftwareRuntime};
use wavescope_workload::{Application, Gpu};

use crate::Placement;

/// A software machine with interception and an application. Fields drop in this order.
pub struct Bed {
    /// The application whose dispatches are measured.
    pub application: Application,
    /// Interception of its runtime.
    pub interceptor: Arc<Interceptor>,
    /// Claims of all contexts.
    pub claims: Arc<ClaimTable>,
    /// What really ran.
    pub placement: Arc<Placement>,
    runtime: SoftwareRuntime,
}

impl Bed {
    /// A machine with `gpus` GPUs of `target`.
    pub fn new(target: &str, gpus: u32) -> Self {
        let placement = Arc::new(Placement::default());
        let target = target.parse().expect("a known target");
        let options = Options::preset(target, gpus).truth(Arc::clone(&placement) as _);
        let runtime = SoftwareRuntime::start(options).expect("one runtime per process");
        let table = runtime.table();
        // SAFETY: the table of the runtime just started, which nobody calls through yet.
        let interceptor =
            unsafe { Interceptor::install(table, Some(runtime.topology()), InterceptOptions::default()) };
        let interceptor = interceptor.expect("the software runtime has all entries");
        // SAFETY: the runtime is dropped after the application, and no entry is replaced meanwhile.
        let application = unsafe { Application::open(table) }.expect("the software runtime starts");
        Self { application, interceptor, claims: Arc::new(ClaimTable::new()), placement, runtime }
    }

    /// A GPU as the topology describes it.
    pub fn agent(&self, index: u32) -> &Agent {
        self.runtime.topology().agent(AgentId(index)).expect("a GPU of this machine")
    }

    /// A GPU as the application sees it.
    pub fn gpu(&self, index: u32) -> &Gpu {
        &self.application.gpus()[index as usize]
    }
}
