//! The thread that sees dispatches retire.
//!
//! It waits for one signal, the **bell**, and then looks at the retire counters of all queues that are measured; so its
//! cost does not grow with what is in flight, and one interrupt serves a whole batch. It runs no client code, copies
//! nothing and never blocks on a mailbox: every token owns its message places. It starts with the first subscription.
//!
//! The bell falls by 1 when a packet behind the end of a run or a batch completes, and when somebody has news (a queue to
//! watch, a queue that failed or is gone, the end), after they were put where the reaper looks. The reaper reads
//! the bell *before* it looks, so what comes while it looks wakes it again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wavescope_core::sync::Mutex;
use wavescope_core::sync::atomic::{AtomicI64, Ordering};
use wavescope_core::sync::thread::{self, JoinHandle};

use crate::Error;
use crate::device::{Device, Signal, SignalKind};
use crate::flight::{COUNTER_START, Entry};
use crate::queue::Queue;
use crate::transition::Transition;

/// A wait ends after this even without a reason: nothing rings when a queue begins to wait for another, and it is a
/// second line of defence against a lost interrupt.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// How long a run may keep ready ones waiting, unless something else is set.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reaper as others see it.
pub(crate) struct Reaper {
    device: Arc<dyn Device>,
    inbox: Mutex<Inbox>,
    /// Times that the bell was rung, or will be by a packet that was emitted.
    rings: AtomicI64,
    /// How long a run may keep ready ones waiting.
    patience: Mutex<Duration>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Inbox {
    bell: Option<Signal>,
    /// All queues that are measured.
    queues: Vec<Arc<Queue>>,
    /// Marks that queues have yet to reach.
    marks: Vec<Arc<Transition>>,
    stop: bool,
}

/// What the thread keeps from round to round.
pub(crate) struct Rounds {
    bell: Signal,
    /// The bell's value when it was last read.
    heard: i64,
    limit: Duration,
    queues: Vec<Arc<Queue>>,
    entries: Vec<Entry>,
    carriers: Vec<Signal>,
}

impl Reaper {
    pub(crate) fn new(device: Arc<dyn Device>) -> Self {
        let (inbox, thread) = (Mutex::new(Inbox::default()), Mutex::new(None));
        Self { device, inbox, rings: AtomicI64::new(0), patience: Mutex::new(PATIENCE), thread }
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

    /// Makes the bell and the thread's state.
    fn prepare(&self) -> Result<Rounds, Error> {
        let bell = self.device.create_signal(COUNTER_START, SignalKind::Interrupt)?;
        self.inbox.lock().bell = Some(bell);
        let (queues, entries, carriers) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Rounds { bell, heard: COUNTER_START, limit: LONGEST_WAIT, queues, entries, carriers })
    }

    /// The bell, for packets that ring it.
    pub(crate) fn bell(&self) -> Option<Signal> {
        self.inbox.lock().bell
    }

    /// `count` packets that ring the bell are about to be handed to a queue.
    pub(crate) fn expect_rings(&self, count: usize) {
        self.rings.fetch_add(count as i64, Ordering::Relaxed);
    }

    /// Gives up on a mark when its time is over.
    pub(crate) fn hurry(&self, transition: Arc<Transition>) {
        self.inbox.lock().marks.push(transition);
        self.wake();
    }

    /// Adds a queue whose signals were just made.
    pub(crate) fn watch(&self, queue: &Arc<Queue>) {
        self.inbox.lock().queues.push(Arc::clone(queue));
        self.wake();
    }

    /// Makes the reaper look at every queue once. Returns whether it will.
    pub(crate) fn wake(&self) -> bool {
        let inbox = self.inbox.lock();
        if let Some(bell) = inbox.bell {
            self.expect_rings(1);
            self.device.subtract(bell, 1);
        }
        inbox.bell.is_some() && !inbox.stop
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
        let Some(bell) = self.inbox.lock().bell.take() else { return };
        let rung = COUNTER_START - self.device.load(bell);
        if rung == self.rings.load(Ordering::Relaxed) {
            self.device.destroy_signal(bell);
        } else {
            tracing::debug!("a packet may still ring the bell: the signal is kept for good");
        }
    }

    /// One wait and one look at every queue. Returns whether there will be another.
    fn round(&self, rounds: &mut Rounds) -> bool {
        self.device.wait_below(rounds.bell, rounds.heard, rounds.limit);
        rounds.heard = self.device.load(rounds.bell);
        let stop = self.read_inbox(&mut rounds.queues);
        for queue in &rounds.queues {
            // Asked first: a queue that is destroyed meanwhile is looked at once more.
            let destroyed = queue.is_destroyed();
            queue.reap(&mut rounds.entries, &mut rounds.carriers);
            if destroyed {
                queue.release();
            }
        }
        rounds.limit = self.end_late_marks().min(self.overrun_late(&rounds.queues));
        !stop
    }

    /// Overruns what keeps others waiting. Returns how long to wait until the next look.
    fn overrun_late(&self, queues: &[Arc<Queue>]) -> Duration {
        let patience = *self.patience.lock();
        let looks = queues.iter().filter_map(|queue| queue.agent.watch(patience));
        looks.min().unwrap_or(LONGEST_WAIT)
    }

    pub(crate) fn set_patience(&self, patience: Duration) {
        *self.patience.lock() = patience;
    }

    /// Ends marks whose time is over. Returns how long to wait for the next.
    fn end_late_marks(&self) -> Duration {
        let mut inbox = self.inbox.lock();
        inbox.marks.retain(|mark| !mark.is_over());
        let Some(next) = inbox.marks.iter().map(|mark| mark.deadline).min() else { return LONGEST_WAIT };
        let now = Instant::now();
        if now < next {
            return next - now;
        }
        let late: Vec<_> = inbox.marks.extract_if(.., |mark| mark.deadline <= now).collect();
        drop(inbox);
        tracing::warn!(queues = late.len(), "kernels from before may overlap with those that are measured");
        late.iter().for_each(|mark| mark.end());
        Duration::ZERO
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
