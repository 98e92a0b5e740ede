//! The asynchronous event thread: runs handlers when signals meet their conditions.
//!
//! One thread for the process, as in ROCr: handlers run one after the other, and a handler that blocks holds up all
//! of them. The thread enters the event slot of each signal it watches once and then only looks at values; each wake
//! looks at every watched signal.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use super::event_slots::Entered;
use super::wait::Condition;

/// How long the thread sleeps between looks while it watches a signal without an event.
const POLL: Duration = Duration::from_micros(500);

/// A handler of the application or a tool: returns true to go on watching.
pub(super) type CHandler = unsafe extern "C-unwind" fn(value: i64, data: *mut c_void) -> bool;

/// What runs when a condition is met.
pub(super) enum Handler {
    /// Registered through the API.
    C {
        /// The function.
        function: CHandler,
        /// Its argument.
        data: *mut c_void,
    },
    /// The runtime's own.
    Internal(Box<dyn FnMut(i64) -> bool + Send>),
}

// SAFETY: the data pointer is only passed back to the function it was registered with; HSA requires handlers to be
// callable from the runtime's thread.
unsafe impl Send for Handler {}

/// Runs once on the event thread (`hsa_amd_async_function`, queue error callbacks).
pub(super) type Job = Box<dyn FnOnce() + Send>;

struct Watch {
    condition: Condition,
    generation: u64,
    handler: Handler,
    entered: Option<Entered>,
}

#[derive(Default)]
struct Incoming {
    watches: Vec<Watch>,
    jobs: VecDeque<Job>,
    thread: Option<Worker>,
}

struct Worker {
    unpark: Thread,
    join: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    incoming: Mutex<Incoming>,
    stop: AtomicBool,
    /// Rounds the thread has completed, for [`AsyncEvents::quiesce`].
    round: Mutex<u64>,
    round_done: Condvar,
}

/// The thread and its mailbox. The thread starts with the first handler.
#[derive(Default)]
pub(super) struct AsyncEvents {
    shared: Arc<Shared>,
}

impl AsyncEvents {
    /// Watches a signal. Returns false if no thread could be started.
    pub(super) fn watch(&self, condition: Condition, handler: Handler) -> bool {
        let generation = condition.signal.generation();
        let watch = Watch { condition, generation, handler, entered: None };
        self.send(|incoming| incoming.watches.push(watch))
    }

    /// Runs `job` on the thread. Returns false if no thread could be started.
    pub(super) fn run(&self, job: Job) -> bool {
        self.send(|incoming| incoming.jobs.push_back(job))
    }

    /// Returns when the thread has finished whatever it was running, and has seen every signal destroyed and every
    /// flag changed before the call. Called on the thread itself it returns at once.
    pub(super) fn quiesce(&self) {
        let Some(unpark) = self.worker() else { return };
        if unpark.id() == thread::current().id() {
            return;
        }
        let mut round = self.shared.round.lock().unwrap_or_else(PoisonError::into_inner);
        // The round under way may have looked before the change; the one after it cannot.
        let target = *round + 2;
        while *round < target && !self.shared.stop.load(Ordering::Acquire) {
            unpark.unpark();
            round = self.shared.round_done.wait(round).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Stops the thread; handlers that have not run are dropped.
    pub(super) fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        let worker = self.incoming().thread.take();
        let Some(Worker { unpark, join: Some(join) }) = worker else { return };
        unpark.unpark();
        if unpark.id() != thread::current().id() && join.join().is_err() {
            tracing::error!("a signal handler panicked and took the event thread with it");
        }
    }

    fn worker(&self) -> Option<Thread> {
        self.incoming().thread.as_ref().map(|worker| worker.unpark.clone())
    }

    fn incoming(&self) -> MutexGuard<'_, Incoming> {
        self.shared.incoming()
    }

    fn send(&self, put: impl FnOnce(&mut Incoming)) -> bool {
        let mut incoming = self.incoming();
        if incoming.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let spawned =
                thread::Builder::new().name("hsa-events".to_owned()).spawn(move || event_loop(&shared));
            let Ok(join) = spawned else { return false };
            incoming.thread = Some(Worker { unpark: join.thread().clone(), join: Some(join) });
        }
        put(&mut incoming);
        if let Some(worker) = &incoming.thread {
            worker.unpark.unpark();
        }
        true
    }
}

