//! Switches that break one step, for the broken twins of loom models. Absent from any other build.

/// A step that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A reply that is dropped unanswered wakes nobody.
    SilentUnansweredReply,
    /// An actor that ended keeps the messages that it did not handle.
    UndeliveredKept,
}

crate::fault_switch!(Fault);

/// Drops `value`, or under `fault` never does.
pub(crate) fn keep<T>(fault: Fault, value: T) {
    if is(fault) {
        std::mem::forget(value);
    }
}
