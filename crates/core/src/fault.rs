//! Switches that break one step, for the broken twins of loom models. Absent from any other build.

use std::cell::Cell;

/// A step that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A reply that is dropped unanswered wakes nobody.
    SilentUnansweredReply,
    /// An actor that ended keeps the messages that it did not handle.
    UndeliveredKept,
}

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

/// Drops `value`, or under `fault` never does.
pub(crate) fn keep<T>(fault: Fault, value: T) {
    if is(fault) {
        std::mem::forget(value);
    }
}
