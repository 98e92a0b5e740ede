//! The trace of one shader engine: its registers, its buffer, and what waits to be written.

use wavescope_pm4::RegisterName;

use super::event::Event;
use super::instructions::Cursor;
use super::samples::{Plan, Samples};
use super::store::{Buffer, Output, Store};
use super::walking::Walking;
use super::{gfx9_stream, rdna_stream};
use crate::fault::TraceLoss;
use crate::place::Wave;
use crate::sqtt::BitWriter;
use crate::walk::Timed;

/// The generations' encoders.
#[derive(Clone, Debug)]
pub(crate) enum Stream {
    Gfx9(gfx9_stream::Stream),
    Rdna(rdna_stream::Stream),
}

impl Stream {
    fn event(&mut self, cycle: u64, event: &Event, out: &mut BitWriter) {
        match self {
            Self::Gfx9(stream) => stream.event(cycle, event, out),
            Self::Rdna(stream) => stream.event(cycle, event, out),
        }
    }

    /// Tells that tokens were lost before `cycle`.
    fn lost(&mut self, cycle: u64, out: &mut BitWriter) {
        match self {
            Self::Gfx9(stream) => stream.lost(cycle, out),
            Self::Rdna(stream) => stream.lost(cycle, out),
        }
    }

    fn end(&self, out: &mut BitWriter) {
        match self {
            Self::Gfx9(_) => {}
            Self::Rdna(stream) => stream.end(out),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    cycle: u64,
    event: Event,
}

/// Events that are lost on purpose.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    loss: Option<TraceLoss>,
    /// Events so far.
    seen: u64,
    /// Whether the stream has yet to tell of it.
    untold: bool,
}

impl Gap {
    /// Whether the next event is lost.
    fn takes_next(&mut self) -> bool {
        let number = self.seen;
        self.seen += 1;
        let lost = self.loss.is_some_and(|loss| (loss.after..loss.after + loss.events).contains(&number));
        self.untold |= lost;
        lost
    }
}

/// Trace state of one engine of one XCC.
#[derive(Debug)]
pub(crate) struct Unit {
    registers: [u32; RegisterName::ALL.len()],
    stream: Option<Stream>,
    store: Store,
    /// Events in the future, or not yet encoded, in order of time if sorted.
    waiting: Vec<Waiting>,
    sorted: bool,
    /// Waves of the target whose instructions are not all events yet.
    walking: Walking,
    samples: Option<Samples>,
    dropped: u32,
    gap: Gap,
}

impl Unit {
    pub(crate) fn new() -> Self {
        Self {
            registers: [0; RegisterName::ALL.len()],
            stream: None,
            store: Store::default(),
            waiting: Vec::new(),
            sorted: true,
            walking: Walking::default(),
            samples: None,
            dropped: 0,
            gap: Gap::default(),
        }
    }

    pub(crate) fn register(&self, name: RegisterName) -> u32 {
        self.registers[name as usize]
    }

    pub(crate) fn set_register(&mut self, name: RegisterName, value: u32) {
        self.registers[name as usize] = value;
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.stream.is_some()
    }

    pub(crate) const fn dropped(&self) -> u32 {
        self.dropped
    }

    /// What has been written where.
    pub(crate) const fn store(&self) -> &Store {
        &self.store
    }

    /// Forgets what was traced: an empty buffer, nothing lost.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.walking.clear();
        self.store.clear();
        self.dropped = 0;
    }

    /// Starts tracing into `buffer`, or into two in turn (`double`), with the stream that `begin` opens.
    pub(crate) fn start(
        &mut self,
        buffer: Buffer,
        double: bool,
        loss: Option<TraceLoss>,
        begin: impl FnOnce(&Self, &mut BitWriter) -> Stream,
    ) {
        self.store.begin(buffer, double);
        self.gap = Gap { loss, ..Gap::default() };
        let mut out = std::mem::take(self.store.bits());
        self.stream = Some(begin(self, &mut out));
        *self.store.bits() = out;
    }

