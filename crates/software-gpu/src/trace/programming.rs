//! What the trace registers of each generation mean.
//!
//! Fields: kernel `gc_9_2_1_sh_mask.h`, `gc_10_3_0_sh_mask.h`, `gc_11_0_0_sh_mask.h`, `gc_12_0_0_sh_mask.h`
//! (`SQ_THREAD_TRACE_*`).

use wavescope_pm4::{Generation, RegisterName as Name};

use super::event::Location;
use super::rdna_stream::RealTime;
use super::store::Buffer;
use super::unit::{Stream, Unit};
use super::{gfx9_stream, rdna_stream};
use crate::sqtt::BitWriter;
use crate::sqtt::rdna::{Header, Layout};

/// What a register write brings about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    /// The buffer is empty again.
    Clear,
    Start,
    /// The registers of one of the two buffers hold the next one.
    Give(usize),
    Stop,
}

/// Buffers are addressed and sized in pages.
const PAGE: u32 = 12;

pub(crate) fn effect(generation: Generation, unit: &Unit, name: Name, value: u32) -> Effect {
    match generation {
        Generation::Gfx9 => effect_gfx9(unit, name, value),
        Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12 => effect_rdna(unit, name, value),
    }
}

fn effect_gfx9(unit: &Unit, name: Name, value: u32) -> Effect {
    match name {
        // RESET_BUFFER.
        Name::SqThreadTraceCtrl if value >> 31 != 0 => Effect::Clear,
        // MODE 22:21 on; MASK_CS 20:18 lets compute waves in.
        Name::SqThreadTraceMode if value >> 21 & 3 == 1 && value >> 18 & 7 != 0 => Effect::Start,
        Name::SqThreadTraceMode => Effect::Stop,
        // Written last of the two halves.
        Name::SqThreadTraceBase2 if unit.is_on() => Effect::Give(0),
        _ => Effect::None,
    }
}

fn effect_rdna(unit: &Unit, name: Name, value: u32) -> Effect {
    match name {
        // gfx12 has no reset of its own: software puts the pointer back.
        Name::SqThreadTraceWptr => Effect::Clear,
        Name::SqThreadTraceCtrl if value & 3 == 1 && unit.is_on() => Effect::None,
        Name::SqThreadTraceCtrl if value & 3 == 1 => Effect::Start,
        Name::SqThreadTraceCtrl => Effect::Stop,
        // gfx12; written last of the two halves.
        Name::SqThreadTraceBuf0BaseHi if unit.is_on() => Effect::Give(0),
        Name::SqThreadTraceBuf1BaseHi if unit.is_on() => Effect::Give(1),
        _ => Effect::None,
    }
}

/// Where a unit writes: its first or second buffer. Only gfx12 has registers for a second.
pub(crate) fn buffer(generation: Generation, unit: &Unit, which: usize) -> Buffer {
    let register = |name| u64::from(unit.register(name));
    let (page, pages) = match generation {
        Generation::Gfx9 => {
            let high = register(Name::SqThreadTraceBase2) & 0xF;
            (register(Name::SqThreadTraceBase) | high << 32, register(Name::SqThreadTraceSize) & 0x3F_FFFF)
        }
        Generation::Gfx10 | Generation::Gfx11 => {
            let size = register(Name::SqThreadTraceBuf0Size);
            (register(Name::SqThreadTraceBuf0Base) | (size & 0xF) << 32, size >> 8 & 0x3F_FFFF)
        }
        Generation::Gfx12 => {
            let [low, high, size] = if which == 0 {
                [Name::SqThreadTraceBuf0BaseLo, Name::SqThreadTraceBuf0BaseHi, Name::SqThreadTraceBuf0Size]
            } else {
                [Name::SqThreadTraceBuf1BaseLo, Name::SqThreadTraceBuf1BaseHi, Name::SqThreadTraceBuf1Size]
            };
            (register(low) | (register(high) & 0xF) << 32, register(size) & 0x3F_FFFF)
        }
    };
    Buffer { address: page << PAGE, size: pages << PAGE, ..Buffer::default() }
}

/// Whether two buffers take turns: WRAP of gfx9's MODE, DOUBLE_BUFFER of gfx12's CTRL.
pub(crate) fn takes_turns(generation: Generation, unit: &Unit) -> bool {
    match generation {
        Generation::Gfx9 => unit.register(Name::SqThreadTraceMode) >> 31 != 0,
        Generation::Gfx10 | Generation::Gfx11 => false,
        Generation::Gfx12 => unit.register(Name::SqThreadTraceCtrl) >> 5 & 1 != 0,
    }
}

/// Opens the unit's stream at `cycle`.
pub(crate) fn stream(
    generation: Generation,
    unit: &Unit,
    cycle: u64,
    cycles_per_tick: u64,
    out: &mut BitWriter,
) -> Stream {
    let tokens = unit.register(Name::SqThreadTraceTokenMask);
    let layout = match generation {
        Generation::Gfx9 => {
            let instructions = unit.register(Name::SqThreadTraceTokenMask2);
            return Stream::Gfx9(gfx9_stream::Stream::begin(cycle, tokens, instructions, out));
        }
        Generation::Gfx10 => Layout::Gfx10,
        Generation::Gfx11 => Layout::Gfx11,
        Generation::Gfx12 => Layout::Gfx12,
    };
    let interval = real_time_interval(layout, unit);
    let real_time = interval.map(|interval| RealTime { cycles_per_tick, interval, last: None });
    Stream::Rdna(rdna_stream::Stream::begin(layout, header(layout, unit), cycle, tokens, real_time, out))
}

