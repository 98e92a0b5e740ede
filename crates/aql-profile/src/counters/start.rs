//! Start: selects every counter and lets them count.

use std::collections::BTreeMap;

use wavescope_pm4::{Attributes, Generation, GrbmGfxIndex, RegisterName};

use super::expand::{Counter, Expanded};
use super::registers::DIE_CONTROLLED;
use crate::commands::Emitter;

/// Result control: bit 25 clears all counters.
pub(super) const CLEAR_ALL: u32 = 1 << 25;
/// Result control: bit 24 enables all counters.
const ENABLE_ANY: u32 = 1 << 24;

/// Result controls on I/O dies, by instance.
type Controls = BTreeMap<u32, u64>;

/// Emits the start commands.
pub(super) fn start(emit: &mut Emitter<'_>, set: &Expanded) {
    let attributes = set.attributes();
    emit.idle();
    emit.select_all();
    if emit.chip.generation == Generation::Gfx9 {
        emit.set(RegisterName::RlcPerfmonClkCntl, 1);
    }
    set_perfmon(emit, attributes, 0);
    enable_sequencer(emit, attributes);
    let (mut rpb, mut atc) = (Controls::new(), Controls::new());
    for counter in set.counters.iter().filter(|counter| !counter.placeholder) {
        program(emit, counter, &mut rpb, &mut atc);
    }
    enable_on_dies(emit, &rpb);
    enable_on_dies(emit, &atc);
    emit.select_all();
    emit.set_sh(RegisterName::ComputePerfcountEnable, 1);
    set_perfmon(emit, attributes, 0);
    set_perfmon(emit, attributes, 1);
    emit.idle();
}

/// CP_PERFMON_CNTL, only in sets that have a block under it.
pub(super) fn set_perfmon(emit: &mut Emitter<'_>, attributes: Attributes, value: u32) {
    if attributes.has(Attributes::CP_PERFMON) {
        emit.set(RegisterName::CpPerfmonCntl, value);
    }
}

fn enable_sequencer(emit: &mut Emitter<'_>, attributes: Attributes) {
    if attributes.has(Attributes::TC) {
        emit.set(RegisterName::SqPerfcounterCtrl, emit.dialect.sq_control_set);
    }
    if let Some(value) = emit.dialect.sq_control2
        && attributes.has(Attributes::TC.union(Attributes::SQ))
    {
        emit.set(RegisterName::SqPerfcounterCtrl2, value);
    }
}

fn program(emit: &mut Emitter<'_>, counter: &Counter, rpb: &mut Controls, atc: &mut Controls) {
    let Some(registers) = counter.registers() else { return };
    let bases = emit.chip.bases;
    let control = registers.control.map(|control| control.address(&bases));
    let memory_control = control.filter(|_| counter.is(Attributes::MC));
    let by_instance = counter.block.instances > 1 && !counter.is(Attributes::WGP);
    emit.select(if by_instance {
        GrbmGfxIndex::instance(counter.instance as u8)
    } else {
        GrbmGfxIndex::BROADCAST
    });
    if let Some(control) = memory_control {
        emit.copy_write(control.into(), CLEAR_ALL);
    }
    if counter.is(Attributes::CLEAN) {
        clean(emit, counter);
    }
    let select_value = counter.block.select.value(counter.select_id);
    if !counter.is(DIE_CONTROLLED) {
        emit.write(registers.select.address(&bases), select_value);
    }
    if counter.is(Attributes::AID) {
        let select = counter.on_die(emit.chip, registers.select);
        emit.on_xcc(0, |emit| {
            if counter.is(DIE_CONTROLLED) {
                emit.copy_write(select, select_value);
            }
        });
        remember(emit, counter, rpb, atc);
    }
    if let Some(control) = memory_control {
        emit.copy_write(control.into(), counter.index);
        emit.copy_write(control.into(), ENABLE_ANY);
    }
    if let Some(control) = control.filter(|_| counter.is(Attributes::SQ)) {
        if emit.chip.generation == Generation::Gfx9 {
            emit.set(RegisterName::SqPerfcounterMask, u32::MAX);
        }
        emit.set_uconfig(control, emit.dialect.sq_control_counter);
    }
}

/// Writes 0 to every counter of the block.
fn clean(emit: &mut Emitter<'_>, counter: &Counter) {
    let bases = emit.chip.bases;
    for registers in counter.block.registers {
        for register in [registers.lo, registers.hi].into_iter().flatten() {
            emit.write(register.address(&bases), 0);
        }
    }
}

/// Keeps the result control of the counter's instance, the first time it is seen.
fn remember(emit: &Emitter<'_>, counter: &Counter, rpb: &mut Controls, atc: &mut Controls) {
    let Some(control) = counter.registers().and_then(|registers| registers.control) else { return };
    let control = counter.on_die(emit.chip, control);
    for (attribute, controls) in [(Attributes::RPB, rpb), (Attributes::ATC, atc)] {
        if counter.is(attribute) {
            controls.entry(counter.instance).or_insert(control);
        }
    }
}

fn enable_on_dies(emit: &mut Emitter<'_>, controls: &Controls) {
    if controls.is_empty() {
        return;
    }
    emit.on_xcc(0, |emit| {
        for &control in controls.values() {
            emit.copy_write(control, CLEAR_ALL);
            emit.copy_write(control, ENABLE_ANY);
        }
    });
}
