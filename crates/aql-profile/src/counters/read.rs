//! Read: latches the live counters and copies them to the output buffer; they count on.

use wavescope_pm4::{Attributes, CounterRegisters, Generation, GrbmGfxIndex};

use super::expand::{Counter, Expanded};
use super::registers::DIE_CONTROLLED;
use super::start::set_perfmon;
use crate::commands::{Emitter, Symbol};

/// CP_PERFMON_CNTL: count on, and latch.
const COUNT_AND_SAMPLE: u32 = 0x401;
/// Bytes of one value.
pub(super) const VALUE_BYTES: u64 = 8;
/// The shader arrays read of a block that each array has, whatever the chip's count.
pub(super) const ARRAYS_READ: u32 = 2;

/// What reading does besides emitting commands.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Bytes of output that values take.
    pub(super) bytes: u64,
    /// Upper halves that no packet writes and the maker sets to zero (gfx12).
    pub(super) zeroed: Vec<u64>,
}

/// Emits the read commands.
pub(super) fn read(emit: &mut Emitter<'_>, set: &Expanded, output: Symbol) -> Reading {
    let mut to = Cursor { output, reading: Reading::default() };
    let attributes = set.attributes();
    set_perfmon(emit, attributes, COUNT_AND_SAMPLE);
    for counter in set.counters.iter().filter(|counter| counter.is(Attributes::AID)) {
        read_on_die(emit, counter, attributes, &mut to);
    }
    for xcc in 0..emit.chip.xcc {
        emit.on_xcc(xcc, |emit| read_xcc(emit, set, &mut to));
    }
    emit.acquire(output, to.reading.bytes);
    to.reading
}

/// The next place in the output buffer.
struct Cursor {
    output: Symbol,
    reading: Reading,
}

impl Cursor {
    fn next(&mut self) -> Symbol {
        let place = self.output.plus(self.reading.bytes);
        self.reading.bytes += VALUE_BYTES;
        place
    }
}

fn read_on_die(emit: &mut Emitter<'_>, counter: &Counter, set: Attributes, to: &mut Cursor) {
    let Some(registers) = counter.registers() else { return };
    let place = to.next();
    let chip = emit.chip;
    emit.on_xcc(0, |emit| {
        if let Some(control) = registers.control
            && set.has(DIE_CONTROLLED)
        {
            emit.copy_write(counter.on_die(chip, control), counter.index);
        }
        for (half, at) in [(registers.lo, place), (registers.hi, place.plus(4))] {
            if let Some(half) = half {
                emit.copy_read(counter.on_die(chip, half), at);
            }
        }
    });
}

fn read_xcc(emit: &mut Emitter<'_>, set: &Expanded, to: &mut Cursor) {
    emit.select_all();
    if emit.chip.generation == Generation::Gfx10 {
        // Upstream reads the first GRBM counter ahead of everything; the first value overwrites it.
        let grbm = set.counters.iter().find(|counter| counter.is(Attributes::GRBM));
        if let Some(registers) = grbm.and_then(Counter::registers) {
            read_value(emit, registers, to.output, true);
        }
    }
    emit.idle();
    for counter in set.counters.iter().filter(|counter| !counter.is(Attributes::AID)) {
        if counter.placeholder {
            to.reading.bytes += VALUE_BYTES * u64::from(emit.chip.se_per_xcc());
        } else {
            emit.select_all();
            read_counter(emit, counter, to);
        }
    }
    emit.select_all();
}

fn read_counter(emit: &mut Emitter<'_>, counter: &Counter, to: &mut Cursor) {
    let Some(registers) = counter.registers() else { return };
    let several = counter.block.instances > 1;
    let index =
        if several { GrbmGfxIndex::instance(counter.instance as u8) } else { GrbmGfxIndex::BROADCAST };
    if counter.is(Attributes::MC) {
        emit.select(index);
        if let Some(control) = registers.control {
            let address = control.address(&emit.chip.bases).into();
            emit.copy_write(address, counter.index);
        }
        let place = to.next();
        return read_value(emit, registers, place, true);
    }
    let wgps = wgps_read(emit, counter);
    let engines = if counter.is(Attributes::SE) { emit.chip.se_per_xcc() } else { 1 };
    let arrays = if counter.is(Attributes::SA) { ARRAYS_READ } else { 1 };
    for se in 0..engines {
        for sa in 0..arrays {
            let at = engine_index(counter, index, se as u8, sa as u8);
            match wgps {
                Some(wgps) => read_wgps(emit, counter, registers, (se as u8, sa as u8), wgps, to),
                None => {
                    emit.select(at);
                    let place = to.next();
                    read_value(emit, registers, place, true);
                }
            }
        }
    }
}

/// Work-group processors to read one by one; `None` for a block above them.
fn wgps_read(emit: &Emitter<'_>, counter: &Counter) -> Option<u32> {
    is_per_wgp(emit.chip.generation, counter.block.attributes).then(|| emit.chip.wgps_read())
}

/// Whether the block has a copy in every work-group processor.
pub(super) const fn is_per_wgp(generation: Generation, attributes: Attributes) -> bool {
    match generation {
        Generation::Gfx9 | Generation::Gfx10 => false,
        Generation::Gfx11 => attributes.has(Attributes::SQ),
        Generation::Gfx12 => attributes.has(Attributes::WGP),
    }
}

/// The selection of one copy above work-group processors. With one instance the array is not selected, so gfx12
/// GL1A reads the same copy twice: upstream's defect, kept.
fn engine_index(counter: &Counter, instance: GrbmGfxIndex, se: u8, sa: u8) -> GrbmGfxIndex {
    let several = counter.block.instances > 1;
    match (several, counter.is(Attributes::SE), counter.is(Attributes::SA)) {
        (true, _, true) => instance.with_se(se).with_sa(sa),
        (_, true, _) => instance.with_se(se),
        _ => instance,
    }
}

fn read_wgps(
    emit: &mut Emitter<'_>,
    counter: &Counter,
    registers: &CounterRegisters,
    (se, sa): (u8, u8),
    wgps: u32,
    to: &mut Cursor,
) {
    let newest = emit.chip.generation == Generation::Gfx12;
    let instance = if newest && counter.block.instances > 1 { counter.instance as u8 } else { 0 };
    for wgp in 0..wgps {
        emit.select(GrbmGfxIndex::BROADCAST.with_se(se).with_sa(sa).with_wgp(wgp as u8, instance));
        let place = to.next();
        read_value(emit, registers, place, newest);
        if newest && registers.hi.is_none() {
            to.reading.zeroed.push(place.offset + 4);
        }
    }
}

/// Copies a value's halves; gfx11's sequencer counters have only 32 bits.
fn read_value(emit: &mut Emitter<'_>, registers: &CounterRegisters, to: Symbol, with_high: bool) {
    let bases = emit.chip.bases;
    if let Some(lo) = registers.lo {
        emit.copy_read(lo.address(&bases).into(), to);
    }
    if let Some(hi) = registers.hi.filter(|_| with_high) {
        emit.copy_read(hi.address(&bases).into(), to.plus(4));
    }
}
