//! A kernel dispatch as interception sees it, and what it publishes about one.

use crate::{AgentId, DispatchId, QueueId, ThreadId, Token};

/// A kernel dispatch about to be enqueued. Small and `Copy`: it travels through channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Process-wide number of this dispatch.
    pub id: DispatchId,
    /// The agent whose queue takes it.
    pub agent: AgentId,
    /// The application's queue.
    pub queue: QueueId,
    /// Address of the kernel descriptor (`kernel_object` of the packet).
    pub kernel_object: u64,
    /// Work-items per dimension (`grid_size_x/y/z`).
    pub grid: [u32; 3],
    /// Work-items per work-group and dimension (`workgroup_size_x/y/z`).
    pub workgroup: [u16; 3],
    /// Scratch bytes per work-item.
    pub private_segment_bytes: u32,
    /// LDS bytes per work-group, static and dynamic.
    pub group_segment_bytes: u32,
    /// The submitting thread; `None` where the runtime's own thread ran the hook.
    pub thread: Option<ThreadId>,
}

/// When a kernel ran, in the system clock domain of `hsa_system_get_info(TIMESTAMP)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DispatchTimes {
    /// Start, nanoseconds; 0 if the query failed.
    pub start_ns: u64,
    /// End, nanoseconds; 0 if the query failed.
    pub end_ns: u64,
}

/// How an instrumented dispatch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its last packet completed; the data of its program are in memory.
    Completed(DispatchTimes),
    /// It will never complete; its data must not be read.
    Lost(LossReason),
}

/// Why a dispatch was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossReason {
    /// The queue reported an error and was stopped by the runtime.
    QueueError,
    /// The application destroyed the queue with work in flight.
    QueueDestroyed,
    /// The GPU did not answer in the time allowed.
    TimedOut,
    /// Another dispatch wrote the same output before it was read.
    Overwritten,
    /// It completed, but its output could not be read.
    Unreadable,
}

impl LossReason {
    /// Whether the GPU may still write the output of the lost dispatch: its memory must be kept.
    pub const fn gpu_may_still_write(self) -> bool {
        match self {
            // A stopped queue may be resumed by the runtime's own recovery; a destroyed one never runs again.
            Self::QueueError | Self::TimedOut => true,
            Self::QueueDestroyed | Self::Overwritten | Self::Unreadable => false,
        }
    }
}

/// Kernels that interception did not keep away from a measured dispatch: counters of the agent may contain their work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Company {
    /// The agent is blind: the application has a queue there whose kernels nobody sees.
    pub unseen: bool,
    /// A kernel kept others waiting for so long that they were let in beside it: a measured one, or one from before measuring
    /// began.
    pub overrun: bool,
}

/// What interception publishes about a dispatch that a subscriber instrumented, in this order per token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchEvent {
    /// The packets were handed to the queue.
    Dispatched {
        /// The subscriber's own token for the program instance.
        token: Token,
        /// The dispatch it measures.
        dispatch: Dispatch,
    },
    /// The last packet of the program retired, or never will.
    Retired {
        /// The subscriber's own token for the program instance.
        token: Token,
        /// What became of it.
        outcome: Outcome,
        /// What may have run beside it.
        company: Company,
    },
}
