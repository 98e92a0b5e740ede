//! The thread of the fronts: goes on where a hardware ring was full, and hears doorbells that a device rang.
//!
//! A store through the table reaches the front at once and leaves the doorbell's signal alone. A device, or an application
//! that writes the signal itself, changes its value, and nothing can be waited for that covers many signals (see
//! [`Device::wait_below`]). So the worker dozes, and looks at all doorbells now and then: after a millisecond while devices
//! ring, and at ever longer intervals while none does. Whoever wakes it is a thread of this process, so it needs no signal of
//! the runtime, whose blocked wait spins for 200 microseconds before it sleeps.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use wavescope_core::sync::thread::JoinHandle;
use wavescope_core::sync::{Deadline, Mutex};

use super::pins;
use super::registry::Registry;
use super::{Front, Left, SharedFront};
use crate::Error;
use crate::device::Device;
use crate::thread_mark;
use crate::threads::{self, Life, News};

/// Of its thread.
const NAME: &str = "wavescope-front";

/// Between two looks at full hardware rings: a sixteenth of the time that they have been full, within these limits. So
/// what is queued there is delayed by as little, and a kernel that runs for long costs few looks.
const SHORTEST_PAUSE: Duration = Duration::from_micros(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// Between two looks at the doorbells.
const SHORTEST_DOZE: Duration = Duration::from_millis(1);
const LONGEST_DOZE: Duration = Duration::from_millis(50);

/// What a doorbell's signal holds as long as nobody wrote it: below every index.
pub(crate) const SILENT: i64 = -1;

/// The worker as others see it.
pub(crate) struct Worker {
    device: Arc<dyn Device>,
    fronts: &'static Registry,
    state: Mutex<State>,
    life: Life,
    /// There is something to do.
    news: News,
}

#[derive(Default)]
struct State {
    stop: bool,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(crate) fn new(device: Arc<dyn Device>, fronts: &'static Registry) -> Arc<Self> {
        let (state, life, news) = (Mutex::new(State::default()), Life::new(), News::new());
        Arc::new(Self { device, fronts, state, life, news })
    }

    /// Whether it goes on with this front.
    pub(crate) fn serves(&self, front: &Front) -> bool {
        front.is_of(self)
    }

    fn own(&self) -> Vec<SharedFront> {
        let mut fronts = self.fronts.fronts();
        fronts.retain(|front| self.serves(front));
        fronts
    }

    /// Starts the thread unless it runs.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), Error> {
        let mut state = self.state.lock();
        if state.thread.is_some() {
            return Ok(());
        }
        let worker = Arc::clone(self);
        let run = move || {
            worker.life.begin();
            thread_mark::mark_internal();
            pins::lighten();
            worker.run();
            worker.life.end();
        };
        self.life.reset();
        state.thread = Some(threads::create(NAME, run)?);
        Ok(())
    }

    /// Makes the worker look at all fronts.
    pub(crate) fn wake(&self) {
        self.news.bring();
    }

    /// Ends the thread, and does not wait for that.
    pub(crate) fn end(&self) {
        self.state.lock().stop = true;
        self.wake();
    }

    /// Ends the thread if there is no front of it. Returns whether there is none.
    ///
    /// # Errors
    /// [`Error::ThreadBusy`] if it does not end in time.
    pub(crate) fn stop_if_idle(&self, deadline: Deadline) -> Result<bool, Error> {
        if !self.own().is_empty() {
            return Ok(false);
        }
        self.state.lock().stop = true;
        self.wake();
        let is_over = self.life.wait_for_end(NAME, deadline)?;
        let mut state = self.state.lock();
        if !is_over {
            // A thread that begins later has to find that it is to end.
            state.stop = state.thread.take().is_some();
            return Ok(true);
        }
        state.stop = false;
        let thread = state.thread.take();
        drop(state);
        // It has left its loop: nothing to wait for, and no panic can come any more.
        let _ = thread.map(JoinHandle::join);
        Ok(true)
    }

    fn run(&self) {
        let mut full_since = None;
        let mut doze = SHORTEST_DOZE;
        while !self.state.lock().stop {
            let seen = self.look();
            full_since = full_since.filter(|_| seen == Seen::Full);
            match seen {
                Seen::More => {}
                Seen::Full => {
                    let since = full_since.get_or_insert_with(Instant::now);
                    self.news.rest((since.elapsed() / 16).clamp(SHORTEST_PAUSE, LONGEST_PAUSE));
                }
                Seen::Rung | Seen::Nothing => {
                    doze = if seen == Seen::Rung { SHORTEST_DOZE } else { (doze * 2).min(LONGEST_DOZE) };
                    self.news.rest(doze);
                }
            }
        }
    }

    /// Hears every doorbell, goes on where something stalled. All fronts, also if one stays stalled: another may hold what
    /// it waits for.
    fn look(&self) -> Seen {
        let seen = |front: &SharedFront| {
            let look = || self.look_at(front);
            catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| {
                tracing::error!(?front, "panic while packets were rewritten");
                Seen::Nothing
            })
        };
        self.own().iter().map(seen).max().unwrap_or(Seen::Nothing)
    }

    fn look_at(&self, front: &Front) -> Seen {
        let rung = front.hear(self.device.load(front.doorbell()));
        let left = if front.is_stalled() { front.pump_for_others() } else { Left::Nothing };
        match left {
            Left::More => Seen::More,
            Left::Full => Seen::Full,
            Left::Nothing if rung => Seen::Rung,
            Left::Nothing => Seen::Nothing,
        }
    }
}

/// What a look at the fronts found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    Nothing,
    /// A device rang.
    Rung,
    /// A hardware ring is still full.
    Full,
    /// There is more to read at once.
    More,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}
