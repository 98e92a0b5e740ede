//! How a trace's buffers are divided among the shader engines.

use wavescope_pm4::{Generation, Target};

use super::config::Settings;
use crate::agent::Chip;
use crate::error::Error;

/// Trace memory is handed out in these units, and must be aligned to them.
pub(super) const PAGE: u64 = 4096;
/// Upstream reserves a page for each of 64 engines that is not selected.
const RESERVED_ENGINES: u64 = 64;
/// What the control buffer has beyond its records.
const CONTROL_PREFIX: u64 = 0x100;
/// The smallest part of an engine.
const LEAST_STEP: u64 = 128 << 10;

/// Sizes and places of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLayout {
    /// Size of the control buffer.
    pub control_bytes: u64,
    /// Size of each data buffer.
    pub data_bytes: u64,
    /// Data buffers.
    pub buffers: u32,
    /// What each selected engine can write.
    pub step: u64,
    /// Every engine, by number.
    pub engines: Vec<EngineLayout>,
    pub(super) generation: Generation,
    pub(super) record: Record,
    pub(super) header: Option<u64>,
}

/// One engine's part of the first data buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineLayout {
    /// Whether it is traced.
    pub selected: bool,
    /// Where its data begin in the buffer.
    pub offset: u64,
    /// What it can write.
    pub capacity: u64,
}

/// The record that stop writes for each engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) bytes: u64,
    /// Offset of STATUS2, where it is read.
    pub(super) status2: Option<u64>,
    /// Offset of the polled status, with several buffers.
    pub(super) polled: Option<u64>,
}

impl Record {
    pub(super) const STATUS: u64 = 0;
    pub(super) const COUNTER: u64 = 4;
    pub(super) const WRITE_POINTER: u64 = 8;
    pub(super) const CLOCK_AT_START: u64 = 16;
    pub(super) const CLOCK_AT_STOP: u64 = 24;

    /// Library 7.2.4's record.
    const SINGLE: Self = Self { bytes: 32, status2: None, polled: None };
    /// The later sources' record, with room for STATUS2 and the polled status.
    const RING: Self = Self { bytes: 40, status2: Some(12), polled: Some(32) };
}

impl TraceLayout {
    /// Divides the buffers, or refuses sizes that the hardware cannot take.
    pub(super) fn new(chip: &Chip, settings: &Settings) -> Result<Self, Error> {
        let ring = settings.buffers > 1;
        if ring {
            check_ring(chip, settings)?;
        }
        let record = if ring { Record::RING } else { Record::SINGLE };
        let step = if ring { settings.buffer_bytes & !(PAGE - 1) } else { step(settings) };
        check_step(chip, settings, step)?;
        Ok(Self {
            control_bytes: record.bytes * u64::from(chip.se) + CONTROL_PREFIX,
            data_bytes: settings.buffer_bytes,
            buffers: settings.buffers,
            step,
            engines: engines(chip, settings, step),
            generation: chip.generation,
            record,
            header: header(chip, settings),
        })
    }

    /// The selected engines' numbers.
    pub fn selected(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.engines).filter(|(_, engine)| engine.selected).map(|(se, _)| se)
    }

    /// The header in front of an engine's data: on gfx9, the 8 bytes that tell a decoder version, unit and
    /// engine; with several buffers, bit 32 says so.
    pub fn header(&self, se: u32) -> Option<u64> {
        let ring = if self.buffers > 1 { 1 << 32 } else { 0 };
        self.header.map(|header| header | u64::from(se) << 26 | ring)
    }

    /// Bytes of the records, without what follows them.
    pub(super) fn record_bytes(&self) -> u64 {
        self.record.bytes * self.engines.len() as u64
    }

    /// Offset of an engine's record in the control buffer.
    pub(super) const fn record_offset(&self, se: u32) -> u64 {
        self.record.bytes * se as u64
    }
}

fn check_ring(chip: &Chip, settings: &Settings) -> Result<(), Error> {
    let has_rings = matches!(chip.generation, Generation::Gfx9 | Generation::Gfx12);
    let engines = (0..chip.se).filter(|&se| is_selected(settings, se)).count();
    if has_rings && engines == 1 && settings.se_mask.is_power_of_two() {
        Ok(())
    } else {
        Err(Error::TraceBuffers { buffers: settings.buffers, mask: settings.se_mask })
    }
}

fn is_selected(settings: &Settings, se: u32) -> bool {
    settings.se_mask.checked_shr(se).unwrap_or(0) & 1 != 0
}

/// Bytes of each selected engine. The arithmetic is upstream's, wrapping included.
fn step(settings: &Settings) -> u64 {
    let selected = u64::from(settings.se_mask.count_ones()).max(1);
    let reserved = (RESERVED_ENGINES - selected) * PAGE;
    let left = settings.buffer_bytes.wrapping_sub(reserved) as i64;
    (left.max(0) as u64 / selected) & !(PAGE - 1)
}

fn check_step(chip: &Chip, settings: &Settings, step: u64) -> Result<(), Error> {
    let below = if chip.generation == Generation::Gfx11 { 512 << 20 } else { 16 << 30 };
    let fits = (LEAST_STEP..below).contains(&step);
    if settings.buffer_bytes == 0 || fits {
        Ok(())
    } else {
        Err(Error::TraceBufferSize { step, least: LEAST_STEP, below })
    }
}

/// Each engine's part: the step, or a page where it is not selected. With several buffers the one selected engine
/// has each buffer to itself.
fn engines(chip: &Chip, settings: &Settings, step: u64) -> Vec<EngineLayout> {
    let idle = if settings.buffers > 1 { 0 } else { PAGE };
    let mut offset = 0;
    let next = |se| {
        let selected = is_selected(settings, se);
        let capacity = if selected { step } else { idle };
        let engine = EngineLayout { selected, offset, capacity };
        offset += capacity;
        engine
    };
    (0..chip.se).map(next).collect()
}

/// gfx9's header without the engine: 0x11, version 15:13, SIMDs 19:16 (always all), unit 25:20.
fn header(chip: &Chip, settings: &Settings) -> Option<u64> {
    let version = match chip.target {
        Target::Gfx942 => 5,
        Target::Gfx950 => 6,
        _ => 4,
    };
    let header = 0x11 | version << 13 | 0xF << 16 | u64::from(settings.target) << 20;
    (chip.generation == Generation::Gfx9).then_some(header)
}
