//! Switching serialization on while queues are busy.
//!
//! What went through outside any run may still be running when the first kernel is measured. So runs of the new period
//! are held back until every queue of the agent has come to the end of that:
//!
//! * Behind the last **instrumented** dispatch that no run covers, which retires by itself.
//! * Behind what went through **unseen**, where the queue can be reached from outside (a queue front): a *mark* is written
//!   there, a barrier packet that retires. With the technique `runtime` a queue has no mark, and kernels from before the
//!   start of other queues may overlap with the first ones that are measured.
//!
//! A queue that does not get there in time is given up on, since it may be waiting for the very kernel that is held
//! back; what is measured then may overlap with what it still runs. Runs of earlier periods are not held back: what
//! has to end may stand behind their gates.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wavescope_core::sync::atomic::{AtomicBool, Ordering};

use crate::agent::AgentState;
use crate::serializer::RunId;

/// How long runs are held back for a queue that does not get there.
const PATIENCE: Duration = Duration::from_secs(1);

/// One queue's way to the end of what no run covers.
#[derive(Debug)]
pub(crate) struct Transition {
    agent: Arc<AgentState>,
    /// The first run that is held back.
    from: RunId,
    over: AtomicBool,
    pub(crate) deadline: Instant,
}

impl Transition {
    /// Holds back the agent's runs from `from` on until [`end`](Self::end); a hold of the same runs is still there.
    pub(crate) fn begin(agent: &Arc<AgentState>, from: RunId) -> Arc<Self> {
        agent.place(|machine| machine.hold_again(from));
        let deadline = Instant::now() + PATIENCE;
        Arc::new(Self { agent: Arc::clone(agent), from, over: AtomicBool::new(false), deadline })
    }

    /// The queue got there, or never will. Twice is fine.
    pub(crate) fn end(&self) {
        if !self.over.swap(true, Ordering::AcqRel) {
            self.agent.serialize(|machine| machine.end_hold(self.from));
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}
