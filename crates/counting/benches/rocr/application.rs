//! The application in C: built by the host's compiler, loaded, and called with the runtime's entries as they are.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hsa_sys::{HsaApiTable, hsa_amd_queue_intercept_handler, hsa_queue_t, hsa_signal_t, pfn};
use libloading::Library;
use wavescope_core::AqlPacket;

/// Completion signal of packets that count down the signal of their batch.
pub(crate) const OF_THE_BATCH: u64 = 1;
/// Batches on their way at a time, as in the source.
pub(crate) const DEPTH: usize = 3;

#[repr(C)]
pub(crate) struct Entries {
    add_write_index: pfn::hsa_queue_add_write_index_scacq_screl,
    load_read_index: pfn::hsa_queue_load_read_index_scacquire,
    store: pfn::hsa_signal_store_screlease,
    wait: pfn::hsa_signal_wait_scacquire,
}

#[repr(C)]
struct RawBatch {
    packets: *const AqlPacket,
    count: u64,
    completions: i64,
}

type Run = unsafe extern "C" fn(
    *const Entries,
    *mut hsa_queue_t,
    *const RawBatch,
    u64,
    *const hsa_signal_t,
    u64,
) -> i64;

/// The loaded library.
pub(crate) struct Application {
    run: Run,
    pass_on: hsa_amd_queue_intercept_handler,
}

/// Builds the library.
pub(crate) fn build() -> Result<PathBuf, Box<dyn Error>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/rocr/application.c");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rocr-application.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]);
    let status = compiler.arg(&library).arg(source).status()?;
    if status.success() { Ok(library) } else { Err(format!("cc: {status}").into()) }
}

impl Application {
    pub(crate) fn load(library: &Path) -> Result<Self, Box<dyn Error>> {
        // SAFETY: the library built above has no initialisers.
        let library = unsafe { Library::new(library) }?;
        // SAFETY: the type is that of the source.
        let run = *unsafe { library.get::<Run>(b"run") }?;
        // SAFETY: likewise.
        let pass_on = *unsafe { library.get::<hsa_amd_queue_intercept_handler>(b"pass_on") }?;
        // The runtime may call the hook until the end.
        std::mem::forget(library);
        Ok(Self { run, pass_on })
    }

    /// A hook for intercept queues that writes what it gets.
    pub(crate) fn pass_on(&self) -> hsa_amd_queue_intercept_handler {
        self.pass_on
    }

    /// Submits `packets` as a batch, `times` times, each batch with one of the signals.
    ///
    /// # Safety
    /// Everything that `packets` names is there until the last completed.
    pub(crate) unsafe fn run(
        &self,
        entries: &Entries,
        queue: *mut hsa_queue_t,
        packets: &[AqlPacket],
        times: u64,
        signals: [hsa_signal_t; DEPTH],
    ) -> Result<(), Box<dyn Error>> {
        let completions = packets.iter().filter(|packet| packet.completion_signal() == OF_THE_BATCH).count();
        let batch = RawBatch {
            packets: packets.as_ptr(),
            count: packets.len() as u64,
            completions: completions as i64,
        };
        let limit = Duration::from_secs(60).as_nanos() as u64;
        // SAFETY: the queue and signals are the caller's, the batch outlives the call, and it ends when all completed.
        let missing = unsafe { (self.run)(entries, queue, &raw const batch, times, signals.as_ptr(), limit) };
        if missing == 0 { Ok(()) } else { Err(format!("{missing} batches did not complete").into()) }
    }
}

impl Entries {
    /// The entries at this moment.
    ///
    /// # Safety
    /// A runtime's table.
    pub(crate) unsafe fn of(table: *const HsaApiTable) -> Result<Self, Box<dyn Error>> {
        // SAFETY: by this function's contract.
        let core = unsafe { (*table).core_ };
        // SAFETY: likewise.
        let core = unsafe { &*core };
        Ok(Self {
            add_write_index: core.hsa_queue_add_write_index_scacq_screl_fn.ok_or("no write index")?,
            load_read_index: core.hsa_queue_load_read_index_scacquire_fn.ok_or("no read index")?,
            store: core.hsa_signal_store_screlease_fn.ok_or("no store")?,
            wait: core.hsa_signal_wait_scacquire_fn.ok_or("no wait")?,
        })
    }
}
