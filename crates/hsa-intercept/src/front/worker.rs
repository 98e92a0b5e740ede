//! The thread of the fronts: goes on where a hardware ring was full, and hears doorbells that a device rang.
//!
//! A store through the table reaches the front at once and leaves the doorbell's signal alone. A device, or an application
//! that writes the signal itself, changes its value, and nothing can be waited for that covers many signals (see
//! [`Device::wait_below`]). So the worker dozes, and looks at all doorbells now and then: after a millisecond while devices
//! ring, and at ever longer intervals while none does. Whoever wakes it is a thread of this process, so it needs no signal of
//! the runtime, whose blocked wait spins for 200 microseconds before it sleeps.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use wavescope_core::sync::thread::JoinHandle;
use wavescope_core::sync::{Condvar, Deadline, Mutex};

use super::registry::Registry;
use super::{Front, SharedFront};
use crate::Error;
use crate::device::Device;
use crate::{thread_mark, threads};

/// Of its thread.
const NAME: &str = "wavescope-front";

const SHORTEST_PAUSE: Duration = Duration::from_micros(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
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
    /// Notified when there is something to do, and when the thread left its loop.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// There is something to do.
    woken: bool,
    stop: bool,
    /// The thread began: it cannot while a constructor holds the loader's lock.
    begun: bool,
    /// The thread left its loop.
    over: bool,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(crate) fn new(device: Arc<dyn Device>, fronts: &'static Registry) -> Arc<Self> {
        Arc::new(Self { device, fronts, state: Mutex::new(State::default()), changed: Condvar::new() })
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
            worker.state.lock().begun = true;
            thread_mark::mark_internal();
            worker.run();
            worker.state.lock().over = true;
            worker.changed.notify_all();
        };
        let thread = threads::create(NAME, run)?;
        (state.thread, state.begun, state.over) = (Some(thread), false, false);
        Ok(())
    }

    /// Makes the worker look at all fronts.
    pub(crate) fn wake(&self) {
        self.state.lock().woken = true;
        self.changed.notify_all();
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
        let mut state = self.state.lock();
        if !state.begun {
            // It ends as soon as it begins; nobody waits for that.
            state.thread = None;
            return Ok(true);
        }
        while state.thread.is_some() && !state.over {
            let (next, timed_out) = self.changed.wait_timeout(state, deadline.left());
            state = next;
            if timed_out && !state.over {
                return Err(Error::ThreadBusy { thread: NAME });
            }
        }
        state.stop = false;
        let thread = state.thread.take();
        drop(state);
        // It has left its loop: nothing to wait for, and no panic can come any more.
        let _ = thread.map(JoinHandle::join);
        Ok(true)
    }

    fn run(&self) {
        let mut pause = SHORTEST_PAUSE;
        let mut doze = SHORTEST_DOZE;
        while !self.state.lock().stop {
            match self.look() {
                Seen::Stalled => {
                    self.rest(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    continue;
                }
                Seen::Rung => doze = SHORTEST_DOZE,
                Seen::Nothing => doze = (doze * 2).min(LONGEST_DOZE),
            }
            pause = SHORTEST_PAUSE;
            self.rest(doze);
        }
    }

    /// Waits until somebody wakes the worker, for `time` at most.
    fn rest(&self, time: Duration) {
        let deadline = Deadline::after(time);
        let mut state = self.state.lock();
        while !state.woken && !deadline.is_over() {
            state = self.changed.wait_timeout(state, deadline.left()).0;
        }
        state.woken = false;
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
        if front.is_stalled() {
            front.pump();
        }
        match front.is_stalled() {
            true => Seen::Stalled,
            false if rung => Seen::Rung,
            false => Seen::Nothing,
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
    Stalled,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}
