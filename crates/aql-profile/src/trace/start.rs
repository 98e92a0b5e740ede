//! Start: gives each engine its buffer and lets it trace.

use wavescope_pm4::{Generation, GrbmGfxIndex, RegisterName};

use super::config::{Settings, TRACE_COUNTERS};
use super::layout::{EngineLayout, Record, TraceLayout};
use super::program::{CONTROL, DATA, ring_buffer};
use super::{userdata, values};
use crate::commands::{Emitter, Form, Symbol, Value};

/// Emits the start commands.
pub(super) fn start(emit: &mut Emitter<'_>, settings: &Settings, layout: &TraceLayout) {
    if emit.chip.generation == Generation::Gfx9 {
        start_gfx9(emit, settings, layout);
    } else {
        start_rdna(emit, settings, layout);
    }
    emit.select_all();
    emit.idle();
    userdata::headers(emit, settings);
    clock_markers(emit, settings, layout, Record::CLOCK_AT_START);
}

/// Puts the clock into the trace of every XCC that traces (gfx9).
pub(super) fn clock_markers(emit: &mut Emitter<'_>, settings: &Settings, layout: &TraceLayout, field: u64) {
    if emit.chip.generation != Generation::Gfx9 || !settings.rt_timestamp {
        return;
    }
    let engines = emit.chip.se_per_xcc() as usize;
    for (xcc, of_xcc) in (0..emit.chip.xcc).zip(layout.engines.chunks(engines)) {
        if of_xcc.iter().any(|engine| engine.selected) {
            // The clock goes into the record with the XCC's number, which is an engine's: upstream's way.
            let record = Symbol::start(CONTROL).plus(layout.record_offset(xcc));
            emit.on_xcc(xcc, |emit| userdata::clock_marker(emit, record, field));
        }
    }
}

/// Selects array 0 of an engine.
pub(super) fn select_engine(emit: &mut Emitter<'_>, se: u32) {
    emit.select(GrbmGfxIndex::BROADCAST.with_se(se as u8).with_sa(0));
}

fn start_gfx9(emit: &mut Emitter<'_>, settings: &Settings, layout: &TraceLayout) {
    emit.select_all();
    emit.idle();
    emit.set(RegisterName::SqThreadTraceMask, values::mask_gfx9(settings));
    if !settings.counters.is_empty() {
        start_counters(emit, settings);
    }
    emit.set(RegisterName::SqThreadTraceTokenMask, values::tokens_gfx9(settings));
    emit.set(RegisterName::SqThreadTraceMode, values::MODE_OFF);
    emit.set(RegisterName::SqThreadTraceHiwater, values::HIWATER);
    let per_xcc = emit.chip.se_per_xcc();
    for (se, engine) in (0..).zip(&layout.engines).filter(|(_, engine)| engine.selected) {
        emit.on_xcc(se / per_xcc, |emit| {
            select_engine(emit, se % per_xcc);
            start_engine_gfx9(emit, layout, engine);
        });
    }
}

fn start_engine_gfx9(emit: &mut Emitter<'_>, layout: &TraceLayout, engine: &EngineLayout) {
    emit.set(RegisterName::SqThreadTraceTokenMask2, u32::MAX);
    let status = emit.register(RegisterName::SqThreadTraceStatus);
    emit.copy_write(status.into(), 0);
    base_gfx9(emit, Symbol::start(DATA).plus(engine.offset));
    emit.set(RegisterName::SqThreadTraceSize, values::pages(layout.step));
    emit.set(RegisterName::SqThreadTraceCtrl, values::RESET_BUFFER);
    emit.idle();
    emit.set(RegisterName::SqThreadTraceMode, values::mode_on(layout.buffers));
    if layout.buffers > 1 {
        emit.idle();
        base_gfx9(emit, Symbol::start(ring_buffer(layout, 0)));
    }
}

/// gfx9 BASE and BASE2.
pub(super) fn base_gfx9(emit: &mut Emitter<'_>, data: Symbol) {
    emit.set(RegisterName::SqThreadTraceBase, Value::Address(Form::Shr12, data));
    emit.set(RegisterName::SqThreadTraceBase2, Value::Address(Form::Shr44 { fields: 0 }, data));
}

