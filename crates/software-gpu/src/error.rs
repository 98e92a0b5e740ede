//! What can go wrong with a device, and what a queue reports as its own error.

use crate::QueueId;

/// Errors of the model's own interface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A gfx name that no generation of the model implements.
    #[error("{0} is not a gfx target that the software GPU models")]
    UnknownTarget(String),
    /// A geometry that no chip has.
    #[error("invalid device geometry: {0}")]
    Geometry(&'static str),
    /// The agent has no queue left.
    #[error("all {limit} queues of the agent are in use")]
    TooManyQueues {
        /// Queues that one agent has.
        limit: usize,
    },
    /// A ring that the packet processor cannot read.
    #[error("a ring of {packets} packets at {base:#x} is not a power of two of 64-byte packets")]
    Ring {
        /// Its address.
        base: u64,
        /// Its size in packets.
        packets: u32,
    },
    /// Memory that the host says is not there.
    #[error("{bytes} bytes at {address:#x} are not accessible")]
    Memory {
        /// First byte.
        address: u64,
        /// Length.
        bytes: u64,
    },
    /// A fault plan asked for this failure.
    #[error("{0} failed by the fault plan")]
    Injected(&'static str),
    /// A fault plan that cannot be read.
    #[error("fault plan {path}: {reason}")]
    FaultPlan {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A seed that is no number.
    #[error("WAVESCOPE_GPU_SEED is {0:?}, not a number")]
    Seed(String),
    /// The truth log cannot be written.
    #[error("truth log {path}")]
    TruthLog {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The operating system gave no thread for a queue.
    #[error("no consumer thread for {queue}")]
    Thread {
        /// The queue.
        queue: QueueId,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Why a queue stopped. Reported once through [`Host::queue_error`](crate::Host::queue_error); afterwards the queue
/// takes no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueFault {
    /// A packet type that the processor does not know, or one with impossible fields.
    InvalidPacket {
        /// The packet's index.
        index: u64,
    },
    /// A dispatch whose work-group does not fit a compute unit.
    InvalidDispatch {
        /// The packet's index.
        index: u64,
    },
    /// A command buffer that is not PM4.
    InvalidCommands {
        /// The packet's index.
        index: u64,
        /// Dword offset in the command buffer.
        offset: u32,
    },
    /// An address that is not mapped.
    Memory {
        /// The address.
        address: u64,
    },
    /// Asked for by the fault plan: an HSA status code to report.
    Injected(u32),
}
