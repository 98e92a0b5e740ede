//! A tool that counts the waves of every kernel of any application:
//!
//! ```text
//! HSA_TOOLS_LIB=libcount_waves.so WAVESCOPE_OUTPUT=waves ./application
//! ```
//!
//! Writes `waves.PID`, a line for each dispatch when its counters were read, and one at the end; without the variable, to
//! standard error. Lines are written as they come, so what a killed process leaves is complete up to its last line.

use std::ffi::{c_char, c_void};
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hsa_sys::HsaApiTable;
use wavescope_aql_profile::{Builtin, Memory};
use wavescope_core::{Agent, ClaimTable, ContextId, DispatchCounters, Interception, Topology};
use wavescope_counting::{Choice, CounterConfig, Delivery, DispatchCounting, PoolSize, Setup};
use wavescope_hsa_intercept::{Interceptor, Options, ProgramMemory};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// How long the end waits for kernels that are still running.
const LIMIT: Duration = Duration::from_secs(20);

/// From `OnLoad` to `OnUnload`.
struct Session {
    interceptor: Arc<Interceptor>,
    counting: DispatchCounting,
    output: Output,
}

static SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// The runtime hands over its table.
#[unsafe(no_mangle)]
pub extern "C" fn OnLoad(
    table: *mut c_void,
    _runtime_version: u64,
    _failed_tools: u64,
    _failed_names: *const *const c_char,
) -> bool {
    match Session::begin(table.cast()) {
        Ok(session) => {
            *SESSION.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
            true
        }
        Err(error) => {
            eprintln!("count_waves: {error}");
            false
        }
    }
}

/// The runtime goes down.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {
    let session = SESSION.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Err(error)) = session.map(Session::end) {
        eprintln!("count_waves: {error}");
    }
}

impl Session {
    fn begin(table: *mut HsaApiTable) -> Outcome<Self> {
        let folder = std::env::var_os("WAVESCOPE_GPU_TOPOLOGY").unwrap_or_else(|| Topology::SYSFS.into());
        let topology = Topology::read(folder.as_ref())?;
        // SAFETY: the table that the runtime handed over; nobody else uses it during this call.
        let interceptor = unsafe { Interceptor::install(table, Some(&topology), Options::default()) }?;
        let output = Output::open()?;
        let counting = count(&interceptor, topology.agents(), output.clone())?;
        counting.start()?;
        Ok(Self { interceptor, counting, output })
    }

    fn end(self) -> Outcome {
        let stopped = self.counting.stop(LIMIT);
        let summary = self.counting.summary();
        self.output.line(format_args!("end: {} seen, {} counted", summary.seen, summary.counted));
        self.interceptor.shut_down()?;
        Ok(stopped?)
    }
}

fn count(interceptor: &Arc<Interceptor>, agents: &[Agent], output: Output) -> Outcome<DispatchCounting> {
    let config = |agent: &Agent| {
        let memory: Arc<dyn Memory> = Arc::new(ProgramMemory::new(interceptor.hsa().clone(), agent.id));
        CounterConfig::new(agent, &["SQ_WAVES"], &Builtin, memory, PoolSize::default())
    };
    let configs = agents.iter().map(config).collect::<Result<Vec<_>, _>>()?;
    let choose = move |agent| configs.iter().find(|config| config.agent() == agent).cloned();
    let write = move |counters: DispatchCounters| {
        let waves: f64 = counters.records.iter().map(|record| record.value).sum();
        output.line(format_args!("dispatch {}: {waves} waves", counters.dispatch.id.0));
    };
    let interception: Arc<dyn Interception> = Arc::<Interceptor>::clone(interceptor);
    Ok(DispatchCounting::new(Setup {
        context: ContextId(1),
        agents: agents.iter().map(|agent| agent.id).collect(),
        interception,
        claims: Arc::new(ClaimTable::new()),
        choose: Arc::new(move |dispatch| Choice { config: choose(dispatch.agent), user_data: 0 }),
        delivery: Delivery::Callback(Box::new(write)),
    })?)
}

/// Where lines go: a file, or standard error.
#[derive(Clone)]
struct Output(Option<Arc<File>>);

impl Output {
    fn open() -> std::io::Result<Self> {
        let Ok(path) = std::env::var("WAVESCOPE_OUTPUT") else { return Ok(Self(None)) };
        let path = format!("{path}.{}", std::process::id());
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self(Some(Arc::new(file))))
    }

    fn line(&self, text: std::fmt::Arguments<'_>) {
        let line = format!("{text}\n");
        let written = match &self.0 {
            Some(file) => (&**file).write_all(line.as_bytes()),
            None => std::io::stderr().write_all(line.as_bytes()),
        };
        if let Err(error) = written {
            tracing::error!(%error, "a line is lost");
        }
    }
}
