//! Whose turn it is to read a front, and how a front ends under its reader. The hooks of intercept queues use it too.
//!
//! | bit | meaning | set by | cleared by |
//! |---|---|---|---|
//! | `BUSY` | somebody reads, or nobody ever will again | who reads, who holds the front, who ends it | its setter, unless the front is doomed |
//! | `CLOSED` | nothing more goes to the hardware queue | who ends the front | who could not end it |
//! | `DOOMED` | the end waits for the reader, who does the rest when it leaves | who ends the front, only while `BUSY` | nobody |
//!
//! All accesses are sequentially consistent: either a reader that leaves sees a doorbell value, or whoever brought it sees
//! the front idle.

use std::time::Duration;

use wavescope_core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use wavescope_core::sync::{Deadline, Mutex};

use crate::fault::{self, Fault};
use crate::threads;

const BUSY: u32 = 1;
const CLOSED: u32 = 2;
const DOOMED: u32 = 4;

/// Between two looks at whether a reader left.
const PAUSE: Duration = Duration::from_micros(50);

#[cfg(not(loom))]
thread_local! {
    static HERE: u8 = const { 0 };
}

/// A number that no other living thread has; never 0.
#[cfg(not(loom))]
fn here() -> usize {
    HERE.try_with(|here| std::ptr::from_ref(here).addr()).unwrap_or(usize::MAX)
}

#[cfg(loom)]
static THREADS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

#[cfg(loom)]
loom::thread_local! {
    static HERE: usize = THREADS.fetch_add(1, Ordering::Relaxed) + 1;
}

/// A number that no other thread has. Not an address: a model takes no notice of memory that one thread gives to the next.
#[cfg(loom)]
fn here() -> usize {
    HERE.try_with(|&here| here).unwrap_or(usize::MAX)
}

#[derive(Debug, Default)]
pub(crate) struct Turn {
    word: AtomicU32,
    /// Who reads; 0 for nobody.
    reader: AtomicUsize,
}

impl Turn {
    /// Makes the current thread the reader; `false` if there is one.
    pub(crate) fn take(&self) -> bool {
        let taken = self.hold();
        if taken {
            self.reader.store(here(), Ordering::Relaxed);
        }
        taken
    }

    /// Keeps everybody from reading; `false` if somebody does.
    pub(crate) fn hold(&self) -> bool {
        self.word.fetch_or(BUSY, Ordering::SeqCst) & BUSY == 0
    }

    /// The reader, or whoever held the front, leaves. `true` if the end was left to it; nobody reads after that.
    #[must_use]
    pub(crate) fn leave(&self) -> bool {
        self.reader.store(0, Ordering::Relaxed);
        let leave = |word: u32| (word & DOOMED == 0).then_some(word & !BUSY);
        self.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, leave).is_err()
    }

    /// Whether the current thread is the reader.
    pub(crate) fn is_mine(&self) -> bool {
        self.reader.load(Ordering::Relaxed) == here()
    }

    pub(crate) fn close(&self) {
        self.word.fetch_or(CLOSED, Ordering::SeqCst);
    }

    /// It was not to end after all; whoever holds it leaves.
    pub(crate) fn reopen(&self) {
        self.word.fetch_and(!(CLOSED | BUSY), Ordering::SeqCst);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.word.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Leaves the end to the reader. `false` if there is none; nobody reads after that.
    pub(crate) fn doom(&self) -> bool {
        self.word.fetch_or(BUSY | DOOMED, Ordering::SeqCst) & BUSY != 0
    }
}

/// Who destroys the hardware queue of a front that is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The caller: nobody reads any more.
    Idle,
    /// The caller, which is inside a callback of this very queue: it reads, but no longer touches that queue.
    Inside,
    /// Whoever reads, when it leaves.
    LeftToReader,
}

/// A turn with what its reader does when the end was left to it.
#[derive(Debug)]
pub(crate) struct EndableTurn<A> {
    turn: Turn,
    last_act: Mutex<Option<A>>,
}

impl<A> Default for EndableTurn<A> {
    fn default() -> Self {
        Self { turn: Turn::default(), last_act: Mutex::new(None) }
    }
}

impl<A> std::ops::Deref for EndableTurn<A> {
    type Target = Turn;

    fn deref(&self) -> &Turn {
        &self.turn
    }
}

impl<A> EndableTurn<A> {
    /// Closes it and waits until nobody reads. Else `act` is for whoever reads: the current thread, or another that had not
    /// left at the `deadline`.
    pub(crate) fn end(&self, deadline: Deadline, act: impl FnOnce(Closed) -> A) -> Closed {
        self.turn.close();
        let inside = self.turn.is_mine();
        while !inside && !self.turn.hold() && !fault::is(Fault::EndedBesideReader) {
            if deadline.is_over() {
                return self.leave_end(Closed::LeftToReader, act);
            }
            threads::rest(PAUSE);
        }
        if inside { self.leave_end(Closed::Inside, act) } else { Closed::Idle }
    }

    fn leave_end(&self, closed: Closed, act: impl FnOnce(Closed) -> A) -> Closed {
        *self.last_act.lock() = Some(act(closed));
        if self.turn.doom() || fault::is(Fault::EndLeftToNobody) {
            return closed;
        }
        // It left just now.
        *self.last_act.lock() = None;
        Closed::Idle
    }

    /// The reader, or whoever held the front, leaves. Returns what was left to it.
    #[must_use]
    pub(crate) fn leave(&self) -> Option<A> {
        if self.turn.leave() { self.last_act.lock().take() } else { None }
    }
}
