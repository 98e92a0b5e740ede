//! The thread that sees dispatches retire.
//!
//! It waits for one signal, the **bell**, and then looks at the retire counters of all queues that are measured; so its
//! cost does not grow with what is in flight, and one interrupt serves a whole batch. It runs no client code, copies
//! nothing and never blocks on a mailbox: every token owns its message places. It starts with the first subscription.
//!
//! While dispatches retire all the time the thread rests on its own clock between looks, see [`Pace`].
//!
//! The bell falls by 1 when a packet behind the end of a run or a batch completes, and when somebody has news (a queue to
//! watch, a queue that failed or is gone, the end), after they were put where the reaper looks. The reaper reads
//! the bell *before* it looks, so what comes while it looks wakes it again.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use wavescope_core::sync::atomic::{AtomicI64, Ordering};
use wavescope_core::sync::thread::JoinHandle;
use wavescope_core::sync::{Condvar, Deadline, Mutex};
use wavescope_core::{DispatchId, InterceptionError};

use crate::Error;
use crate::device::{Device, Signal, SignalKind};
use crate::fault::{self, Fault};
use crate::flight::COUNTER_START;
use crate::pace::Pace;
use crate::queue::{Landing, Queue};
use crate::subscribers::Subscriber;
use crate::thread_mark::{InsideHook, InsideLook};
use crate::threads::{self, Life, News};
use crate::transition::Transition;

/// Of its thread.
const NAME: &str = "wavescope-reap";

/// A wait ends after this even without a reason: nothing rings when a queue begins to wait for another, and it is a
/// second line of defence against a lost interrupt.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// How long a run may keep ready ones waiting, unless something else is set.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two looks while something is out that nothing announces.
const SHORTEST_TICK: Duration = Duration::from_millis(1);

/// The same while such things may come at any time.
const LONGEST_TICK: Duration = Duration::from_millis(20);

/// The reaper as others see it.
pub(crate) struct Reaper {
    device: Arc<dyn Device>,
    inbox: Mutex<Inbox>,
    /// Times that the bell was rung, or will be by a packet that was emitted.
    rings: AtomicI64,
    /// How long a run may keep ready ones waiting.
    patience: Mutex<Duration>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held while somebody looks: mostly the thread.
    landing: Mutex<Landing>,
    life: Life,
    /// For the thread while it pauses.
    news: News,
    /// The bell was let go, or somebody took it.
    bell_moved: Condvar,
}

/// A look at all counters when a limit has passed. One is enough for everything that is waited for together.
#[derive(Debug, Default)]
pub(crate) struct LastLook(Cell<bool>);

impl LastLook {
    /// Looks, the first time. Whether there was a look.
    pub(crate) fn take(&self, reaper: &Reaper) -> bool {
        // Inside a hook of a queue nobody may be told of it.
        if InsideHook::is_current() {
            return false;
        }
        if !self.0.replace(true) {
            reaper.look();
        }
        true
    }
}

#[derive(Default)]
struct Inbox {
    bell: Option<Signal>,
    /// The thread was made: there is a bell for whoever asks.
    runs: bool,
    /// How many took the bell for a queue that is not listed yet.
    handed: usize,
    /// How many say that nobody may need the bell for a long time: it goes as soon as no queue is measured.
    letting_go: usize,
    /// All queues that are measured.
    queues: Vec<Arc<Queue>>,
    /// Marks that queues have yet to reach.
    marks: Vec<Arc<Transition>>,
    stop: bool,
    /// Somebody traces kernels: some may be out at any time, and nothing announces them.
    tracing: bool,
}

/// What the thread keeps from round to round.
pub(crate) struct Rounds {
    /// `None` after it was let go, until it is needed again.
    bell: Option<Signal>,
    /// The bell's value when it was last read.
    heard: i64,
    limit: Duration,
    tick: Duration,
    pace: Pace,
}

/// What a look found.
struct Seen {
    /// Something is out that nothing announces.
    unannounced: bool,
    /// Something retired.
    landed: bool,
    queues: Vec<Arc<Queue>>,
}

