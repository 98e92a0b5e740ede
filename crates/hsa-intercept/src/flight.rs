//! What is in flight on one queue, oldest first.
//!
//! The queue's **retire counter** is the completion signal of the last packet of everything that we put in front of
//! or behind the application's kernels. Those packets carry the BARRIER bit, so they complete in order: when the
//! counter fell by k, the k oldest entries of the list have retired. Entries are appended before their packets
//! are handed to the queue, so the counter never falls by more than the list holds. The counter has no event: behind
//! a run or a batch stands a packet that rings the reaper's bell.

use std::collections::VecDeque;
use std::sync::Arc;

use wavescope_core::{DispatchId, Grant, Token};

use crate::device::Signal;
use crate::serializer::RunId;
use crate::subscribers::Subscriber;
use crate::transition::Transition;

/// Value that a retire counter begins with: far from any condition that somebody could wait for, and no program
/// dispatches often enough to use it up.
pub(crate) const COUNTER_START: i64 = i64::MAX / 2;

/// Something whose last packet decrements the retire counter.
#[derive(Debug)]
pub(crate) enum Entry {
    /// An instrumented dispatch.
    Dispatch(Flying),
    /// In front of the gate of a run: the queue has got there.
    Announcement(RunId),
    /// Behind kernels of a run that nobody instrumented.
    EndOfKernels(RunId),
    /// Behind everything from before the agent was serialized.
    Mark(Arc<Transition>),
}

/// An instrumented dispatch in flight.
#[derive(Debug)]
pub(crate) struct Flying {
    /// The signal that completed with the kernel and carries its times.
    pub(crate) carrier: Signal,
    pub(crate) dispatch: DispatchId,
    /// The application's completion signal, 0 for none.
    pub(crate) forwarded: u64,
    /// Earliest possible start, nanoseconds.
    pub(crate) enqueued_ns: u64,
    /// The run that covers it; `None` where the agent was not serialized.
    pub(crate) run: Option<RunId>,
    /// What ends when it retires; only where no run covers it.
    pub(crate) ends: Vec<Arc<Transition>>,
    /// Who instrumented it, one per service.
    pub(crate) uses: [Option<Use>; 2],
}

/// One subscriber's part in a dispatch.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) subscriber: Arc<Subscriber>,
    pub(crate) token: Token,
    pub(crate) grant: Grant,
}

/// The list, the counter's last known value, and time carriers that are free.
#[derive(Debug)]
pub(crate) struct Flight {
    entries: VecDeque<Entry>,
    /// Value of the counter up to which entries were taken out.
    seen: i64,
    /// Entries were taken out that have not been published yet.
    landing: bool,
    /// Carriers at value 1.
    carriers: Vec<Signal>,
}

impl Flight {
    pub(crate) fn new() -> Self {
        Self { entries: VecDeque::new(), seen: COUNTER_START, landing: false, carriers: Vec::new() }
    }

    /// Whether nothing is in flight and everything that was has been published.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.landing
    }

    /// Appends what is about to be handed to the queue.
    pub(crate) fn push_all(&mut self, entries: &mut Vec<Entry>) {
        self.entries.extend(entries.drain(..));
    }

    /// Takes out what retired when the counter shows `value`, oldest first.
    pub(crate) fn retire(&mut self, value: i64, into: &mut Vec<Entry>) {
        let fallen = usize::try_from(self.seen.saturating_sub(value)).unwrap_or(0);
        debug_assert!(
            fallen <= self.entries.len(),
            "the retire counter fell by {fallen}, but {} dispatches are in flight",
            self.entries.len()
        );
        self.seen = self.seen.min(value);
        self.landing = true;
        into.extend(self.entries.drain(..fallen.min(self.entries.len())));
    }

    /// The newest dispatch that no run covers.
    pub(crate) fn last_uncovered(&mut self) -> Option<&mut Flying> {
        self.entries.iter_mut().rev().find_map(|entry| match entry {
            Entry::Dispatch(flying) if flying.run.is_none() => Some(flying),
            _ => None,
        })
    }

    /// Takes out everything: it will never retire.
    pub(crate) fn abandon(&mut self, into: &mut Vec<Entry>) {
        self.landing = true;
        into.extend(self.entries.drain(..));
    }

    /// What was taken out has been published; its carriers, at value 1, come back.
    pub(crate) fn landed(&mut self, carriers: &mut Vec<Signal>) {
        self.landing = false;
        self.return_carriers(carriers);
    }

    /// Moves up to `count` free carriers out.
    pub(crate) fn take_carriers(&mut self, count: usize, into: &mut Vec<Signal>) {
        let from = self.carriers.len().saturating_sub(count);
        into.extend(self.carriers.drain(from..));
    }

    /// Puts carriers at value 1 back.
    pub(crate) fn return_carriers(&mut self, carriers: &mut Vec<Signal>) {
        self.carriers.append(carriers);
    }
}
