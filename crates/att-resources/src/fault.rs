//! Switches that break one step of the owner, for the broken twins of its models.
//!
//! Only a build under `cfg(loom)` can switch one on; in any other the steps compile to what is right.

/// A step that can be taken wrongly.
#[cfg_attr(not(loom), expect(unreachable_pub, reason = "models switch it from outside"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A context may claim an agent that another one holds.
    AdmitSecondContext,
    /// The data are copied when the stop packet is in the queue, not when it retired.
    CopyBeforeRetired,
    /// The next dispatch may run when the stop packet retired, not when the data were copied.
    ReleaseBeforeCopied,
    /// A shutdown frees the buffers without waiting for what is in flight.
    FreeInFlight,
    /// An unhook is answered without waiting for what is in flight.
    UnhookBeforeDrained,
    /// The end of the last trace does not resume a shutdown that waits for it.
    ShutdownForgotten,
}

#[cfg(not(loom))]
pub(crate) const fn is(_: Fault) -> bool {
    false
}

#[cfg(loom)]
mod switch {
    use std::cell::Cell;

    use super::Fault;

    // loom runs all threads of a model on the thread that called it: parallel tests do not disturb each other.
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

#[cfg(loom)]
pub(crate) use switch::is;
#[cfg(loom)]
pub use switch::set;
