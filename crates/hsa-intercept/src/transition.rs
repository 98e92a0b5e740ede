//! Switching serialization on while queues are busy.
//!
//! What went through unseen before may still run when the first kernel is measured. So nothing is granted until every
//! queue of the agent that can be reached has come to a mark: a barrier packet behind all that, which retires. A queue that
//! does not get there in time is given up on, since it may be waiting for the very kernel that is held back; what is
//! measured then may overlap with what it still runs.
//!
//! Only queue fronts can be reached from outside; with the technique `runtime` a queue has no mark, and kernels from
//! before the start of other queues may overlap with the first ones that are measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wavescope_core::sync::atomic::{AtomicBool, Ordering};

use crate::agent::AgentState;

/// How long grants are held back for queues that do not get to their mark.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// One queue's way to its mark.
#[derive(Debug)]
pub(crate) struct Transition {
    agent: Arc<AgentState>,
    over: AtomicBool,
    pub(crate) deadline: Instant,
}

impl Transition {
    /// Holds back the agent's grants until [`end`](Self::end).
    pub(crate) fn begin(agent: &Arc<AgentState>) -> Arc<Self> {
        agent.loosen(1);
        let deadline = Instant::now() + PATIENCE;
        Arc::new(Self { agent: Arc::clone(agent), over: AtomicBool::new(false), deadline })
    }

    /// The queue got there, or never will. Twice is fine.
    pub(crate) fn end(&self) {
        if !self.over.swap(true, Ordering::AcqRel) {
            self.agent.tighten();
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}
