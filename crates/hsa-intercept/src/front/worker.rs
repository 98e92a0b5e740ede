//! The thread of the fronts: goes on where a hardware ring was full, and hears doorbells that a device rang.
//!
//! A store through the table reaches the front at once and leaves the doorbell's signal alone. A device, or an application
//! that writes the signal itself, changes its value, and nothing can be waited for that covers many signals (see
//! [`Device::wait_below`]). So the worker dozes on its control signal and looks at all doorbells now and then: after a
//! millisecond while devices ring, and at ever longer intervals while none does.

use std::sync::Arc;
use std::time::Duration;

use wavescope_core::sync::Mutex;
use wavescope_core::sync::thread::{self, JoinHandle};

use super::registry::Registry;
use crate::Error;
use crate::device::{Device, Signal, SignalKind};
use crate::thread_mark;

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
    registry: Arc<Registry>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    control: Option<Signal>,
    stop: bool,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(crate) fn new(device: Arc<dyn Device>, registry: Arc<Registry>) -> Arc<Self> {
        Arc::new(Self { device, registry, state: Mutex::new(State::default()) })
    }

    /// Starts the thread unless it runs.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), Error> {
        let mut state = self.state.lock();
        if state.thread.is_some() {
            return Ok(());
        }
        let control = self.device.create_signal(1, SignalKind::Interrupt)?;
        let worker = Arc::clone(self);
        let run = move || {
            thread_mark::mark_internal();
            worker.run(control);
        };
        let spawned = thread::Builder::new().name("wavescope-front".to_owned()).spawn(run);
        let thread = spawned.inspect_err(|_| self.device.destroy_signal(control)).map_err(Error::NoThread)?;
        (state.control, state.thread) = (Some(control), Some(thread));
        Ok(())
    }

    /// Makes the worker look at all fronts.
    pub(crate) fn wake(&self) {
        if let Some(control) = self.state.lock().control {
            self.device.store(control, 0);
        }
    }

    /// Ends the thread if there is no front.
    pub(crate) fn stop_if_idle(&self) {
        if !self.registry.fronts().is_empty() {
            return;
        }
        let thread = {
            let mut state = self.state.lock();
            state.stop = true;
            state.thread.take()
        };
        self.wake();
        let Some(thread) = thread else { return };
        if thread.join().is_err() {
            tracing::error!("the fronts' worker panicked");
        }
        let mut state = self.state.lock();
        state.stop = false;
        if let Some(control) = state.control.take() {
            self.device.destroy_signal(control);
        }
    }

    fn run(&self, control: Signal) {
        let mut pause = SHORTEST_PAUSE;
        let mut doze = SHORTEST_DOZE;
        loop {
            // Before looking, so that news which come while it looks wake it again.
            self.device.store(control, 1);
            if self.state.lock().stop {
                return;
            }
            match self.look() {
                Seen::Stalled => {
                    // A pause between looks, not a synchronisation: never modelled.
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    continue;
                }
                Seen::Rung => doze = SHORTEST_DOZE,
                Seen::Nothing => doze = (doze * 2).min(LONGEST_DOZE),
            }
            pause = SHORTEST_PAUSE;
            self.device.wait_below(control, 1, doze);
        }
    }

    /// Hears every doorbell, goes on where something stalled.
    fn look(&self) -> Seen {
        let mut seen = Seen::Nothing;
        for front in self.registry.fronts() {
            let rung = front.hear(self.device.load(front.doorbell()));
            if front.is_stalled() {
                front.pump();
            }
            if front.is_stalled() {
                return Seen::Stalled;
            }
            if rung {
                seen = Seen::Rung;
            }
        }
        seen
    }
}

/// What a look at the fronts found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