/// Cycles between samples of the real-time clock: RT_FREQ 17:16 of the control register. gfx12 has no such field and
/// samples as others do when set to 2.
fn real_time_interval(layout: Layout, unit: &Unit) -> Option<u64> {
    let frequency = match layout {
        Layout::Gfx10 | Layout::Gfx11 => unit.register(Name::SqThreadTraceCtrl) >> 16 & 3,
        Layout::Gfx12 | Layout::Gfx1250 => 2,
    };
    (frequency != 0).then(|| 1024 << frequency)
}

/// The header token of gfx10 and later. Its upper bits are those of captures (gfx1100, gfx1201), without the trace
/// settings that gfx12 repeats there; gfx10's are gfx11's. Of gfx10's two versions the second is taken for gfx10.3: with
/// the first, decoders scale LDS and scalar registers of dispatches as for gfx9.
fn header(layout: Layout, unit: &Unit) -> Header {
    const GFX11_CHIP: u64 = 0x6890_0000 >> 20;
    const GFX12_CHIP: u64 = 0x8_6870_0000 >> 20;
    let (version, chip) = match layout {
        Layout::Gfx10 => (2, GFX11_CHIP),
        Layout::Gfx11 => (3, GFX11_CHIP),
        Layout::Gfx12 | Layout::Gfx1250 => (4, GFX12_CHIP),
    };
    // Bit 59: s_barrier_wait is not traced. Bit 43: two buffers take turns.
    let gfx12 = layout == Layout::Gfx12;
    let no_waits = gfx12 && unit.register(Name::SqThreadTraceTokenMask) >> 14 & 1 != 0;
    let double = gfx12 && takes_turns(Generation::Gfx12, unit);
    let chip = chip | u64::from(no_waits) << (59 - 20) | u64::from(double) << (43 - 20);
    // SIMD_SEL 1:0, WGP_SEL 7:4, SA_SEL 9.
    let mask = unit.register(Name::SqThreadTraceMask);
    Header { version, simd: (mask & 3) as u8, wgp: (mask >> 4 & 7) as u8, sa: (mask >> 9 & 1) as u8, chip }
}

/// Whether a wave at this place is traced in detail.
pub(crate) fn is_target(generation: Generation, unit: &Unit, location: &Location) -> bool {
    let mask = unit.register(Name::SqThreadTraceMask);
    let f = |from: u32, bits: u32| (mask >> from & ((1 << bits) - 1)) as u8;
    match generation {
        // CU_SEL 4:0, SH_SEL 5, SIMD_EN 11:8.
        Generation::Gfx9 => {
            location.unit == f(0, 5) && location.sa == f(5, 1) && f(8, 4) >> location.simd & 1 != 0
        }
        // SIMD_SEL 1:0, WGP_SEL 7:4, SA_SEL 9.
        Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12 => {
            location.unit == f(4, 4) && location.sa == f(9, 1) && location.simd == f(0, 2)
        }
    }
}

/// Whether the engine reports compute work: gfx10 and later have a switch for it.
pub(crate) fn sees_compute(generation: Generation, unit: &Unit) -> bool {
    generation == Generation::Gfx9 || unit.register(Name::ComputeThreadTraceEnable) & 1 != 0
}

/// Whether the unit takes performance samples, and of which compute units.
pub(crate) fn sampled_units(generation: Generation, unit: &Unit) -> Option<u32> {
    /// Bit of the token that carries them.
    const PERF: u32 = 1 << 14;
    let on = generation == Generation::Gfx9 && unit.register(Name::SqThreadTraceTokenMask) & PERF != 0;
    // SH0_MASK 15:0.
    on.then(|| unit.register(Name::SqThreadTracePerfMask) & 0xFFFF)
}

/// What software reads.
pub(crate) fn read(generation: Generation, unit: &Unit, name: Name) -> u32 {
    let store = unit.store();
    let [first, second] = store.full();
    match (generation, name) {
        (Generation::Gfx9, Name::SqThreadTraceWptr) => (store.pieces() & 0x3FFF_FFFF) as u32,
        (Generation::Gfx9, Name::SqThreadTraceStatus) => {
            flag(store.is_unmapped(), 28) | flag(unit.is_on(), 30) | flag(first || second, 31)
        }
        // Public headers do not say what it counts; here, what was lost.
        (Generation::Gfx9, Name::SqThreadTraceCntr) => unit.dropped(),
        (Generation::Gfx11, Name::SqThreadTraceWptr) => {
            // An address, unlike on its neighbours.
            let next = buffer(generation, unit, 0).address + store.pieces() * 32;
            (next >> 5 & 0x1FFF_FFFF) as u32
        }
        (_, Name::SqThreadTraceWptr) => {
            // BUFFER_ID 31.
            (store.pieces() & 0x1FFF_FFFF) as u32 | flag(store.present() == 1, 31)
        }
        (_, Name::SqThreadTraceStatus) => flag(store.is_unmapped(), 24) | flag(unit.is_on(), 25),
        // BUF0_FULL 0, BUF1_FULL 1, PACKET_LOST_BUF_NO_LOCKDOWN 4.
        (_, Name::SqThreadTraceStatus2) => flag(first, 0) | flag(second, 1) | flag(store.is_starved(), 4),
        (_, Name::SqThreadTraceDroppedCntr) => unit.dropped(),
        _ => unit.register(name),
    }
}

const fn flag(set: bool, bit: u32) -> u32 {
    (set as u32) << bit
}
