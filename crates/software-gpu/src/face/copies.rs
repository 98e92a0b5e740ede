//! Asynchronous copies: one engine that does each copy once the signals it depends on are zero.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use super::clock::Clock;
use super::signal::Signal;

/// How long the engine sleeps between looks while copies wait for signals.
const POLL: Duration = Duration::from_micros(100);

/// One copy.
pub(super) struct Copy {
    pub(super) destination: u64,
    pub(super) source: u64,
    pub(super) bytes: usize,
    /// Wait for all of these to be zero.
    pub(super) dependencies: Vec<&'static Signal>,
    /// Decremented at the end, with the times of the copy.
    pub(super) completion: Option<&'static Signal>,
}

/// The engine. Its thread starts with the first copy.
pub(super) struct Copies {
    shared: Arc<Shared>,
    worker: Mutex<Option<(Thread, JoinHandle<()>)>>,
}

struct Shared {
    clock: Arc<Clock>,
    waiting: Mutex<Vec<Copy>>,
    stop: AtomicBool,
}

impl Copies {
    pub(super) fn new(clock: Arc<Clock>) -> Self {
        let shared = Shared { clock, waiting: Mutex::default(), stop: AtomicBool::new(false) };
        Self { shared: Arc::new(shared), worker: Mutex::default() }
    }

    /// Takes a copy. Returns false if no thread could be started.
    ///
    /// # Safety
    /// Source and destination are valid for `bytes` bytes until the copy has completed, and nobody else writes them.
    pub(super) unsafe fn submit(&self, copy: Copy) -> bool {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if worker.is_none() {
            let shared = Arc::clone(&self.shared);
            let spawned = thread::Builder::new().name("hsa-copies".to_owned()).spawn(move || engine(&shared));
            let Ok(join) = spawned else { return false };
            *worker = Some((join.thread().clone(), join));
        }
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(copy);
        if let Some((thread, _)) = &*worker {
            thread.unpark();
        }
        true
    }

    /// Stops the engine. Copies whose signals never came are dropped.
    pub(super) fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((thread, join)) = worker else { return };
        thread.unpark();
        if join.join().is_err() {
            tracing::error!("the copy engine panicked");
        }
    }
}

fn engine(shared: &Shared) {
    while !shared.stop.load(Ordering::Acquire) {
        let mut waiting = shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let ready = waiting.iter().position(Copy::is_ready);
        let copy = ready.map(|place| waiting.remove(place));
        let idle = waiting.is_empty();
        drop(waiting);
        match copy {
            Some(copy) => copy.perform(&shared.clock),
            None if idle => thread::park(),
            None => thread::park_timeout(POLL),
        }
    }
}

impl Copy {
    fn is_ready(&self) -> bool {
        self.dependencies.iter().all(|signal| signal.value().load(Ordering::Acquire) == 0)
    }

    fn perform(&self, clock: &Clock) {
        let start = clock.ticks();
        let destination = std::ptr::with_exposed_provenance_mut::<u8>(self.destination as usize);
        let source = std::ptr::with_exposed_provenance::<u8>(self.source as usize);
        // SAFETY: `submit` was promised that both ranges are valid and ours until completion; they may overlap.
        unsafe { std::ptr::copy(source, destination, self.bytes) };
        let Some(signal) = self.completion else { return };
        let event = signal.event();
        signal.set_times(start, clock.ticks());
        signal.value().fetch_sub(1, Ordering::AcqRel);
        // The signal may be destroyed by now; its event slot is never.
        if let Some(event) = event {
            event.raise();
        }
    }
}
