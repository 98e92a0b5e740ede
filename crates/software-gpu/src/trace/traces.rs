//! All trace units of a device, and what their registers mean.

use std::sync::Arc;

use wavescope_pm4::{EventWrite, Generation, GrbmGfxIndex, RegisterName};

use super::event::{DispatchRegisters, Event, Location, dispatch_events};
use super::instructions::Cursor;
use super::programming::{self, Effect};
use super::samples::Plan;
use super::store::{Buffer, Output};
use super::unit::Unit;
use crate::counters::Monitor;
use crate::fault::FaultState;
use crate::memory::Memory;
use crate::place::{Chip, Wave};
use crate::pm4::Selection;
use crate::walk::Timed;
use crate::{Access, DeviceConfig};

/// The device around the units, at one moment.
pub(crate) struct Moment<'a> {
    pub(crate) cycle: u64,
    pub(crate) chip: &'a Chip,
    pub(crate) monitor: &'a Monitor,
    pub(crate) memory: &'a Memory,
    pub(crate) faults: &'a FaultState,
    /// What an engine's (of an XCC) selects and sample control ask for.
    pub(crate) plan: &'a dyn Fn(usize, usize) -> Option<Plan>,
}

/// Trace units, `[xcc * engines + se]`.
#[derive(Debug)]
pub(crate) struct Traces {
    generation: Generation,
    engines: usize,
    cycles_per_tick: u64,
    units: Vec<Unit>,
    /// How many units are on.
    on: usize,
    outputs: Vec<Output>,
}

