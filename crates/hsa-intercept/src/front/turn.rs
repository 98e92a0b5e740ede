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

use wavescope_core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const BUSY: u32 = 1;
const CLOSED: u32 = 2;
const DOOMED: u32 = 4;

thread_local! {
    static HERE: u8 = const { 0 };
}

/// A number that no other living thread has; never 0.
fn here() -> usize {
    HERE.try_with(|here| std::ptr::from_ref(here).addr()).unwrap_or(usize::MAX)
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
