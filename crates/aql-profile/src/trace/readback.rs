//! What a trace has written: sizes and statuses out of its control buffer.

use wavescope_pm4::Generation;

use super::layout::{Record, TraceLayout};
use super::values::status_bits;
use crate::status::Status;

/// Bytes that one step of the write pointer stands for.
const WRITE_POINTER_UNIT: u64 = 32;
/// gfx11's write pointer holds an address, of which this many bits count.
const GFX11_ADDRESS_BITS: u64 = (1 << 29) - 1;
/// gfx12 STATUS2: either buffer is full.
const GFX12_FULL: u32 = 3;

/// The outcome of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceReadback {
    /// Success; [`Status::OUT_OF_RESOURCES`] when an engine filled its part; [`Status::EXCEPTION`] when one met
    /// a memory error. Data are there in each case.
    pub status: Status,
    /// The selected engines.
    pub engines: Vec<EngineData>,
}

/// What one engine wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineData {
    /// The engine.
    pub se: u32,
    /// Header that a decoder expects in front of the data (gfx9).
    pub header: Option<u64>,
    /// Where the data begin in the data buffer.
    pub offset: u64,
    /// How many bytes were written, cut to the engine's part.
    pub bytes: u64,
    /// Whether the engine filled its part: data are missing.
    pub full: bool,
    /// Whether the engine met a memory error.
    pub error: bool,
    /// gfx9: STATUS's counter; later: tokens dropped.
    pub counter: u32,
}

/// Reads the records in `control`; `data` is the address of the data buffer.
///
/// Upstream judges the status of *every* engine, also of those that are not traced, so the control buffer must
/// have been zero at start.
pub fn read_control(layout: &TraceLayout, control: &[u8], data: u64) -> TraceReadback {
    let mut status = Status::SUCCESS;
    let mut engines = Vec::new();
    for (se, engine) in (0..).zip(&layout.engines) {
        // The later sources, which several buffers follow, judge selected engines only.
        if layout.buffers > 1 && !engine.selected {
            continue;
        }
        let found = read_engine(layout, control, data, se);
        if found.error {
            status = Status::EXCEPTION;
        } else if found.full && status.is_success() {
            status = Status::OUT_OF_RESOURCES;
        }
        if engine.selected {
            engines.push(found);
        }
    }
    TraceReadback { status, engines }
}

fn read_engine(layout: &TraceLayout, control: &[u8], data: u64, se: u32) -> EngineData {
    let word = |offset| word(control, layout.record_offset(se) + offset);
    let (status, counter) = (word(Record::STATUS), word(Record::COUNTER));
    let bits = status_bits(layout.generation);
    let (offset, capacity) = match layout.engines.get(se as usize) {
        Some(engine) => (engine.offset, engine.capacity),
        None => (0, 0),
    };
    let mut bytes = u64::from(word(Record::WRITE_POINTER) & bits.write_pointer) * WRITE_POINTER_UNIT;
    if layout.generation == Generation::Gfx11 {
        bytes = bytes.wrapping_sub(data + offset) & GFX11_ADDRESS_BITS;
    }
    let mut full = status & bits.full != 0;
    if let (Some(status2), Generation::Gfx12) = (layout.record.status2, layout.generation) {
        full |= word(status2) & GFX12_FULL != 0;
    }
    if bytes >= capacity {
        (bytes, full) = (capacity, true);
    }
    let error = status & bits.error != 0;
    EngineData { se, header: layout.header(se), offset, bytes, full, error, counter }
}

/// A little-endian dword, 0 beyond the end.
pub(super) fn word(bytes: &[u8], offset: u64) -> u32 {
    let at = offset as usize;
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word))
}
