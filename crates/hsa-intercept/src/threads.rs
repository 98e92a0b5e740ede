//! The threads of this crate: each is announced before it is created and after, as [`wavescope_core::threads`] does for
//! all crates.
//!
//! Each has a [`Life`], by which its end is waited for, and [`News`], by which it is woken from a rest of its own.

use std::time::Duration;

use wavescope_core::sync::thread::JoinHandle;
use wavescope_core::sync::{Condvar, Deadline, Mutex, thread};
use wavescope_core::threads;
#[cfg(not(loom))]
pub(crate) use wavescope_core::threads::is_ours;
pub use wavescope_core::threads::{ThreadNotice, announce_threads};

use crate::Error;

/// Creates a thread, announced.
///
/// # Errors
/// [`Error::NoThread`].
pub(crate) fn create(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    #[cfg(loom)]
    let run = || {
        let _ = OURS.try_with(|ours| ours.set(true));
        run();
    };
    threads::create(name, run).map_err(Error::NoThread)
}

#[cfg(loom)]
loom::thread_local! {
    static OURS: std::cell::Cell<bool> = std::cell::Cell::new(false);
}

/// Whether the current thread of a model was made by [`create`]: that of all of them is one thread's knowledge.
#[cfg(loom)]
pub(crate) fn is_ours() -> bool {
    OURS.try_with(std::cell::Cell::get).unwrap_or(false)
}

/// Lets the rests of the calling thread end when they should: by default the kernel adds up to 50 microseconds.
pub(crate) fn rest_exactly() {
    // SAFETY: the call takes a number. It is refused nowhere that matters: the rests are longer then.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong) };
}

/// Rests between two looks at what nobody is told of. In a model, where time does not pass, others go on.
pub(crate) fn rest(between_looks: Duration) {
    if cfg!(loom) {
        thread::yield_now();
    } else {
        std::thread::park_timeout(between_looks);
    }
}

/// How far a thread has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It cannot begin while a constructor holds the loader's lock.
    Made,
    Begun,
    /// It left its loop.
    Over,
}

/// How far a thread has come, for those who wait for its end.
pub(crate) struct Life {
    stage: Mutex<Stage>,
    ended: Condvar,
}

impl Life {
    pub(crate) fn new() -> Self {
        Self { stage: Mutex::new(Stage::Made), ended: Condvar::new() }
    }

    /// Another thread is about to be made.
    pub(crate) fn reset(&self) {
        *self.stage.lock() = Stage::Made;
    }

    /// The thread begins.
    pub(crate) fn begin(&self) {
        *self.stage.lock() = Stage::Begun;
    }

    /// The thread left its loop.
    pub(crate) fn end(&self) {
        *self.stage.lock() = Stage::Over;
        self.ended.notify_all();
    }

    pub(crate) fn has_begun(&self) -> bool {
        *self.stage.lock() != Stage::Made
    }

    /// Whether the thread began and has not left its loop.
    pub(crate) fn is_running(&self) -> bool {
        *self.stage.lock() == Stage::Begun
    }

    /// Waits until the thread, which was told to end, left its loop. `false`, at once, if it has not begun: it ends as soon
    /// as it begins, and nobody waits for that.
    ///
    /// # Errors
    /// [`Error::ThreadBusy`] if it does not end in time.
    pub(crate) fn wait_for_end(&self, thread: &'static str, deadline: Deadline) -> Result<bool, Error> {
        let mut stage = self.stage.lock();
        while *stage == Stage::Begun {
            let (next, timed_out) = self.ended.wait_timeout(stage, deadline.left());
            stage = next;
            if timed_out && *stage == Stage::Begun {
                return Err(Error::ThreadBusy { thread });
            }
        }
        Ok(*stage == Stage::Over)
    }
}

/// Wakes a thread that rests without the runtime, whose blocked wait spins before it sleeps.
pub(crate) struct News {
    there: Mutex<bool>,
    came: Condvar,
}

impl News {
    pub(crate) fn new() -> Self {
        Self { there: Mutex::new(false), came: Condvar::new() }
    }

    /// Ends the rest, also one that begins later.
    pub(crate) fn bring(&self) {
        *self.there.lock() = true;
        self.came.notify_all();
    }

    /// Rests until somebody brings news, for `time` at most.
    pub(crate) fn rest(&self, time: Duration) {
        let deadline = Deadline::after(time);
        let mut there = self.there.lock();
        while !*there && !deadline.is_over() {
            there = self.came.wait_timeout(there, deadline.left()).0;
        }
        *there = false;
    }
}
