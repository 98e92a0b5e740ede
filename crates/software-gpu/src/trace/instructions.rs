//! The instructions of a traced wave as events.
//!
//! A cursor keeps a wave's place in its walk, so that a long dispatch does not turn into events all at once.

use std::sync::Arc;

use wavescope_pm4::Generation;

use super::event::{Event, Instruction, Location};
use crate::walk::{Flow, Timed, Unit};

/// A wave of the target on its way through its walk.
#[derive(Debug)]
pub(crate) struct Cursor {
    generation: Generation,
    location: Location,
    /// Cycle at which the wave starts.
    start: u64,
    timed: Arc<Timed>,
    next: usize,
    /// Cycles by which readiness is told late.
    delay: u64,
    /// Events of the last instruction, the latest first.
    events: Vec<(u64, Event)>,
}

impl Cursor {
    /// Begins with the first instruction at or after `cycle`.
    pub(crate) fn new(
        generation: Generation,
        location: Location,
        start: u64,
        timed: Arc<Timed>,
        cycle: u64,
    ) -> Self {
        let next = timed.times.partition_point(|times| start + u64::from(times.ready) < cycle);
        // gfx10 and gfx11 tell readiness a cycle late.
        let delay = u64::from(matches!(generation, Generation::Gfx10 | Generation::Gfx11));
        Self { generation, location, start, timed, next, delay, events: Vec::new() }
    }

    /// Cycle of the next event; `None` at the end. Never earlier than that of the event before.
    pub(crate) fn due(&mut self) -> Option<u64> {
        while self.events.is_empty() && self.next < self.timed.times.len() {
            self.step();
            self.next += 1;
            self.events.reverse();
        }
        self.events.last().map(|(cycle, _)| *cycle)
    }

    /// Takes the next event, which [`due`](Self::due) told of.
    pub(crate) fn take(&mut self) -> Option<(u64, Event)> {
        self.events.pop()
    }

    fn step(&mut self) {
        let (step, times) = (self.timed.path.steps[self.next], self.timed.times[self.next]);
        let (ready, issue) = (self.start + u64::from(times.ready), self.start + u64::from(times.issue));
        let Self { location, .. } = *self;
        let work = step.work;
        if work.unit == Unit::Skip {
            return;
        }
        // Waiting is no stall: the wave does not ask for a unit. Neither does its end, where no token tells of it.
        let asks = work.unit != Unit::Immediate && (work.unit != Unit::End || work.code != 0);
        if issue > ready && asks {
            self.events.push((ready + self.delay, Event::Ready { location }));
        }
        let taken = step.flow != Flow::Next;
        let instruction = Instruction { unit: work.unit, code: work.code, taken };
        self.events.push((issue, Event::Issue { location, instruction }));
        let after = self.timed.times.get(self.next + 1).map(|next| self.start + u64::from(next.ready));
        if self.generation == Generation::Gfx9 && work.unit != Unit::Immediate {
            // In order: before the wave goes on.
            let done = (issue + u64::from(work.cycles)).min(after.unwrap_or(u64::MAX));
            self.events.push((done, Event::Done { location, instruction }));
        }
        let Some(after) = after else { return };
        if work.unit == Unit::Barrier9 {
            let unit = Unit::Immediate;
            self.events
                .push((after, Event::Issue { location, instruction: Instruction { unit, ..instruction } }));
        }
        if work.unit == Unit::Indirect {
            let pc = self.timed.path.steps[self.next + 1].pc;
            self.events.push((after, Event::NewPc { location, pc }));
        }
    }
}
