//! Several data buffers written in turn: packets that poll the engine and give it the next buffer.
//!
//! After the later sources of upstream's library (ROCm/rocm-systems, develop branch:
//! `projects/aqlprofile/src/core/threadtrace.cpp`, `src/pm4/sqtt_builder.h`); version 7.2.4 has one buffer only,
//! so no golden exists for what is written here. Where those sources change register values that have nothing to do with
//! several buffers, 7.2.4's are kept.

use wavescope_core::AqlPacket;
use wavescope_pm4::{Generation, RegisterName, Target};

use super::layout::TraceLayout;
use super::program::{CONTROL, ring_buffer};
use super::readback::word;
use super::start::{base_gfx9, put, select_engine};
use crate::agent::Chip;
use crate::commands::{Commands, Emitter, Form, Symbol, Value};
use crate::error::Error;

/// The packets of one engine's buffer ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferPackets {
    /// The 8-byte header in front of the data (gfx9), 0 where there is none.
    pub header: u64,
    /// Polls the engine; run it before each look at the status.
    pub query: AqlPacket,
    /// Hands over the ring's entries, one packet each, to be used in turn.
    pub swaps: Vec<AqlPacket>,
}

/// What the last poll found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferStatus {
    /// The engine filled a buffer: run the next swap packet and take the data.
    pub needs_swap: bool,
    /// The trace has stopped because no buffer was free in time: data are lost.
    pub is_too_late: bool,
    /// Where the full buffer lies.
    pub data: u64,
    /// How many bytes it holds.
    pub bytes: u64,
    /// Swaps before this one: the index of the packet to run, modulo the ring.
    pub swaps: u64,
}

/// STATUS2 of gfx12: buffer 0 full, buffer 1 full; packets lost (bit 4).
const GFX12_FULL: u32 = 3;
const GFX12_LOST: u32 = 1 << 4;
/// STATUS of gfx9: buffer full.
const GFX9_FULL: u32 = 1 << 31;

/// Entries of the ring. Except on the first gfx9 parts, the hardware's two buffers have changed places after a
/// turn of odd length, so two turns are made.
pub(super) fn swaps_in_ring(chip: &Chip, layout: &TraceLayout) -> u32 {
    let doubled = chip.target != Target::Gfx906 && layout.buffers % 2 == 1;
    if doubled { layout.buffers * 2 } else { layout.buffers }
}

/// The commands of swap `at`: the engine has gone on to entry `at` of the ring, and gets the entry after it as next.
pub(super) fn swap_commands(chip: &Chip, layout: &TraceLayout, se: u32, at: u32) -> Result<Commands, Error> {
    let next = Symbol::start(ring_buffer(layout, at + 1));
    let current = Symbol::start(ring_buffer(layout, at));
    on_engine(chip, se, |emit| {
        if chip.generation == Generation::Gfx9 {
            base_gfx9(emit, next);
        } else {
            let (low, high) = if at.is_multiple_of(2) {
                (RegisterName::SqThreadTraceBuf0BaseLo, RegisterName::SqThreadTraceBuf0BaseHi)
            } else {
                (RegisterName::SqThreadTraceBuf1BaseLo, RegisterName::SqThreadTraceBuf1BaseHi)
            };
            put(emit, low, Value::Address(Form::Shr12, next));
            emit.idle();
            put(emit, high, Value::Address(Form::Shr44 { fields: 0 }, next));
        }
        emit.acquire(current, layout.data_bytes);
    })
}

/// The commands that copy the engine's status to its record.
pub(super) fn status_commands(chip: &Chip, layout: &TraceLayout, se: u32) -> Result<Commands, Error> {
    let name = match chip.generation {
        Generation::Gfx12 => RegisterName::SqThreadTraceStatus2,
        Generation::Gfx9 | Generation::Gfx10 | Generation::Gfx11 => RegisterName::SqThreadTraceStatus,
    };
    let record = Symbol::start(CONTROL).plus(layout.record_offset(se));
    on_engine(chip, se, |emit| {
        let register = emit.register(name);
        emit.copy_read(register.into(), record.plus(layout.record.polled.unwrap_or(0)));
        emit.idle();
        emit.acquire(record, layout.record.bytes);
    })
}

fn on_engine(chip: &Chip, se: u32, body: impl FnOnce(&mut Emitter<'_>)) -> Result<Commands, Error> {
    let mut emit = Emitter::new(chip);
    let per_xcc = chip.se_per_xcc();
    emit.on_xcc(se / per_xcc, |emit| {
        select_engine(emit, se % per_xcc);
        body(emit);
        emit.select_all();
    });
    emit.finish()
}

/// Judges the polled status.
pub(super) fn ring_status(layout: &TraceLayout, control: &[u8], se: u32) -> BufferStatus {
    let polled = word(control, layout.record_offset(se) + layout.record.polled.unwrap_or(0));
    let (full, lost) = match layout.generation {
        Generation::Gfx12 => (GFX12_FULL, GFX12_LOST),
        Generation::Gfx9 | Generation::Gfx10 | Generation::Gfx11 => (GFX9_FULL, 0),
    };
    let needs_swap = polled & full != 0;
    let is_too_late = needs_swap && polled & lost != 0;
    BufferStatus { needs_swap, is_too_late, bytes: layout.step, ..BufferStatus::default() }
}
