//! Which event number of which block counts what.
//!
//! Numbers: `counter_defs.yaml` of ROCm/rocm-systems (projects/rocprofiler-sdk). Meanings and units: AMD Instinct MI300
//! and MI200 performance counters (rocm.docs.amd.com); RDNA names carry the same meanings.

use super::instructions::{self, Kind};
use super::requests::{self, Request};
use wavescope_pm4::{Block, BlockId, Generation, Target};

/// A modelled quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Cycles of the engine clock.
    Cycles,
    /// Cycles in which the XCC had a dispatch in work.
    GuiActive,
    /// Cycles in which a wave was resident on the XCC.
    SpiBusy,
    /// Waves launched, as the sequencer saw them.
    Waves,
    /// Waves launched with fewer lanes than this.
    WavesBelow(u8),
    /// Waves launched with all lanes.
    FullWaves,
    /// Lanes of launched waves.
    Items,
    /// Cycles summed over resident waves, in units of this many cycles.
    WaveCycles(u64),
    /// Cycles with a wave resident.
    BusyCycles,
    /// Cycles with a wave resident, summed over compute units, in units of four cycles.
    BusyUnitCycles,
    /// Waves launched, as the shader processor input saw them.
    SpiWaves,
    /// Work-groups launched.
    SpiGroups,
    /// Cycles with a compute wave launched by the engine resident.
    SpiBusyCycles,
    /// Memory requests of a compute unit.
    Requests(Request),
    /// Instructions of a kind.
    Instructions(Kind),
    /// Waves resident: a level, useful only under an accumulate event.
    Level,
}

/// What an event counts; `None` if it is not modelled.
pub(crate) fn quantity(target: Target, block: &Block, event: u32) -> Option<Quantity> {
    match (block.id, block.name) {
        (BlockId::GRBM, _) => grbm(event),
        (BlockId::SQ | BlockId::SQ_CS, _) => sq(target, event),
        (_, "TA") => requests::request(target, event).map(Quantity::Requests),
        (_, "SPI") if target.generation() == Generation::Gfx9 => spi_gfx9(event),
        _ => None,
    }
}

/// The accumulate events: they sum the level that the preceding counter shows, every cycle or every fourth.
/// Returns the cycles per step.
pub(crate) const fn accumulate(target: Target, event: u32) -> Option<u64> {
    let (low, high) = match target {
        Target::Gfx908 => (1, 158),
        Target::Gfx90a => (1, 185),
        Target::Gfx942 => (1, 184),
        Target::Gfx950 => (1, 200),
        Target::Gfx1030 | Target::Gfx1100 => (u32::MAX, 1),
        Target::Gfx906 | Target::Gfx1200 | Target::Gfx1201 => return None,
    };
    if event == high {
        Some(1)
    } else if event == low {
        Some(4)
    } else {
        None
    }
}

const fn grbm(event: u32) -> Option<Quantity> {
    match event {
        0 => Some(Quantity::Cycles),
        2 => Some(Quantity::GuiActive),
        11 => Some(Quantity::SpiBusy),
        _ => None,
    }
}

fn sq(target: Target, event: u32) -> Option<Quantity> {
    if let Some(kind) = instructions::kind(target, event) {
        return Some(Quantity::Instructions(kind));
    }
    match (target, event) {
        (_, 2) => Some(Quantity::Cycles),
        (_, 3) => Some(Quantity::BusyCycles),
        (_, 4) => Some(Quantity::Waves),
        _ => match target.generation() {
            Generation::Gfx9 => sq_gfx9(target, event),
            Generation::Gfx10 => match event {
                7 => Some(Quantity::Level),
                26 => Some(Quantity::WaveCycles(1)),
                _ => None,
            },
            Generation::Gfx11 | Generation::Gfx12 => (event == 24).then_some(Quantity::WaveCycles(1)),
        },
    }
}

const fn sq_gfx9(target: Target, event: u32) -> Option<Quantity> {
    let wave_cycles = match target {
        Target::Gfx908 => 47,
        Target::Gfx90a => 74,
        Target::Gfx942 => 79,
        Target::Gfx950 => 95,
        _ => u32::MAX,
    };
    match event {
        5 => Some(Quantity::Level),
        6 => Some(Quantity::FullWaves),
        7 => Some(Quantity::WavesBelow(64)),
        8 => Some(Quantity::WavesBelow(48)),
        9 => Some(Quantity::WavesBelow(32)),
        10 => Some(Quantity::WavesBelow(16)),
        13 => Some(Quantity::BusyUnitCycles),
        14 => Some(Quantity::Items),
        _ if event == wave_cycles => Some(Quantity::WaveCycles(4)),
        _ => None,
    }
}

const fn spi_gfx9(event: u32) -> Option<Quantity> {
    match event {
        47 => Some(Quantity::Cycles),
        48 => Some(Quantity::SpiBusyCycles),
        49 => Some(Quantity::SpiGroups),
        52 => Some(Quantity::SpiWaves),
        _ => None,
    }
}
