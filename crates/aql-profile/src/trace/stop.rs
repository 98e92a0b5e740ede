//! Stop: ends the trace and records, for each engine, how far it got.

use wavescope_pm4::{EventWrite, Generation, RegisterName, WaitFunction};

use super::config::Settings;
use super::layout::{Record, TraceLayout};
use super::program::{CONTROL, DATA};
use super::start::{clock_markers, put, select_engine};
use super::values;
use crate::commands::{Emitter, Symbol};

/// Emits the stop commands.
pub(super) fn stop(emit: &mut Emitter<'_>, settings: &Settings, layout: &TraceLayout) {
    emit.select_all();
    emit.idle();
    if emit.chip.generation == Generation::Gfx9 {
        stop_gfx9(emit, settings, layout);
    } else {
        stop_rdna(emit, settings, layout);
    }
    if emit.chip.generation != Generation::Gfx10 {
        emit.acquire(Symbol::start(CONTROL), layout.record_bytes());
    }
    emit.idle();
}

fn stop_gfx9(emit: &mut Emitter<'_>, settings: &Settings, layout: &TraceLayout) {
    if settings.rt_timestamp {
        clock_markers(emit, settings, layout, Record::CLOCK_AT_STOP);
        emit.idle();
    }
    emit.set(RegisterName::SqThreadTraceMode, values::MODE_OFF);
    emit.idle();
    if !settings.counters.is_empty() {
        emit.set(RegisterName::CpPerfmonCntl, 2);
        emit.set(RegisterName::CpPerfmonCntl, 0);
        emit.set(RegisterName::RlcPerfmonClkCntl, 0);
        emit.idle();
    }
    let status = emit.register(RegisterName::SqThreadTraceStatus);
    let per_xcc = emit.chip.se_per_xcc();
    for se in layout.selected() {
        emit.on_xcc(se / per_xcc, |emit| {
            select_engine(emit, se % per_xcc);
            // Upstream gives the register number where a byte offset in the space belongs, so the packet names
            // another register and always passes. The idle before it is what waits.
            let misnamed = status.wrapping_sub(0xC000) & !3;
            emit.wait(WaitFunction::NOT_EQUAL, misnamed, values::BUSY_GFX9, 1);
            record(emit, layout, se);
        });
    }
    emit.select_all();
    emit.acquire(Symbol::start(CONTROL), layout.record_bytes());
    if layout.buffers == 1 {
        emit.acquire(Symbol::start(DATA), layout.data_bytes);
    }
    emit.set(RegisterName::SqThreadTraceSize, 0);
    emit.set(RegisterName::SqThreadTraceCtrl, values::RESET_BUFFER);
    emit.idle();
}

fn stop_rdna(emit: &mut Emitter<'_>, settings: &Settings, layout: &TraceLayout) {
    emit.select_all();
    emit.set_sh(RegisterName::ComputeThreadTraceEnable, 0);
    let generation = emit.chip.generation;
    if generation == Generation::Gfx12 {
        emit.event(EventWrite::THREAD_TRACE_FINISH);
    }
    let status = emit.register(RegisterName::SqThreadTraceStatus);
    emit.wait(WaitFunction::EQUAL, status, values::FINISH_PENDING, 0);
    put(emit, RegisterName::SqThreadTraceCtrl, values::control(generation, settings, false));
    emit.wait(WaitFunction::EQUAL, status, values::BUSY, 0);
    for (se, _) in (0..).zip(&layout.engines) {
        select_engine(emit, se);
        record(emit, layout, se);
    }
    emit.select_all();
}

/// Copies an engine's status, counter and write pointer to its record.
fn record(emit: &mut Emitter<'_>, layout: &TraceLayout, se: u32) {
    let record = Symbol::start(CONTROL).plus(layout.record_offset(se));
    let counter = match emit.chip.generation {
        Generation::Gfx9 => RegisterName::SqThreadTraceCntr,
        Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12 => RegisterName::SqThreadTraceDroppedCntr,
    };
    let mut copy = |name, offset| {
        let register = emit.register(name);
        emit.copy_read_confirmed(register, record.plus(offset));
    };
    copy(RegisterName::SqThreadTraceStatus, Record::STATUS);
    copy(counter, Record::COUNTER);
    copy(RegisterName::SqThreadTraceWptr, Record::WRITE_POINTER);
    if let Some(offset) = layout.record.status2
        && layout.generation == Generation::Gfx12
    {
        copy(RegisterName::SqThreadTraceStatus2, offset);
    }
}
