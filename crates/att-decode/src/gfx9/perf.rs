//! Streamed performance counters of gfx9.
//!
//! Hardware leaves out samples without change. Where the counter interval is known, a gap longer than it is closed
//! with a sample of zeros.

use crate::emit::Emitter;
use crate::quirks;
use crate::record::{PerfEvent, Record};

/// Compute units of a shader engine that send counters.
const UNITS: usize = 16;
/// Counter banks of a compute unit.
const BANKS: usize = 4;

/// How often an interval word may look all samples through again. Real streams have one such word; each costs time in
/// the number of samples, which a hostile stream could use up.
const MAX_REPAIRS: u32 = 32;

/// Samples of a chunk.
#[derive(Debug, Default)]
pub(super) struct PerfLog {
    pub(super) events: Vec<PerfEvent>,
    /// Clocks between two samples, 0 for unknown.
    interval: i64,
    /// Time of the last sample of each unit and bank since the interval is known.
    last: [[i64; BANKS]; UNITS],
    repairs: u32,
}

impl PerfLog {
    /// Hands over what there is once it exceeds `limit`.
    pub(super) fn flush_above(&mut self, limit: u32, emitter: &mut Emitter<'_>) {
        if self.events.len() > limit as usize {
            emitter.emit(Record::PerfEvents(&self.events));
            self.events.clear();
        }
    }

    /// Takes a sample.
    pub(super) fn push(&mut self, event: PerfEvent) {
        if self.interval != 0 {
            let last = &mut self.last[usize::from(event.cu) % UNITS][usize::from(event.bank) % BANKS];
            let end = *last + self.interval;
            if *last > 0 && event.time > end {
                let time = if quirks::GAP_CLOSES_AT_NEXT_SAMPLE { event.time } else { end };
                self.events.push(PerfEvent { time, events: [0; 4], ..event });
            }
            *last = event.time;
        }
        self.events.push(event);
    }

    /// The interval arrived: gaps so far are closed one interval behind the sample before them.
    pub(super) fn set_interval(&mut self, interval: u32) {
        self.interval = i64::from(interval);
        if interval == 0 || self.repairs == MAX_REPAIRS {
            return;
        }
        self.repairs += 1;
        let mut before = [[0; BANKS]; UNITS];
        let mut fillers = Vec::new();
        for event in &self.events {
            let last: &mut i64 = &mut before[usize::from(event.cu) % UNITS][usize::from(event.bank) % BANKS];
            if *last > 0 && event.time > *last + self.interval {
                fillers.push(PerfEvent { time: *last + self.interval, events: [0; 4], ..*event });
            }
            *last = event.time;
        }
        self.events.append(&mut fillers);
        self.events.sort_by_key(|event| event.time);
    }

    /// Closes the last interval of every unit and bank.
    pub(super) fn finish(&mut self) {
        if self.interval == 0 {
            return;
        }
        for (cu, banks) in self.last.iter().enumerate() {
            for (bank, &last) in banks.iter().enumerate().filter(|&(_, &last)| last != 0) {
                let (cu, bank) = (cu as u8, bank as u8);
                self.events.push(PerfEvent { time: last + self.interval, events: [0; 4], cu, bank });
            }
        }
    }
}