/// gfx9: eight sequencer counters whose values go into the trace.
fn start_counters(emit: &mut Emitter<'_>, settings: &Settings) {
    emit.set(RegisterName::RlcPerfmonClkCntl, 1);
    emit.set_sh(RegisterName::ComputePerfcountEnable, 1);
    emit.set(RegisterName::CpPerfmonCntl, 0);
    let sequencer = emit.chip.target.block(wavescope_pm4::BlockId::SQ);
    let selects = sequencer.map_or(&[][..], |block| block.registers);
    let chosen = settings.counters.iter().map(|(id, simds)| id | simds << 24).chain(std::iter::repeat(0));
    for (registers, value) in selects.iter().zip(chosen).take(TRACE_COUNTERS) {
        let address = registers.select.address(&emit.chip.bases);
        emit.set_uconfig(address, value);
    }
    emit.set(RegisterName::SqThreadTracePerfMask, settings.counter_mask);
    emit.set(RegisterName::SqPerfcounterMask, settings.counter_mask);
    emit.set(RegisterName::SqPerfcounterCtrl, settings.counter_control);
    emit.set(RegisterName::CpPerfmonCntl, 1);
    emit.idle();
}

fn start_rdna(emit: &mut Emitter<'_>, settings: &Settings, layout: &TraceLayout) {
    emit.select_all();
    let status = emit.register(RegisterName::SqThreadTraceStatus);
    emit.copy_write(status.into(), 0);
    if emit.chip.generation == Generation::Gfx12 {
        put(emit, RegisterName::SpiSqgEventCtl, values::SQG_EVENTS);
    }
    for (se, engine) in
        (0..).zip(&layout.engines).filter(|(_, engine)| layout.buffers == 1 || engine.selected)
    {
        select_engine(emit, se);
        give_buffer(emit, engine);
        let generation = emit.chip.generation;
        put(emit, RegisterName::SqThreadTraceMask, values::mask(generation, settings));
        put(
            emit,
            RegisterName::SqThreadTraceTokenMask,
            values::tokens(generation, settings, engine.selected),
        );
        put(emit, RegisterName::SqThreadTraceCtrl, values::control(generation, settings, true));
        if layout.buffers > 1 {
            give_second_buffer(emit, layout, engine);
        }
    }
    for se in layout.selected() {
        select_engine(emit, se);
        emit.set_sh(RegisterName::ComputeThreadTraceEnable, 1);
    }
}

fn give_buffer(emit: &mut Emitter<'_>, engine: &EngineLayout) {
    let data = Symbol::start(DATA).plus(engine.offset);
    let (low, high) = (Value::Address(Form::Shr12, data), Form::Shr44 { fields: 0 });
    if emit.chip.generation != Generation::Gfx12 {
        let fields = values::pages(engine.capacity) << 8;
        put(emit, RegisterName::SqThreadTraceBuf0Size, Value::Address(Form::Shr44 { fields }, data));
        return put(emit, RegisterName::SqThreadTraceBuf0Base, low);
    }
    put(emit, RegisterName::SqThreadTraceBuf0Size, values::pages(engine.capacity));
    put(emit, RegisterName::SqThreadTraceBuf0BaseLo, low);
    put(emit, RegisterName::SqThreadTraceBuf0BaseHi, Value::Address(high, data));
    put(emit, RegisterName::SqThreadTraceWptr, 0);
}

/// gfx12: the buffer that is written after the first.
fn give_second_buffer(emit: &mut Emitter<'_>, layout: &TraceLayout, engine: &EngineLayout) {
    let next = Symbol::start(ring_buffer(layout, 0));
    put(emit, RegisterName::SqThreadTraceBuf1Size, values::pages(engine.capacity));
    put(emit, RegisterName::SqThreadTraceBuf1BaseLo, Value::Address(Form::Shr12, next));
    emit.idle();
    let high = Value::Address(Form::Shr44 { fields: 0 }, next);
    put(emit, RegisterName::SqThreadTraceBuf1BaseHi, high);
}

/// Writes a trace register the generation's way: by SET on gfx11, by COPY_DATA on gfx10 and gfx12.
pub(super) fn put(emit: &mut Emitter<'_>, name: RegisterName, value: impl Into<Value>) {
    let address = emit.register(name);
    if emit.chip.generation == Generation::Gfx11 {
        emit.set_uconfig(address, value);
    } else {
        emit.copy_write(address.into(), value);
    }
}
