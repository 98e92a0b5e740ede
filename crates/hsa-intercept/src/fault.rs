//! Switches that break one step, for the broken twins of loom models. Absent from any other build.

/// A step that can be left out.
#[cfg_attr(not(loom), expect(unreachable_pub, reason = "models switch it from outside"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A swap of subscribers does not wait for hooks that still use the old ones.
    SwapWithoutWait,
    /// Silencing a subscriber gives back its hold at once, not after the drain.
    HoldReturnedWhenSilent,
    /// A dispatch counts as drained before it is published.
    LandedBeforePublished,
    /// Signals of a destroyed queue are freed at once, while the reaper may still look at them.
    SignalsFreedByDestroyer,
    /// A batch is listed as in flight only after it was handed to the queue.
    ListedAfterWritten,
}

#[cfg(loom)]
mod imp {
    use std::cell::Cell;

    use super::Fault;

    // loom runs all threads of a model on the thread that called it, so parallel tests do not disturb each other.
    std::thread_local! {
        static ACTIVE: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// Breaks `fault` for the models that this thread runs from now on.
    pub fn set(fault: Fault) {
        ACTIVE.set(Some(fault));
    }

    pub(crate) fn is(fault: Fault) -> bool {
        ACTIVE.get() == Some(fault)
    }
}

#[cfg(not(loom))]
mod imp {
    use super::Fault;

    #[inline(always)]
    pub(crate) const fn is(_fault: Fault) -> bool {
        false
    }
}

pub(crate) use imp::is;
#[cfg(loom)]
pub use imp::set;
