//! A software GPU with its runtime, our interception in its table, and an application on top.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use wavescope_core::{Agent, GfxTarget};
use wavescope_hsa_intercept::{Interceptor, Options as InterceptOptions};
use wavescope_software_gpu::TruthFile;
use wavescope_software_gpu::face::{Options, SoftwareRuntime};
use wavescope_workload::{Application, Gpu};

use crate::input::blame_input;

/// Fields drop in this order: the application first, the runtime last.
pub(crate) struct Machine {
    application: Application,
    pub(crate) interceptor: Arc<Interceptor>,
    runtime: SoftwareRuntime,
}

impl Machine {
    /// Starts a software GPU of `target`. Where its waves really ran is written to `placement`.
    ///
    /// # Errors
    /// Bad input for a target without a model; else what could not be started.
    pub(crate) fn start(target: &str, placement: Option<&Path>) -> anyhow::Result<Self> {
        let target: GfxTarget = target.parse().map_err(blame_input)?;
        // Before anything is started: a target without kernels of ours cannot be demonstrated.
        wavescope_workload::kernels::vectors(&target.to_string()).map_err(blame_input)?;
        let mut options = Options::preset(target, 1);
        if let Some(path) = placement {
            options = options.truth(Arc::new(TruthFile::create(path)?));
        }
        let runtime = SoftwareRuntime::start(options).context("the software GPU did not start")?;
        let table = runtime.table();
        // SAFETY: the table of the runtime just started, which nobody calls through yet.
        let installed =
            unsafe { Interceptor::install(table, Some(runtime.topology()), InterceptOptions::default()) };
        let interceptor = installed.context("interception was not installed")?;
        // SAFETY: the runtime outlives the application: it is dropped after it, and no entry is replaced before.
        let application = unsafe { Application::open(table) }.context("the application did not start")?;
        Ok(Self { application, interceptor, runtime })
    }

    /// The application.
    pub(crate) fn application(&self) -> &Application {
        &self.application
    }

    /// The application's GPU.
    ///
    /// # Errors
    /// The runtime shows none.
    pub(crate) fn gpu(&self) -> anyhow::Result<&Gpu> {
        self.application.gpus().first().context("the runtime shows no GPU")
    }

    /// The same GPU as the topology describes it.
    ///
    /// # Errors
    /// The topology has none.
    pub(crate) fn agent(&self) -> anyhow::Result<&Agent> {
        self.runtime.topology().agents().first().context("the topology has no GPU")
    }
}
