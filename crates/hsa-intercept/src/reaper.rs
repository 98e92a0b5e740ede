//! The thread that sees dispatches retire.
//!
//! It waits for the retire counters of all queues that are measured and for one **control** signal, never for
//! dispatches, so its cost does not grow with what is in flight. It runs no client code, copies nothing and never
//! blocks on a mailbox: every token owns its message places. It starts with the first subscription.
//!
//! The control signal is 1 while there is no news. Whoever has news (a queue to watch, a queue that failed or is
//! gone, the end) puts it into the inbox and stores 0. The reaper stores 1 *before* it looks, so news that come
//! while it looks wake it again.

use std::sync::Arc;
use std::time::Duration;

use wavescope_core::sync::Mutex;
use wavescope_core::sync::thread::{self, JoinHandle};

use crate::Error;
use crate::device::{Device, Signal, SignalKind, Until, Wait};
use crate::flight::Entry;
use crate::queue::Queue;

/// A wait ends after this even without a reason, as a second line of defence against a lost interrupt.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The reaper as others see it.
pub(crate) struct Reaper {
    device: Arc<dyn Device>,
    inbox: Mutex<Inbox>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Inbox {
    control: Option<Signal>,
    /// All queues that are measured.
    queues: Vec<Arc<Queue>>,
    stop: bool,
}

/// What the thread keeps from round to round.
pub(crate) struct Rounds {
    control: Signal,
    queues: Vec<Arc<Queue>>,
    waits: Vec<Wait>,
    entries: Vec<Entry>,
    carriers: Vec<Signal>,
}

impl Reaper {
    pub(crate) fn new(device: Arc<dyn Device>) -> Self {
        Self { device, inbox: Mutex::new(Inbox::default()), thread: Mutex::new(None) }
    }

    /// Starts the thread unless it runs.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), Error> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let mut rounds = self.prepare()?;
            let reaper = Arc::clone(self);
            let run = move || while reaper.round(&mut rounds) {};
            let spawned = thread::Builder::new().name("wavescope-reap".to_owned()).spawn(run);
            *thread = Some(spawned.map_err(Error::NoThread)?);
        }
        Ok(())
    }

    /// Makes the control signal and the thread's state.
    pub(crate) fn prepare(&self) -> Result<Rounds, Error> {
        let control = self.device.create_signal(1, SignalKind::Interrupt)?;
        self.inbox.lock().control = Some(control);
        let waits = vec![Wait { signal: control, until: Until::Below(1) }];
        Ok(Rounds { control, queues: Vec::new(), waits, entries: Vec::new(), carriers: Vec::new() })
    }

    /// Adds a queue whose signals were just made.
    pub(crate) fn watch(&self, queue: &Arc<Queue>) {
        self.inbox.lock().queues.push(Arc::clone(queue));
        self.wake();
    }

    /// Makes the reaper look at every queue once. Returns whether it will.
    pub(crate) fn wake(&self) -> bool {
        let inbox = self.inbox.lock();
        if let Some(control) = inbox.control {
            self.device.store(control, 0);
        }
        inbox.control.is_some() && !inbox.stop
    }

    /// Does the reaper's work for a destroyed queue after the reaper's end.
    pub(crate) fn release_inline(&self, queue: &Arc<Queue>) {
        // Held by `stop` until the thread has ended.
        let _ended = self.thread.lock();
        queue.reap(&mut Vec::new(), &mut Vec::new());
        queue.release();
    }

    /// Ends the thread after one more look at every queue.
    pub(crate) fn stop(&self) {
        self.inbox.lock().stop = true;
        self.wake();
        let mut running = self.thread.lock();
        let Some(thread) = running.take() else { return };
        if thread.join().is_err() {
            tracing::error!("the reaper panicked");
        }
        if let Some(control) = self.inbox.lock().control.take() {
            self.device.destroy_signal(control);
        }
    }

    /// One wait and one look at every queue. Returns whether there will be another.
    pub(crate) fn round(&self, rounds: &mut Rounds) -> bool {
        self.device.wait_any(&rounds.waits, LONGEST_WAIT);
        if self.device.load(rounds.control) < 1 {
            self.device.store(rounds.control, 1);
        }
        let stop = self.read_inbox(&mut rounds.queues);
        rounds.waits.truncate(1);
        for queue in &rounds.queues {
            // Asked first: a queue that is destroyed meanwhile is looked at once more.
            let destroyed = queue.is_destroyed();
            queue.reap(&mut rounds.entries, &mut rounds.carriers);
            if destroyed {
                queue.release();
            } else if let Some(signals) = queue.signals() {
                let until = Until::Below(queue.flight.lock().seen());
                rounds.waits.push(Wait { signal: signals.counter, until });
            }
        }
        !stop
    }

    /// Copies the list of queues; those that were released in the round before leave it.
    fn read_inbox(&self, queues: &mut Vec<Arc<Queue>>) -> bool {
        let mut inbox = self.inbox.lock();
        inbox.queues.retain(|queue| !(queue.is_destroyed() && queue.signals().is_none()));
        queues.clone_from(&inbox.queues);
        inbox.stop
    }
}

impl std::fmt::Debug for Reaper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reaper").finish_non_exhaustive()
    }
}
