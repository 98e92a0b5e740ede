//! Starts and ends of waves on the whole shader engine, and which waves run now.

use crate::emit::{BLOCK, Emitter};
use crate::options::Options;
use crate::program::CodeObjects;
use crate::record::{Occupancy, Pc, Record, RecordKind};

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Kept,
    Sent,
    Dropped,
}

/// Occupancy records of a chunk that wait to be handed over.
#[derive(Debug, Clone)]
pub(crate) struct OccupancyLog {
    mode: Mode,
    stored: Vec<Occupancy>,
    /// Starts of waves whose start the stream does not have. They go in front of everything, the latest first.
    in_front: Vec<Occupancy>,
}

impl OccupancyLog {
    pub(crate) fn new(options: &Options) -> Self {
        let mode = match options.records.contains(RecordKind::Occupancy) {
            false => Mode::Dropped,
            true if options.immediate.contains(RecordKind::Occupancy) => Mode::Sent,
            true => Mode::Kept,
        };
        OccupancyLog { mode, stored: Vec::new(), in_front: Vec::new() }
    }

    /// Adds a record.
    #[inline]
    pub(crate) fn push(&mut self, record: Occupancy, code: &CodeObjects, emitter: &mut Emitter<'_>) {
        self.stored.push(record);
        if self.mode != Mode::Kept {
            self.settle(code, emitter);
        }
    }

    /// Takes the record out again that was just added: it is not kept.
    #[cold]
    #[inline(never)]
    fn settle(&mut self, code: &CodeObjects, emitter: &mut Emitter<'_>) {
        if let Some(mut record) = self.stored.pop()
            && self.mode == Mode::Sent
        {
            resolve(&mut record, code);
            emitter.emit(Record::Occupancy(&[record]));
        }
    }

    /// Adds the start of a wave that was running before the stream began.
    pub(crate) fn push_in_front(&mut self, record: Occupancy, code: &CodeObjects, emitter: &mut Emitter<'_>) {
        match self.mode {
            Mode::Kept => self.in_front.push(record),
            _ => self.push(record, code, emitter),
        }
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.stored.len() + self.in_front.len() >= BLOCK
    }

    /// Hands everything over: what goes in front as a block of its own, since copying the rest behind it costs more.
    pub(crate) fn flush(&mut self, code: &CodeObjects, emitter: &mut Emitter<'_>) {
        self.in_front.reverse();
        for records in [&mut self.in_front, &mut self.stored] {
            if records.is_empty() {
                continue;
            }
            if code.can_resolve_late() {
                records.iter_mut().for_each(|record| resolve(record, code));
            }
            emitter.emit(Record::Occupancy(records));
            records.clear();
        }
    }
}

/// Looks the entry of a start up once more: its code object may have been announced after it.
#[inline]
fn resolve(record: &mut Occupancy, code: &CodeObjects) {
    if record.pc.code_object_id == 0 && record.is_start() {
        record.pc = code.resolve_late(record.pc);
    }
}

/// Places that a [`Running`] tells apart.
const PLACES: usize = 1 << 12;

/// A map from wave place to the entry of the wave that runs there. Places are numbers below 4096.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    /// Address, turned so that 0 stands for no wave, and code object of each entry.
    entries: Box<[[u64; 2]; PLACES]>,
}

impl Default for Running {
    fn default() -> Self {
        Running { entries: zeroed() }
    }
}

/// A table of zeros that is never on the stack.
fn zeroed<T: Copy + Default, const N: usize>() -> Box<[T; N]> {
    match vec![T::default(); N].into_boxed_slice().try_into() {
        Ok(table) => table,
        Err(_) => unreachable!("the slice has N entries"),
    }
}

impl Running {
    #[inline(always)]
    pub(crate) fn contains(&self, place: usize) -> bool {
        self.entries[place % PLACES][0] != 0
    }

    /// Addresses have 48 bits, so that none is turned into 0.
    #[inline(always)]
    pub(crate) fn insert(&mut self, place: usize, entry: Pc) {
        self.entries[place % PLACES] = [!entry.address, entry.code_object_id];
    }

    #[inline(always)]
    pub(crate) fn get(&self, place: usize) -> Option<Pc> {
        let [turned, code_object_id] = self.entries[place % PLACES];
        (turned != 0).then_some(Pc { address: !turned, code_object_id })
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, place: usize) -> Option<Pc> {
        let entry = self.get(place)?;
        self.entries[place % PLACES][0] = 0;
        Some(entry)
    }
}
