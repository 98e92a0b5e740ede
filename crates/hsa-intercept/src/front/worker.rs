//! The thread of the fronts: goes on where a hardware ring was full, and hears doorbells that a device rang.
//!
//! It sleeps until a doorbell's signal changes (a store through the table does not touch it, so this is a device, or an
//! application that writes the signal itself) or the control signal says that a front stalled or came or went. While
//! a front is stalled it looks again after a pause that grows to a millisecond.

use std::sync::Arc;
use std::time::Duration;

use wavescope_core::sync::Mutex;
use wavescope_core::sync::thread::{self, JoinHandle};

use super::SharedFront;
use super::registry::Registry;
use crate::Error;
use crate::device::{Device, Signal, SignalKind, Until, Wait};
use crate::thread_mark;

const SHORTEST_PAUSE: Duration = Duration::from_micros(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// A second line of defence against a lost interrupt.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

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
        loop {
            // Before looking, so that news which come while it looks wake it again.
            self.device.store(control, 1);
            if self.state.lock().stop {
                return;
            }
            // Held while their signals are waited for.
            let fronts = self.registry.fronts();
            let mut waits = vec![Wait { signal: control, until: Until::Below(1) }];
            if self.look(&fronts, &mut waits) {
                thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            } else {
                pause = SHORTEST_PAUSE;
                self.device.wait_any(&waits, LONGEST_WAIT);
            }
        }
    }

    /// Hears every doorbell, goes on where something stalled. Returns whether something still is.
    fn look(&self, fronts: &[SharedFront], waits: &mut Vec<Wait>) -> bool {
        let mut stalled = false;
        for front in fronts {
            let signal = front.doorbell();
            let value = self.device.load(signal);
            if value > SILENT {
                front.ring(value.cast_unsigned());
            } else if front.is_stalled() {
                front.pump();
            }
            waits.push(Wait { signal, until: Until::AtLeast(value + 1) });
            stalled |= front.is_stalled();
        }
        stalled
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}
