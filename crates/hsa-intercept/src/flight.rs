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
use crate::kernel_trace::Traced;
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
    /// Its [`Traced`] is the next of the list's.
    pub(crate) traced: bool,
    /// Its agent was blind when it was enqueued.
    pub(crate) unseen: bool,
}

/// A dispatch that is only traced: it retires when its carrier falls, in any order.
#[derive(Debug)]
pub(crate) struct Loose {
    /// Set by the list.
    pub(crate) number: u64,
    pub(crate) carrier: Signal,
    pub(crate) dispatch: DispatchId,
    /// The application's completion signal, 0 for none.
    pub(crate) forwarded: u64,
    /// Value of the launch counter from which on nothing waits for the carrier any more.
    pub(crate) launched: i64,
    /// Earliest possible start, nanoseconds.
    pub(crate) enqueued_ns: u64,
    /// A run covers it.
    pub(crate) covered: bool,
    pub(crate) traced: Traced,
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
    /// Of the dispatches among them that are traced, in the same order.
    traced: VecDeque<Traced>,
    loose: Vec<Loose>,
    /// How many loose ones there ever were.
    loose_count: u64,
    /// What ends when all loose ones up to that number have retired that no run covers.
    loose_ends: Vec<(u64, Arc<Transition>)>,
    /// Entries were given up: the counter may fall for them.
    abandoned: bool,
    /// Value of the counter up to which entries were taken out.
    seen: i64,
    /// Entries were taken out that have not been published yet.
    landing: bool,
    /// Carriers at value 1.
    carriers: Vec<Signal>,
}

impl Flight {
    pub(crate) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            traced: VecDeque::new(),
            loose: Vec::new(),
            loose_count: 0,
            loose_ends: Vec::new(),
            abandoned: false,
            seen: COUNTER_START,
            landing: false,
            carriers: Vec::new(),
        }
    }

    /// Whether nothing is in flight and everything that was has been published. A mark does not count: it stands behind
    /// kernels that we did not touch, and nobody waits for those.
    pub(crate) fn is_empty(&self) -> bool {
        let only_marks = self.entries.iter().all(|entry| matches!(entry, Entry::Mark(_)));
        only_marks && self.loose.is_empty() && !self.landing
    }

    /// Whether there are dispatches of which nobody but their carriers says that they retire.
    pub(crate) fn has_loose(&self) -> bool {
        !self.loose.is_empty()
    }

    /// Whether everything of `subscriber` up to dispatch `last` was published.
    pub(crate) fn has_settled(&self, subscriber: &Subscriber, last: DispatchId) -> bool {
        !self.landing && self.oldest_of(subscriber).is_none_or(|oldest| oldest > last)
    }

    /// The dispatch of `subscriber` that has been in flight longest.
    pub(crate) fn oldest_of(&self, subscriber: &Subscriber) -> Option<DispatchId> {
        let is_of = |flying: &&Flying| {
            flying.uses.iter().flatten().any(|part| std::ptr::eq(&raw const *part.subscriber, subscriber))
        };
        let flying = self.entries.iter().filter_map(|entry| match entry {
            Entry::Dispatch(flying) => Some(flying),
            _ => None,
        });
        let loose =
            self.loose.iter().filter(|loose| loose.traced.is_of(subscriber)).map(|loose| loose.dispatch);
        flying.filter(is_of).map(|flying| flying.dispatch).chain(loose).min()
    }

    /// Appends what is about to be handed to the queue.
    pub(crate) fn push_all(&mut self, entries: &mut Vec<Entry>) {
        self.entries.extend(entries.drain(..));
    }

    /// Appends what is traced of it.
    pub(crate) fn push_traced(&mut self, traced: &mut Vec<Traced>, loose: &mut Vec<Loose>) {
        self.traced.extend(traced.drain(..));
        for mut new in loose.drain(..) {
            self.loose_count += 1;
            new.number = self.loose_count;
            self.loose.push(new);
        }
    }

    /// The record of a traced dispatch that was taken out; they are asked for in the order of the list.
    pub(crate) fn take_traced(&mut self) -> Option<Traced> {
        self.traced.pop_front()
    }

    /// Takes out what retired when the counter shows `value`, oldest first.
    pub(crate) fn retire(&mut self, value: i64, into: &mut Vec<Entry>) {
        let fallen = usize::try_from(self.seen.saturating_sub(value)).unwrap_or(0);
        debug_assert!(
            self.abandoned || fallen <= self.entries.len(),
            "the retire counter fell by {fallen}, but {} dispatches are in flight",
            self.entries.len()
        );
        self.seen = self.seen.min(value);
        self.landing = true;
        into.extend(self.entries.drain(..fallen.min(self.entries.len())));
    }

    /// Takes out what is loose and has `retired`, and what ends with it.
    pub(crate) fn retire_loose(
        &mut self,
        retired: impl Fn(&Loose) -> bool,
        into: &mut Vec<Loose>,
        ends: &mut Vec<Arc<Transition>>,
    ) {
        self.landing = true;
        into.extend(self.loose.extract_if(.., |loose| retired(loose)));
        let uncovered = self.loose.iter().filter(|loose| !loose.covered).map(|loose| loose.number);
        let oldest = uncovered.min().unwrap_or(u64::MAX);
        ends.extend(self.loose_ends.extract_if(.., |(last, _)| *last < oldest).map(|(_, end)| end));
    }

    /// Has `transition` end when all loose dispatches have retired that are out now and that no run covers; `false` if
    /// there are none.
    pub(crate) fn end_with_loose(&mut self, transition: &Arc<Transition>) -> bool {
        let waits = self.loose.iter().any(|loose| !loose.covered);
        if waits {
            self.loose_ends.push((self.loose_count, Arc::clone(transition)));
        }
        waits
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
        self.abandoned = true;
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
