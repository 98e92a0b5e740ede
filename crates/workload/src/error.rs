//! What can go wrong in the application.

use std::time::Duration;

use hsa_sys::hsa_status_t;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An HSA call failed.
    #[error("{call}: {status:?}{}", text.as_ref().map(|text| format!(" ({text})")).unwrap_or_default())]
    Call {
        /// The function.
        call: &'static str,
        /// What it returned.
        status: hsa_status_t,
        /// What the runtime says about the status, if it says anything.
        text: Option<String>,
    },
    /// The table has no such entry.
    #[error("the runtime's table has no {call}")]
    Missing {
        /// The function.
        call: &'static str,
    },
    /// The table pointer is null.
    #[error("no API table")]
    NoTable,
    /// No pool of the kind needed.
    #[error("{agent} has no {kind} memory pool")]
    NoPool {
        /// Whose.
        agent: String,
        /// What was looked for.
        kind: &'static str,
    },
    /// No code object for this target is built in.
    #[error("no kernels for {target}; built in are those for {known}")]
    NoKernels {
        /// The GPU's target.
        target: String,
        /// Targets with kernels.
        known: String,
    },
    /// The code object has no such kernel.
    #[error("no kernel {name}")]
    NoKernel {
        /// Its name without `.kd`.
        name: String,
    },
    /// More packets than the ring holds.
    #[error("a batch of {packets} packets does not fit a queue of {capacity}")]
    BatchTooLarge {
        /// Packets in the batch.
        packets: usize,
        /// Size of the queue.
        capacity: u32,
    },
    /// The queue did not take or finish its packets in time.
    #[error("{what} after {after:?}")]
    TimedOut {
        /// What is still missing.
        what: String,
        /// The limit.
        after: Duration,
    },
    /// The runtime reported an error of the queue.
    #[error("the queue failed: {status:?}")]
    QueueFailed {
        /// What it reported.
        status: hsa_status_t,
    },
}