impl Shared {
    fn incoming(&self) -> MutexGuard<'_, Incoming> {
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn event_loop(shared: &Shared) {
    let mut watches: Vec<Watch> = Vec::new();
    while !shared.stop.load(Ordering::Acquire) {
        let jobs = take_incoming(shared, &mut watches);
        let busy = !jobs.is_empty();
        jobs.into_iter().for_each(|job| job());
        let fired = round(&mut watches);
        *shared.round.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        shared.round_done.notify_all();
        if !fired && !busy {
            sleep(&watches);
        }
    }
    shared.round_done.notify_all();
}

fn take_incoming(shared: &Shared, watches: &mut Vec<Watch>) -> VecDeque<Job> {
    let mut incoming = shared.incoming();
    watches.append(&mut incoming.watches);
    std::mem::take(&mut incoming.jobs)
}

/// Looks at every signal once and runs what is due. Returns whether anything ran.
fn round(watches: &mut Vec<Watch>) -> bool {
    let mut fired = false;
    watches.retain_mut(|watch| {
        watch.enter();
        if !watch.is_current() {
            return false;
        }
        let Some(value) = watch.condition.met() else { return true };
        fired = true;
        watch.handler.call(value)
    });
    fired
}

fn sleep(watches: &[Watch]) {
    if watches.iter().all(|watch| watch.entered.is_some()) {
        thread::park();
    } else {
        thread::park_timeout(POLL);
    }
}

impl Watch {
    /// Enters the signal's event slot, before the first look at its value.
    fn enter(&mut self) {
        if self.entered.is_none() {
            self.entered = self.condition.signal.event().map(super::event_slots::EventId::enter);
        }
    }

    /// False once the signal was destroyed, even if its memory is another signal by now.
    fn is_current(&self) -> bool {
        self.condition.signal.is_alive() && self.condition.signal.generation() == self.generation
    }
}

impl Handler {
    fn call(&mut self, value: i64) -> bool {
        match self {
            // SAFETY: whoever registered the function promised that it may be called with this data from this
            // thread until it returns false (hsa_amd_signal_async_handler).
            Self::C { function, data } => unsafe { function(value, *data) },
            Self::Internal(handler) => handler(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use hsa_sys::{HSA_SIGNAL_CONDITION_EQ, HSA_SIGNAL_CONDITION_LT};

    use super::*;
    use crate::face::signal::{Signal, Wake};

    const SOON: Duration = Duration::from_secs(20);

    fn below(signal: &'static Signal, compare: i64) -> Condition {
        Condition { signal, condition: HSA_SIGNAL_CONDITION_LT, compare }
    }

    #[test]
    fn handler_runs_until_it_declines() {
        let events = AsyncEvents::default();
        let signal = Signal::create(1, Wake::Interrupt);
        let (seen, values) = mpsc::channel();
        let handler = Handler::Internal(Box::new(move |value| {
            seen.send(value).unwrap();
            signal.value().store(10, Ordering::Release);
            value != -5
        }));
        events.watch(below(signal, 1), handler);
        for value in [0, -1, -5, -9] {
            signal.value().store(value, Ordering::Release);
            signal.notify();
            let expected = if value == -9 { Err(()) } else { Ok(value) };
            let wait = if value == -9 { Duration::from_millis(20) } else { SOON };
            assert_eq!(values.recv_timeout(wait).map_err(drop), expected);
            events.quiesce();
        }
        events.stop();
        signal.destroy();
    }

    #[test]
    fn destroyed_signal_is_watched_no_more() {
        let events = AsyncEvents::default();
        let signal = Signal::create(1, Wake::Interrupt);
        let (seen, values) = mpsc::channel();
        let condition = Condition { signal, condition: HSA_SIGNAL_CONDITION_EQ, compare: 0 };
        events.watch(condition, Handler::Internal(Box::new(move |value| seen.send(value).is_ok())));
        signal.destroy();
        events.quiesce();
        assert!(values.recv_timeout(SOON).is_err(), "the handler was dropped, and its sender with it");
        events.stop();
    }

    #[test]
    fn jobs_run_on_the_event_thread() {
        let events = AsyncEvents::default();
        let (seen, ids) = mpsc::channel();
        assert!(events.run(Box::new(move || seen.send(thread::current().id()).unwrap())));
        assert_eq!(ids.recv_timeout(SOON).ok(), events.worker().map(|worker| worker.id()));
        events.stop();
    }
}