    /// Software gives a buffer at `cycle`: this one of the two, or whichever is not being written.
    pub(crate) fn give(&mut self, index: Option<usize>, buffer: Buffer, cycle: u64) {
        self.encode(cycle);
        self.store.give(index, buffer);
    }

    /// Takes an event, also one of the future.
    pub(crate) fn push(&mut self, cycle: u64, event: Event) {
        if self.stream.is_some() {
            self.sorted &= self.waiting.last().is_none_or(|last| last.cycle <= cycle);
            self.waiting.push(Waiting { cycle, event });
        }
    }

    /// Samples counters from `cycle` on.
    pub(crate) fn sample(&mut self, plan: Plan, cycle: u64) {
        self.samples = Some(Samples::new(plan, cycle));
    }

    /// Takes a wave of the engine's first array for the samples.
    pub(crate) fn sample_wave(&mut self, compute_unit: u8, wave: &Wave, walk: &Timed) {
        if let Some(samples) = &mut self.samples {
            samples.add(compute_unit, wave, walk);
        }
    }

    /// Takes a wave whose instructions are traced.
    pub(crate) fn walk(&mut self, cursor: Cursor) {
        if self.stream.is_some() {
            self.walking.add(cursor);
        }
    }

    /// Encodes everything up to `cycle`.
    pub(crate) fn advance(&mut self, cycle: u64) {
        self.encode(cycle);
    }

    /// The same, and brings it to memory, so that registers show the present.
    pub(crate) fn look(&mut self, cycle: u64) {
        if self.stream.is_some() {
            self.encode(cycle);
            self.store.hand_out();
        }
    }

    pub(crate) fn take_outputs(&mut self) -> Vec<Output> {
        self.store.take_outputs()
    }

    /// Encodes what happens up to `cycle`. Within a cycle, what was reported comes before what waves execute.
    fn encode(&mut self, cycle: u64) {
        if let Some(samples) = &mut self.samples {
            samples.take(cycle, |cycle, event| self.waiting.push(Waiting { cycle, event }));
            self.sorted = false;
        }
        if !std::mem::replace(&mut self.sorted, true) {
            self.waiting.sort_by_key(|waiting| waiting.cycle); // stable: order of arrival within a cycle
        }
        let waiting = std::mem::take(&mut self.waiting);
        let due = waiting.partition_point(|waiting| waiting.cycle <= cycle);
        for reported in &waiting[..due] {
            if let Some(before) = reported.cycle.checked_sub(1) {
                self.encode_walks(before);
            }
            self.write(reported.cycle, &reported.event);
        }
        self.waiting = waiting;
        self.waiting.drain(..due);
        self.encode_walks(cycle);
    }

    /// Encodes what waves execute up to `last`.
    fn encode_walks(&mut self, last: u64) {
        while let Some((cycle, event)) = self.walking.take(last) {
            self.write(cycle, &event);
        }
    }

    /// Encodes an event, if there is room for it.
    fn write(&mut self, cycle: u64, event: &Event) {
        let Some(stream) = &mut self.stream else { return };
        if !self.store.has_room() {
            self.dropped = self.dropped.saturating_add(1);
            self.gap.untold = true;
            return;
        }
        if self.gap.takes_next() {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        if std::mem::take(&mut self.gap.untold) {
            stream.lost(cycle, self.store.bits());
        }
        stream.event(cycle, event, self.store.bits());
        self.store.settle();
    }

    /// Ends tracing at `cycle`; what would have come later is not traced.
    pub(crate) fn stop(&mut self, cycle: u64) {
        if let Some(samples) = self.samples.take() {
            samples.finish(cycle, |cycle, event| self.waiting.push(Waiting { cycle, event }));
            self.sorted = false;
        }
        self.encode(cycle);
        if let Some(stream) = self.stream.take() {
            stream.end(self.store.bits());
        }
        self.waiting.clear();
        self.walking.clear();
        self.store.finish();
    }
}