impl Reaper {
    pub(crate) fn new(device: Arc<dyn Device>) -> Self {
        Self {
            device,
            inbox: Mutex::new(Inbox::default()),
            rings: AtomicI64::new(0),
            patience: Mutex::new(PATIENCE),
            thread: Mutex::new(None),
            landing: Mutex::new(Landing::default()),
            life: Life::new(),
            news: News::new(),
            bell_moved: Condvar::new(),
        }
    }

    /// Starts the thread unless it runs.
    ///
    /// # Errors
    /// What is missing; [`InterceptionError::ShutDown`] once it was stopped.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), Error> {
        let mut thread = self.thread.lock();
        if self.inbox.lock().stop {
            return Err(InterceptionError::ShutDown.into());
        }
        if thread.is_none() {
            let mut rounds = self.prepare()?;
            let reaper = Arc::clone(self);
            let run = move || reaper.run(&mut rounds);
            *thread = Some(threads::create(NAME, run)?);
        }
        Ok(())
    }

    /// Makes the bell and the thread's state.
    fn prepare(&self) -> Result<Rounds, Error> {
        let bell = Some(self.device.create_signal(COUNTER_START, SignalKind::Interrupt)?);
        let mut inbox = self.inbox.lock();
        (inbox.bell, inbox.runs) = (bell, true);
        Ok(Rounds { bell, heard: COUNTER_START, limit: LONGEST_WAIT, tick: SHORTEST_TICK, pace: Pace::new() })
    }

    /// The thread.
    fn run(&self, rounds: &mut Rounds) {
        threads::rest_exactly();
        // Stopped before it began: the runtime may be gone, so nothing of it is touched.
        let (stop, bell) = {
            let inbox = self.inbox.lock();
            if !inbox.stop || fault::is(Fault::ReaperBegunToEnd) {
                self.life.begin();
            }
            (inbox.stop, inbox.bell)
        };
        rounds.bell = bell;
        if !stop {
            while self.round(rounds) {}
        }
        self.life.end();
    }

    /// The bell, for packets of a queue that is [watched](Self::watch) next, or else the bell is [put back](Self::put_back).
    pub(crate) fn take_bell(&self) -> Option<Signal> {
        let mut inbox = self.inbox.lock();
        if inbox.bell.is_none() && inbox.runs && !inbox.stop {
            inbox.bell = self.device.create_signal(COUNTER_START, SignalKind::Interrupt).ok();
            self.rings.store(0, Ordering::Relaxed);
        }
        inbox.handed += usize::from(inbox.bell.is_some());
        if !fault::is(Fault::BellHandedUnheard) {
            self.bell_moved.notify_all();
        }
        inbox.bell
    }

    /// The bell was taken, but no packet will ring it.
    pub(crate) fn put_back(&self) {
        self.inbox.lock().handed -= 1;
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
        {
            let mut inbox = self.inbox.lock();
            inbox.queues.push(Arc::clone(queue));
            inbox.handed -= 1;
        }
        self.wake();
    }

    /// Makes the reaper look at every queue once. Returns whether it will.
    pub(crate) fn wake(&self) -> bool {
        self.news.bring();
        let inbox = self.inbox.lock();
        if let Some(bell) = inbox.bell {
            self.expect_rings(1);
            self.device.subtract(bell, 1);
        }
        inbox.runs && !inbox.stop
    }

    /// Says whether kernels are traced. From the first on the reaper looks now and then without a reason.
    pub(crate) fn set_tracing(&self, tracing: bool) {
        let before = std::mem::replace(&mut self.inbox.lock().tracing, tracing);
        if tracing && !before {
            self.wake();
        }
    }

    /// Waits for `done` in slices while the thread cannot begin, and does its work meanwhile. Returns at once if it can.
    pub(crate) fn stand_in(&self, deadline: Deadline, done: impl Fn(Deadline) -> bool) {
        while !self.life.has_begun() && !deadline.is_over() && !InsideHook::is_current() {
            self.look();
            if done(Deadline::after(SHORTEST_TICK.min(deadline.left()))) {
                return;
            }
        }
    }

    /// Does the reaper's work for a destroyed queue after the reaper's end.
    pub(crate) fn release_inline(&self, queue: &Arc<Queue>) {
        // Held by `stop` until the thread has ended. If it did not, the queue stays as it is.
        let thread = self.thread.lock();
        if thread.is_some() {
            return;
        }
        queue.reap(&mut self.landing.lock());
        queue.release();
    }

    /// Frees what destroyed queues held and, if no queue is measured, the bell: the runtime may end, and takes no calls then.
    /// The next queue that is measured gets a new bell.
    pub(crate) fn let_go(&self, deadline: Deadline) {
        self.inbox.lock().letting_go += 1;
        self.wake();
        let nobody_waits = || !self.life.is_running() || fault::is(Fault::BellDroppedBesideReaper);
        if nobody_waits() {
            self.look();
            self.drop_bell(nobody_waits);
        }
        let mut inbox = self.inbox.lock();
        while inbox.bell.is_some() && inbox.is_idle() && !deadline.is_over() {
            inbox = self.bell_moved.wait_timeout(inbox, deadline.left()).0;
        }
        inbox.letting_go -= if fault::is(Fault::FarewellEndsOthers) { inbox.letting_go } else { 1 };
    }

    /// Destroys the bell if that was asked for and no queue is measured. Returns whether it did. Called by whoever waits for
    /// the bell.
    fn drop_bell(&self, nobody_waits: impl FnOnce() -> bool) -> bool {
        let mut inbox = self.inbox.lock();
        inbox.sweep();
        let is_handed = inbox.handed > 0 && !fault::is(Fault::BellDroppedWhileHanded);
        if inbox.letting_go == 0 || is_handed || !inbox.queues.is_empty() || !nobody_waits() {
            return false;
        }
        let bell = inbox.bell.take();
        // No packet names it: the queues that did are destroyed. Host threads ring under the lock, and who waits for its end
        // finds it gone.
        bell.inspect(|bell| self.device.destroy_signal(*bell));
        self.bell_moved.notify_all();
        bell.is_some()
    }

    /// Ends the thread after one more look at every queue. It is not started again.
    ///
    /// # Errors
    /// [`Error::ThreadBusy`] if it does not end in time: it goes on until it can.
    pub(crate) fn stop(&self, deadline: Deadline) -> Result<(), Error> {
        let mut running = self.thread.lock();
        self.inbox.lock().stop = true;
        self.wake();
        if running.is_none() {
            return Ok(());
        }
        if !self.life.wait_for_end(NAME, deadline)? {
            // The bell is its own.
            *running = None;
            return Ok(());
        }
        // It has left its loop: nothing to wait for.
        let _ = running.take().map(JoinHandle::join);
        self.end_bell();
        Ok(())
    }

    /// Destroys the bell behind the thread's end, unless a packet may still ring it.
    fn end_bell(&self) {
        let mut inbox = self.inbox.lock();
        let Some(bell) = inbox.bell.take() else { return };
        let rung = COUNTER_START - self.device.load(bell);
        let is_silent = rung == self.rings.load(Ordering::Relaxed);
        if is_silent {
            self.device.destroy_signal(bell);
        }
        drop(inbox);
        if !fault::is(Fault::BellEndedUnheard) {
            self.bell_moved.notify_all();
        }
        if !is_silent {
            tracing::debug!("a packet may still ring the bell: the signal is kept for good");
        }
    }

    /// One wait and one look at every queue. Returns whether there will be another.
    fn round(&self, rounds: &mut Rounds) -> bool {
        // In a model time does not pass: there the bell is all there is.
        let rest = rounds.pace.rest().filter(|_| cfg!(not(loom)));
        match (rounds.bell, rest) {
            (Some(_), Some(rest)) => self.news.rest(rest.min(rounds.limit)),
            (Some(bell), None) => self.device.wait_below(bell, rounds.heard, rounds.limit),
            (None, _) => {
                self.news.rest(rounds.limit);
                (rounds.bell, rounds.heard) = (self.inbox.lock().bell, COUNTER_START);
            }
        }
        let mut again = false;
        self.device.inside(&mut || again = self.look_around(rounds));
        again
    }

    /// What the thread does between two waits. It may call the runtime with locks held: it waited for it before.
    fn look_around(&self, rounds: &mut Rounds) -> bool {
        rounds.heard = rounds.bell.map_or(COUNTER_START, |bell| self.device.load(bell));
        // Asked first: what comes while it looks is looked at once more.
        let stop = self.inbox.lock().stop;
        let seen = self.look();
        let limit = self.give_up_late_marks().min(self.overrun_late(&seen.queues));
        rounds.limit = limit.min(self.next_tick(&mut rounds.tick, seen.unannounced));
        if !stop && self.drop_bell(|| true) {
            rounds.bell = None;
        }
        rounds.pace.looked(seen.landed, seen.queues.iter().any(|queue| queue.agent.somebody_waits()));
        !stop
    }

    /// Whether everything of `subscriber` up to dispatch `last` was published.
    pub(crate) fn has_settled(&self, subscriber: &Subscriber, last: DispatchId) -> bool {
        let queues = self.inbox.lock().queues.clone();
        queues.iter().all(|queue| queue.flight.lock().has_settled(subscriber, last))
    }

    /// Has the thread look at once, or looks where it cannot begin.
    pub(crate) fn look_soon(&self) {
        if self.life.has_begun() {
            self.wake();
        } else {
            self.look();
        }
    }

    /// One look at every queue: tells of what retired, and frees what was destroyed.
    fn look(&self) -> Seen {
        // A subscriber that is being told of something asks for more: it is told when it returned.
        let Some(_inside) = InsideLook::enter() else {
            return Seen { unannounced: true, landed: false, queues: Vec::new() };
        };
        let mut landing = self.landing.lock();
        let (queues, before) = (self.read_inbox(), landing.count);
        let mut unannounced = false;
        for queue in &queues {
            // Asked first: a queue that is destroyed meanwhile is looked at once more.
            let destroyed = queue.is_destroyed();
            unannounced |= reap(queue, &mut landing);
            if destroyed {
                queue.release();
            }
        }
        Seen { unannounced, landed: landing.count != before, queues }
    }

    /// When to look next without a reason.
    fn next_tick(&self, tick: &mut Duration, unannounced: bool) -> Duration {
        if unannounced {
            *tick = SHORTEST_TICK;
            return *tick;
        }
        *tick = (*tick * 2).min(LONGEST_TICK);
        if self.inbox.lock().tracing { *tick } else { LONGEST_WAIT }
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

    /// Gives up waiting for marks whose time is over. Returns how long to wait for the next.
    fn give_up_late_marks(&self) -> Duration {
        let patience = *self.patience.lock();
        let mut inbox = self.inbox.lock();
        inbox.marks.retain(|mark| !mark.is_over());
        let late: Vec<_> = inbox.marks.extract_if(.., |mark| mark.left(patience).is_zero()).collect();
        let next = inbox.marks.iter().map(|mark| mark.left(patience)).min();
        drop(inbox);
        if !late.is_empty() {
            tracing::warn!(
                queues = late.len(),
                "kernels from before may overlap with those that are measured"
            );
        }
        late.iter().for_each(|mark| mark.give_up());
        next.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT)
    }

    /// The list of queues; those that were released in the look before leave it.
    fn read_inbox(&self) -> Vec<Arc<Queue>> {
        let mut inbox = self.inbox.lock();
        inbox.sweep();
        inbox.queues.clone()
    }
}

impl Inbox {
    /// Takes queues off the list that were released.
    fn sweep(&mut self) {
        self.queues.retain(|queue| !(queue.is_destroyed() && queue.signals().is_none()));
    }

    /// Whether no packet names the bell: every queue that was measured is gone, released or about to be.
    fn is_idle(&self) -> bool {
        self.handed == 0 && self.queues.iter().all(|queue| queue.is_destroyed())
    }
}

/// Looks at one queue. If something of ours breaks, that queue is given up and the others go on.
fn reap(queue: &Arc<Queue>, landing: &mut Landing) -> bool {
    if cfg!(loom) {
        // A model's assertions must fail it.
        return queue.reap(landing);
    }
    catch_unwind(AssertUnwindSafe(|| queue.reap(landing))).unwrap_or_else(|_| {
        if !queue.is_given_up() {
            tracing::error!(%queue.id, "interception gives up a queue: its reaper panicked");
        }
        queue.give_up();
        *landing = Landing::default();
        true
    })
}

impl std::fmt::Debug for Reaper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reaper").finish_non_exhaustive()
    }
}
