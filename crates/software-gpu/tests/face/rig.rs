//! What the tests stand on: a runtime with a truth log, an application, and calls through the table.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hsa_sys::HsaApiTable;
use wavescope_software_gpu::face::{Options, SoftwareRuntime};
use wavescope_software_gpu::{DispatchTruth, Truth, TruthSink};
use wavescope_workload::{Application, Gpu};

/// Longer than anything here takes, so that a hang fails.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// There is one runtime per process: tests of one process take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Collects the truth log.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<Vec<Truth>>);

impl TruthSink for Log {
    fn record(&self, truth: &Truth) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(truth.clone());
    }
}

impl Log {
    /// The dispatches placed so far.
    pub(crate) fn dispatches(&self) -> Vec<DispatchTruth> {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().filter_map(|truth| if let Truth::Dispatch(d) = truth { Some(*d) } else { None }).collect()
    }

    /// Waves placed so far, per dispatch number.
    pub(crate) fn waves(&self, dispatch: u64) -> u64 {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_dispatch = |truth: &&Truth| matches!(truth, Truth::Wave(wave) if wave.dispatch == dispatch);
        log.iter().filter(of_dispatch).count() as u64
    }
}

/// A runtime with one application.
pub(crate) struct Rig {
    // Field order is drop order: the application before its runtime, the turn last.
    pub(crate) application: Application,
    pub(crate) runtime: SoftwareRuntime,
    pub(crate) log: Arc<Log>,
    _turn: MutexGuard<'static, ()>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::for_target("gfx942")
    }

    pub(crate) fn for_target(target: &str) -> Self {
        Self::with(Options::preset(target.parse().unwrap(), 1))
    }

    pub(crate) fn with(options: Options) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let log = Arc::new(Log::default());
        let runtime = SoftwareRuntime::start(options.truth(Arc::clone(&log) as _)).unwrap();
        // SAFETY: the runtime outlives the application by the field order; the tests replace no entry.
        let application = unsafe { Application::open(runtime.table()) }.unwrap();
        Self { application, runtime, log, _turn: turn }
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        &self.application.gpus()[0]
    }

    pub(crate) fn table(&self) -> *mut HsaApiTable {
        self.runtime.table()
    }
}

/// Calls an entry of a table.
macro_rules! hsa {
    ($table:expr, $part:ident.$entry:ident($($argument:expr),* $(,)?)) => {{
        let table: *mut hsa_sys::HsaApiTable = $table;
        // SAFETY: the runtime's table lives for ever.
        let part = unsafe { (*table).$part };
        // SAFETY: so do its parts.
        let function = unsafe { (*part).$entry }.unwrap();
        // SAFETY: each test passes handles and pointers as the call demands, or wrong ones that the runtime checks.
        unsafe { function($($argument),*) }
    }};
}

pub(crate) use hsa;
