//! Register values of thread trace, generation by generation.
//!
//! Fields: kernel `gc_*_sh_mask.h`; values: ROCm/rocm-systems `projects/aqlprofile/gfxip/gfx*/*_primitives.h`.

use wavescope_pm4::Generation;

use super::config::Settings;
use super::layout::PAGE;

/// gfx9 MODE: nothing traced (mode 22:21 off, automatic flush 25, compute mask 20:18).
pub(super) const MODE_OFF: u32 = 0x0204_0000;
/// gfx9 MODE: on (mode 22:21).
const MODE_ON: u32 = 0x0224_0000;
/// gfx9 MODE: go on with the next buffer when one is full.
const WRAP: u32 = 1 << 31;
/// gfx9 CTRL: reset the buffer.
pub(super) const RESET_BUFFER: u32 = 1 << 31;
/// gfx9 HIWATER.
pub(super) const HIWATER: u32 = 6;
/// gfx9 TOKEN_MASK: counter values.
const PERF_TOKENS: u32 = 1 << 14;
/// gfx9 STATUS: the trace is busy.
pub(super) const BUSY_GFX9: u32 = 1 << 30;
/// STATUS from gfx10 on: FINISH_PENDING of pipes 2 to 9.
pub(super) const FINISH_PENDING: u32 = 0x3FC;
/// STATUS from gfx10 on: BUSY.
pub(super) const BUSY: u32 = 1 << 25;
/// gfx12 SPI_SQG_EVENT_CTL: events go into the trace.
pub(super) const SQG_EVENTS: u32 = 3;
/// gfx12 CTRL: write two buffers in turn.
const DOUBLE_BUFFER: u32 = 1 << 5;

/// gfx9 MODE, switched on.
pub(super) const fn mode_on(buffers: u32) -> u32 {
    if buffers > 1 { MODE_ON | WRAP } else { MODE_ON }
}

/// gfx9 MASK: stalls on 7, 14, 15; SIMDs 11:8; unit 4:0.
pub(super) const fn mask_gfx9(settings: &Settings) -> u32 {
    0xC080 | settings.simd << 8 | settings.target
}

/// gfx9 TOKEN_MASK.
pub(super) fn tokens_gfx9(settings: &Settings) -> u32 {
    let tokens = if settings.occupancy { 0xF_906F } else { 0xF_BC6F };
    if settings.counters.is_empty() { tokens } else { tokens | PERF_TOKENS }
}

/// MASK from gfx10 on: SIMD 1:0, WGP 7:4, compute waves (16); gfx11 and gfx12 leave out shader data of other units.
pub(super) const fn mask(generation: Generation, settings: &Settings) -> u32 {
    let waves = match generation {
        Generation::Gfx9 | Generation::Gfx10 => 0x1_0000,
        Generation::Gfx11 | Generation::Gfx12 => 0x3_0000,
    };
    settings.simd & 3 | settings.target << 4 | waves
}

/// TOKEN_MASK from gfx10 on.
pub(super) const fn tokens(generation: Generation, settings: &Settings, selected: bool) -> u32 {
    let (normal, occupancy, off) = match generation {
        Generation::Gfx9 | Generation::Gfx10 => (0x0008_0683, 0x0308_07CF, 0x0300_07FF),
        Generation::Gfx11 => (0x0C08_0683, 0x0308_07CF, 0x0F00_07FF),
        Generation::Gfx12 => (0x8C1F_4003, 0x0308_07FF, 0x1F00_07FF),
    };
    match (selected, settings.occupancy) {
        (false, _) => off,
        (true, true) => occupancy,
        (true, false) => normal,
    }
}

/// CTRL from gfx10 on, switched on or off.
pub(super) const fn control(generation: Generation, settings: &Settings, on: bool) -> u32 {
    let value = match generation {
        Generation::Gfx9 | Generation::Gfx10 => 0xA042_3F41,
        Generation::Gfx11 => 0xA042_3941,
        Generation::Gfx12 => 0xA040_5941,
    };
    match (on, settings.buffers > 1) {
        (true, true) => value | DOUBLE_BUFFER,
        (true, false) => value,
        (false, _) => value & !1,
    }
}

/// Pages of a buffer, in the 22 bits of the size fields.
pub(super) const fn pages(bytes: u64) -> u32 {
    (bytes / PAGE) as u32 & 0x3F_FFFF
}

/// Bits of STATUS that mean trouble, and the width of the write pointer.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusBits {
    pub(super) error: u32,
    pub(super) full: u32,
    pub(super) write_pointer: u32,
}

/// The status bits of a generation.
pub(super) const fn status_bits(generation: Generation) -> StatusBits {
    match generation {
        Generation::Gfx9 => StatusBits { error: 1 << 28, full: 1 << 31, write_pointer: 0x3FFF_FFFF },
        Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12 => {
            StatusBits { error: 1 << 24, full: 0, write_pointer: 0x1FFF_FFFF }
        }
    }
}
