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

wavescope_core::fault_switch!(Fault);
