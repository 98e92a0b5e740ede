//! Doors for models into parts that no user of this crate sees. Absent from any other build.

use std::time::Duration;

use wavescope_core::sync::Deadline;
use wavescope_core::sync::thread::JoinHandle;

use crate::{Engine, Error, gate, threads};

/// Creates a thread of ours.
///
/// # Errors
/// [`Error::NoThread`].
pub fn create_thread(run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    threads::create("wavescope-model", run)
}

/// The gate before a runtime.
#[derive(Debug, Default)]
pub struct Gate(gate::Gate);

impl Gate {
    /// Leave to call the runtime, until dropped; `None` if it is gone.
    pub fn enter(&self) -> Option<impl Sized> {
        self.0.enter()
    }

    /// Lets nobody in until [`open`](Self::open).
    pub fn shut(&self) {
        self.0.shut();
    }

    /// Waits until those who were let in have left; `false` if `timeout` passed before.
    pub fn wait_empty(&self, timeout: Duration) -> bool {
        self.0.wait_empty(Deadline::after(timeout))
    }

    /// Takes back one [`shut`](Self::shut).
    pub fn open(&self) {
        self.0.open();
    }

    /// The runtime is gone.
    pub fn set_gone(&self) {
        self.0.set_gone();
    }
}

/// Until dropped, the current thread was called by the application.
pub fn called_by_application() -> impl Sized {
    gate::ForApplication::enter()
}

/// Until dropped, the current thread is inside `hsa_shut_down`.
pub fn inside_shut_down() -> impl Sized {
    gate::GoingDown::enter()
}

/// Frees what an engine keeps for queues that are gone, and the bell of its reaper if none is measured.
pub fn let_go(engine: &Engine, timeout: Duration) {
    engine.let_go(Deadline::after(timeout));
}
