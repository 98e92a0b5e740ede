//! Starts and ends of waves on the whole shader engine, and which waves run now.

use crate::emit::{BLOCK, Emitter};
use crate::program::CodeObjects;
use crate::record::{Occupancy, Pc, Record, RecordKind};

/// Occupancy records of a chunk that wait to be handed over.
#[derive(Debug, Clone, Default)]
pub(crate) struct OccupancyLog {
    stored: Vec<Occupancy>,
    /// Starts of waves whose start the stream does not have. They go in front of everything, the latest first.
    in_front: Vec<Occupancy>,
}

impl OccupancyLog {
    /// Adds a record.
    #[inline]
    pub(crate) fn push(&mut self, record: Occupancy, code: &CodeObjects, emitter: &mut Emitter<'_>) {
        if emitter.is_immediate(RecordKind::Occupancy) {
            emitter.emit(Record::Occupancy(&[late(record, code)]));
        } else if emitter.wants(RecordKind::Occupancy) {
            self.stored.push(record);
        }
    }

    /// Adds the start of a wave that was running before the stream began.
    pub(crate) fn push_in_front(&mut self, record: Occupancy, code: &CodeObjects, emitter: &mut Emitter<'_>) {
        if emitter.is_immediate(RecordKind::Occupancy) {
            emitter.emit(Record::Occupancy(&[late(record, code)]));
        } else if emitter.wants(RecordKind::Occupancy) {
            self.in_front.push(record);
        }
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.stored.len() + self.in_front.len() >= BLOCK
    }

    /// Hands everything over.
    pub(crate) fn flush(&mut self, code: &CodeObjects, emitter: &mut Emitter<'_>) {
        if !self.in_front.is_empty() {
            self.in_front.reverse();
            self.in_front.append(&mut self.stored);
            std::mem::swap(&mut self.in_front, &mut self.stored);
        }
        if self.stored.is_empty() {
            return;
        }
        for record in &mut self.stored {
            *record = late(*record, code);
        }
        emitter.emit(Record::Occupancy(&self.stored));
        self.stored.clear();
    }
}

/// A start whose code object may have been announced after it.
fn late(mut record: Occupancy, code: &CodeObjects) -> Occupancy {
    if record.is_start() {
        record.pc = code.resolve_late(record.pc);
    }
    record
}

/// A map from wave place to the entry of the wave that runs there. Places are small numbers.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    bits: Vec<u64>,
    entries: Vec<Pc>,
}

impl Running {
    /// An empty map of `places` places.
    pub(crate) fn new(places: usize) -> Self {
        Running { bits: vec![0; places.div_ceil(64)], entries: vec![Pc::INVALID; places] }
    }

    #[inline]
    pub(crate) fn contains(&self, place: usize) -> bool {
        self.bits[place / 64] >> (place % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn insert(&mut self, place: usize, entry: Pc) {
        self.bits[place / 64] |= 1 << (place % 64);
        self.entries[place] = entry;
    }

    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<Pc> {
        self.contains(place).then(|| self.entries[place])
    }

    #[inline]
    pub(crate) fn remove(&mut self, place: usize) -> Option<Pc> {
        let entry = self.get(place)?;
        self.bits[place / 64] &= !(1 << (place % 64));
        Some(entry)
    }
}