impl Traces {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let units = (0..config.shader_engines()).map(|_| Unit::new()).collect();
        let engines = usize::from(config.se_per_xcc);
        let (generation, cycles_per_tick) = (config.target.generation(), config.cycles_per_tick());
        Self { generation, engines, cycles_per_tick, units, on: 0, outputs: Vec::new() }
    }

    /// Whether any unit traces.
    pub(crate) const fn any_on(&self) -> bool {
        self.on > 0
    }

    /// Trace data on their way to memory.
    pub(crate) fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// Indices of the units that a selection reaches. Only array 0 has trace registers.
    fn selected(&self, selection: Selection) -> impl Iterator<Item = usize> + use<> {
        let engines = self.engines;
        let reached = move |&unit: &usize| {
            let (xcc, se) = (unit / engines, unit % engines);
            selection.xccs >> xcc & 1 != 0 && selection.index.se.is_none_or(|index| usize::from(index) == se)
        };
        let array = selection.index.sa.unwrap_or(0) == 0;
        (0..self.units.len()).filter(reached).filter(move |_| array)
    }

    /// Reports an event to every unit of the XCCs.
    fn broadcast(&mut self, xccs: u8, cycle: u64, event: Event) {
        if self.any_on() {
            self.selected(Selection { xccs, index: GrbmGfxIndex::BROADCAST })
                .for_each(|unit| self.units[unit].push(cycle, event));
        }
    }

    /// The command processor waited for idle.
    pub(crate) fn idle(&mut self, xccs: u8, cycle: u64) {
        self.broadcast(xccs, cycle, Event::Idle);
    }

    /// The command processor ran EVENT_WRITE.
    pub(crate) fn event(&mut self, xccs: u8, event: EventWrite, cycle: u64) {
        self.broadcast(xccs, cycle, Event::Other(event));
    }

    /// Software wrote a user-data register.
    pub(crate) fn user_data(&mut self, selection: Selection, register: u32, value: u32, cycle: u64) {
        if self.any_on() {
            let event = Event::UserData { register: register as u16, value };
            self.selected(selection).for_each(|unit| self.units[unit].push(cycle, event));
        }
    }

    /// Waves of a dispatch that begins at `cycle`.
    pub(crate) fn launch(
        &mut self,
        cycle: u64,
        registers: &DispatchRegisters,
        waves: &[Wave],
        walks: &[Arc<Timed>],
        chip: &Chip,
    ) {
        if !self.any_on() {
            return;
        }
        for event in dispatch_events(registers) {
            let units = self.units.iter_mut().filter(|unit| programming::sees_compute(self.generation, unit));
            units.for_each(|unit| unit.push(cycle, event));
        }
        waves.iter().for_each(|wave| self.wave(wave, walks.get(wave.walk as usize), 0, chip));
    }

    /// Encodes what happens up to `cycle`.
    pub(crate) fn advance(&mut self, cycle: u64) {
        for unit in &mut self.units {
            unit.advance(cycle);
            self.outputs.extend(unit.take_outputs());
        }
    }

    /// Reports a wave's start, instructions and end as far as they come after `cycle`.
    fn wave(&mut self, wave: &Wave, walk: Option<&Arc<Timed>>, cycle: u64, chip: &Chip) {
        let position = chip.position(wave.place);
        let unit = &mut self.units[usize::from(position.xcc) * self.engines + usize::from(position.se)];
        if !programming::sees_compute(self.generation, unit) {
            return;
        }
        let location = Location { sa: position.sa, unit: position.unit, simd: wave.simd, slot: wave.slot };
        if wave.start >= cycle {
            let (lanes, wave_size) = (wave.lanes, wave.size);
            unit.push(wave.start, Event::WaveStart { location, lanes, wave_size });
        }
        if let Some(walk) = walk.filter(|_| position.sa == 0) {
            unit.sample_wave(position.unit, wave, walk);
        }
        if let Some(walk) = walk.filter(|_| programming::is_target(self.generation, unit, &location)) {
            unit.walk(Cursor::new(self.generation, location, wave.start, Arc::clone(walk), cycle));
        }
        if wave.end >= cycle {
            unit.push(wave.end, Event::WaveEnd { location });
        }
    }

    /// Software wrote a trace register.
    pub(crate) fn write(&mut self, now: &Moment<'_>, selection: Selection, name: RegisterName, value: u32) {
        for index in self.selected(selection) {
            self.units[index].set_register(name, value);
            match programming::effect(self.generation, &self.units[index], name, value) {
                Effect::None => {}
                Effect::Clear => self.units[index].clear(),
                Effect::Start => self.start(now, index),
                Effect::Give(which) => self.give(now, index, which),
                Effect::Stop => self.stop(now, index),
            }
        }
    }

    /// One of a unit's buffers, as the registers have it.
    fn buffer(&self, now: &Moment<'_>, index: usize, which: usize) -> Buffer {
        let buffer = programming::buffer(self.generation, &self.units[index], which);
        let limit = now.faults.trace_bytes().map_or(buffer.size, |limit| buffer.size.min(limit));
        let mapped = now.memory.is_valid(buffer.address, buffer.size, Access::Write);
        Buffer { limit, mapped, ..buffer }
    }

    fn give(&mut self, now: &Moment<'_>, index: usize, which: usize) {
        let buffer = self.buffer(now, index, which);
        // gfx9 has registers for one only.
        let which = (self.generation != Generation::Gfx9).then_some(which);
        self.units[index].give(which, buffer, now.cycle);
        self.outputs.extend(self.units[index].take_outputs());
    }

    fn start(&mut self, now: &Moment<'_>, index: usize) {
        if self.units[index].is_on() {
            return;
        }
        let buffer = self.buffer(now, index, 0);
        let unit = &mut self.units[index];
        // gfx9 resets the buffer by a bit of its own, gfx12 by its pointer; the others begin at its start each time.
        if matches!(self.generation, Generation::Gfx10 | Generation::Gfx11) {
            unit.clear();
        }
        let (generation, cycles_per_tick) = (self.generation, self.cycles_per_tick);
        let double = programming::takes_turns(generation, unit);
        unit.start(buffer, double, now.faults.trace_loss(), |unit, out| {
            programming::stream(generation, unit, now.cycle, cycles_per_tick, out)
        });
        if let Some(units) = programming::sampled_units(self.generation, unit) {
            let plan = (now.plan)(index / self.engines, index % self.engines);
            plan.into_iter().for_each(|plan| unit.sample(Plan { units, ..plan }, now.cycle));
        }
        self.on += 1;
        for (wave, walk) in now.monitor.waves() {
            let position = now.chip.position(wave.place);
            if self.index(position.xcc, position.se) == index {
                self.wave(wave, walk, now.cycle, now.chip);
            }
        }
    }

    fn stop(&mut self, now: &Moment<'_>, index: usize) {
        let unit = &mut self.units[index];
        if unit.is_on() {
            unit.stop(now.cycle);
            self.outputs.extend(unit.take_outputs());
            self.on -= 1;
        }
    }

    fn index(&self, xcc: u8, se: u8) -> usize {
        usize::from(xcc) * self.engines + usize::from(se)
    }

    /// Software reads a trace register of one engine at `cycle`.
    pub(crate) fn read(
        &mut self,
        faults: &FaultState,
        cycle: u64,
        (xcc, index): (usize, GrbmGfxIndex),
        name: RegisterName,
    ) -> u32 {
        let se = usize::from(index.se.unwrap_or(0));
        let unit = xcc * self.engines + se;
        let Some(unit) = self.units.get_mut(unit).filter(|_| se < self.engines) else { return 0 };
        unit.look(cycle);
        self.outputs.extend(unit.take_outputs());
        let value = programming::read(self.generation, unit, name);
        match name {
            RegisterName::SqThreadTraceStatus => faults.status(xcc, se, value),
            _ => value,
        }
    }
}
