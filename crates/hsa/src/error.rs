//! What the runtime refuses, and what this crate refuses before asking it.

use std::time::Duration;

use hsa_sys::hsa_status_t;
use wavescope_core::AgentId;

/// An error of a call through the saved table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The runtime answered with a status other than success.
    #[error("{call} returned {status:?} ({:#x})", status.0)]
    Call {
        /// Name of the entry.
        call: &'static str,
        /// What it returned.
        status: hsa_status_t,
    },
    /// The runtime is too old for an entry, or left it null.
    #[error("the runtime's API table has no {call}")]
    MissingEntry {
        /// Name of the entry.
        call: &'static str,
    },
    /// The table pointer, or that of a part every runtime has, is null.
    #[error("the {table} table is null")]
    NullTable {
        /// Which table.
        table: &'static str,
    },
    /// A table of a major version that this crate was not written for.
    #[error("the {table} table has major version {found}, known is {known}")]
    UnknownVersion {
        /// Which table.
        table: &'static str,
        /// Its `major_id`.
        found: u32,
        /// The version this crate was written for.
        known: u32,
    },
    /// The runtime shows no such GPU: hidden from it, or not there.
    #[error("the runtime shows no {0}")]
    NoAgent(AgentId),
    /// The agent, or the host, has no memory pool of the kind.
    #[error("{agent} has no {kind} memory pool")]
    NoPool {
        /// The agent.
        agent: AgentId,
        /// The kind of memory, in words.
        kind: &'static str,
    },
    /// A batch that never fits the queue.
    #[error("{packets} packets do not fit a queue of {size}")]
    BatchTooLarge {
        /// Packets of the batch.
        packets: usize,
        /// Slots of the queue.
        size: usize,
    },
    /// The queue did not become free in the time allowed.
    #[error("a queue of {size} packets had no room for {packets} within {waited:?}")]
    QueueFull {
        /// Packets of the batch.
        packets: usize,
        /// Slots of the queue.
        size: usize,
        /// How long was waited.
        waited: Duration,
    },
    /// The runtime reported an error on the queue and stopped it.
    #[error("the queue was stopped by {status:?} ({:#x})", status.0)]
    QueueStopped {
        /// What the runtime reported.
        status: hsa_status_t,
    },
    /// A signal did not fall in the time allowed: the GPU does not answer.
    #[error("signal {signal:#x} still held {value} after {waited:?}")]
    TimedOut {
        /// The signal's handle.
        signal: u64,
        /// Its value.
        value: i64,
        /// How long was waited.
        waited: Duration,
    },
    /// A range outside an allocation.
    #[error("bytes {offset}..+{length} lie outside an allocation of {size}")]
    OutOfRange {
        /// Start of the range.
        offset: usize,
        /// Its length.
        length: usize,
        /// Size of the allocation.
        size: usize,
    },
}

/// Success, or the call with its status.
pub(crate) fn check(call: &'static str, status: hsa_status_t) -> Result<(), Error> {
    if status == hsa_sys::HSA_STATUS_SUCCESS { Ok(()) } else { Err(Error::Call { call, status }) }
}

/// The function in a slot.
pub(crate) fn entry<F: Copy>(call: &'static str, slot: Option<F>) -> Result<F, Error> {
    slot.ok_or(Error::MissingEntry { call })
}
