//! The trace of one shader engine: its registers, its buffer, and what waits to be written.

use wavescope_pm4::RegisterName;

use super::event::Event;
use super::instructions::Cursor;
use super::samples::{Plan, Samples};
use super::walking::Walking;
use super::{gfx9_stream, rdna_stream};
use crate::fault::TraceLoss;
use crate::place::Wave;
use crate::sqtt::BitWriter;
use crate::walk::Timed;

/// The hardware writes whole pieces of this many bytes, and counts them in WPTR.
const PIECE: u64 = 32;

/// Bytes on their way to memory.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) address: u64,
    pub(crate) dwords: Vec<u32>,
}

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

/// Where the trace goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Buffer {
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// What the fault plan leaves of it.
    pub(crate) limit: u64,
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
    buffer: Buffer,
    /// Events in the future, or not yet encoded, in order of time if sorted.
    waiting: Vec<Waiting>,
    sorted: bool,
    /// Waves of the target whose instructions are not all events yet.
    walking: Walking,
    samples: Option<Samples>,
    encoded: BitWriter,
    /// Bytes handed out, and of these the ones in the buffer.
    written: u64,
    full: bool,
    dropped: u32,
    gap: Gap,
    /// The buffer is not mapped.
    pub(crate) unmapped: bool,
}

impl Unit {
    pub(crate) fn new() -> Self {
        Self {
            registers: [0; RegisterName::ALL.len()],
            stream: None,
            buffer: Buffer::default(),
            waiting: Vec::new(),
            sorted: true,
            walking: Walking::default(),
            samples: None,
            encoded: BitWriter::default(),
            written: 0,
            full: false,
            dropped: 0,
            gap: Gap::default(),
            unmapped: false,
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

    pub(crate) const fn is_full(&self) -> bool {
        self.full
    }

    pub(crate) const fn dropped(&self) -> u32 {
        self.dropped
    }

    /// Pieces of 32 bytes in the buffer.
    pub(crate) const fn pieces(&self) -> u64 {
        self.written / PIECE
    }

    /// Forgets what was traced: an empty buffer, nothing lost.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.walking.clear();
        self.encoded = BitWriter::default();
        (self.written, self.full, self.dropped, self.unmapped) = (0, false, 0, false);
    }

    /// Starts tracing into `buffer` with the stream that `begin` opens.
    pub(crate) fn start(
        &mut self,
        buffer: Buffer,
        loss: Option<TraceLoss>,
        begin: impl FnOnce(&Self, &mut BitWriter) -> Stream,
    ) {
        (self.buffer, self.gap) = (buffer, Gap { loss, ..Gap::default() });
        let mut out = std::mem::take(&mut self.encoded);
        self.stream = Some(begin(self, &mut out));
        self.encoded = out;
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

    /// Encodes everything up to `cycle`; hands out what is much.
    pub(crate) fn advance(&mut self, cycle: u64) -> Option<Output> {
        self.encode(cycle);
        (self.encoded.bits() > Self::KEPT_BITS).then(|| self.flush())?
    }

    /// Encoded bits that are kept back for the next piece of memory.
    const KEPT_BITS: u64 = 1 << 20;

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
        let room = self.buffer.limit.saturating_sub(self.written) * 8;
        if self.full || self.encoded.bits() >= room {
            self.full = true;
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        if self.gap.takes_next() {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        if std::mem::take(&mut self.gap.untold) {
            stream.lost(cycle, &mut self.encoded);
        }
        stream.event(cycle, event, &mut self.encoded);
    }

    /// Ends tracing at `cycle`; what would have come later is not traced.
    pub(crate) fn stop(&mut self, cycle: u64) -> Option<Output> {
        if let Some(samples) = self.samples.take() {
            samples.finish(cycle, |cycle, event| self.waiting.push(Waiting { cycle, event }));
            self.sorted = false;
        }
        self.encode(cycle);
        if let Some(stream) = self.stream.take() {
            stream.end(&mut self.encoded);
        }
        self.waiting.clear();
        self.walking.clear();
        self.encoded.pad(PIECE);
        self.flush()
    }

    /// Hands out the whole pieces, cut where the buffer ends.
    fn flush(&mut self) -> Option<Output> {
        let mut dwords = self.encoded.take(PIECE as usize / 4);
        let room = self.buffer.limit.saturating_sub(self.written) / PIECE * PIECE;
        if dwords.len() as u64 * 4 > room {
            self.full = true;
            dwords.truncate((room / 4) as usize);
        }
        let address = self.buffer.address + self.written;
        self.written += dwords.len() as u64 * 4;
        (!dwords.is_empty() && !self.unmapped).then_some(Output { address, dwords })
    }
}
