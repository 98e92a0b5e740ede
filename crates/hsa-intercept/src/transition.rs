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
//! A queue that does not get there within the watchdog's time is no longer waited for, since it may be waiting for the very
//! kernel that is held back. Until it gets there, what is measured may overlap with what it still runs, and its records say
//! so ([`Company::overrun`](wavescope_core::Company)). Runs of earlier periods are not held back: what has to end may stand
//! behind their gates.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wavescope_core::sync::atomic::{AtomicBool, Ordering};

use crate::agent::AgentState;
use crate::serializer::RunId;

/// One queue's way to the end of what no run covers.
#[derive(Debug)]
pub(crate) struct Transition {
    agent: Arc<AgentState>,
    /// The first run that is held back.
    from: RunId,
    over: AtomicBool,
    begun: Instant,
}

impl Transition {
    /// Holds back the agent's runs from `from` on until [`end`](Self::end); a hold of the same runs is still there.
    pub(crate) fn begin(agent: &Arc<AgentState>, from: RunId) -> Arc<Self> {
        agent.place(|machine| machine.hold_again(from));
        Arc::new(Self { agent: Arc::clone(agent), from, over: AtomicBool::new(false), begun: Instant::now() })
    }

    /// The queue got there, or never will. Twice is fine.
    pub(crate) fn end(&self) {
        if !self.over.swap(true, Ordering::AcqRel) {
            self.agent.serialize(|machine| machine.end_hold(self.from));
        }
    }

    /// Lets the runs go on though the queue did not get there: they may have company until [`end`](Self::end).
    pub(crate) fn give_up(&self) {
        self.agent.serialize(|machine| machine.give_up_hold(self.from));
    }

    /// What is left of the time for which runs may be held back.
    pub(crate) fn left(&self, patience: Duration) -> Duration {
        patience.saturating_sub(self.begun.elapsed())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}
