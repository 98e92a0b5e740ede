//! Runs a compiled buffer.

use std::collections::HashSet;

use wavescope_pm4::{BlockId, Generation, GrbmGfxIndex, RegisterName, WaitRegMem};

use super::cache::Run;
use super::program::{Destination, Op, Operation, Register, Source};
use super::registers::{RegisterFile, Selection};
use super::role::{Counter, Half, Role, Roles};
use crate::counters::{Gates, Monitor, accumulate, quantity};
use crate::fault::FaultState;
use crate::memory::{Memory, MemoryFault};
use crate::place::{Chip, Position};
use crate::trace::{Moment, Plan, Traces};
use crate::{DeviceConfig, Truth, TruthSink};

/// Memory writes of a run, held back until the device's lock is free: a page that faults must stop one queue only.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    words: Vec<(u64, u32)>,
}

impl Stores {
    fn push(&mut self, address: u64, value: u32) {
        self.words.push((address, value));
    }

    /// Reads a dword as if all writes had been done.
    fn load(&self, memory: &Memory, address: u64) -> Result<u32, MemoryFault> {
        match self.words.iter().rev().find(|(at, _)| *at == address) {
            Some(&(_, value)) => Ok(value),
            None => memory.load_u32(address),
        }
    }

    /// Does them, in order.
    pub(crate) fn flush(&mut self, memory: &Memory) -> Result<(), MemoryFault> {
        self.words.drain(..).try_for_each(|(address, value)| memory.store_u32(address, value))
    }
}

/// How far a run came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// Something has to happen first; call again.
    Waiting,
}

/// Why a run cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandFault {
    Memory(MemoryFault),
    /// Dword offset of what is no command.
    Invalid(u32),
}

impl From<MemoryFault> for CommandFault {
    fn from(fault: MemoryFault) -> Self {
        Self::Memory(fault)
    }
}

/// What a queue keeps for itself between buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// GRBM_GFX_INDEX by XCC.
    pub(crate) gfx_index: [u32; 8],
    /// COMPUTE_PERFCOUNT_ENABLE by XCC.
    pub(crate) perfcount: u8,
}

impl Default for Context {
    fn default() -> Self {
        Self { gfx_index: [0xE000_0000; 8], perfcount: 0 }
    }
}

/// The device's state as a run sees it, with the present moment.
pub(crate) struct Command<'a> {
    pub(crate) config: &'a DeviceConfig,
    pub(crate) roles: &'a Roles,
    pub(crate) chip: &'a Chip,
    pub(crate) memory: &'a Memory,
    pub(crate) faults: &'a FaultState,
    pub(crate) registers: &'a mut RegisterFile,
    pub(crate) monitor: &'a mut Monitor,
    pub(crate) traces: &'a mut Traces,
    pub(crate) reported: &'a mut HashSet<(BlockId, u32)>,
    pub(crate) truth: Option<&'a dyn TruthSink>,
    pub(crate) context: &'a mut Context,
    pub(crate) stores: &'a mut Stores,
    /// Present tick.
    pub(crate) tick: u64,
    /// No kernel of the queue is in flight.
    pub(crate) idle: bool,
}

impl Command<'_> {
    /// Goes on with `run` until it ends or has to wait.
    pub(crate) fn run(&mut self, run: &mut Run) -> Result<Outcome, CommandFault> {
        while let Some(op) = run.program.ops.get(run.next) {
            if !self.step(op)? {
                return Ok(Outcome::Waiting);
            }
            run.next += 1;
        }
        Ok(Outcome::Done)
    }

    fn cycle(&self) -> u64 {
        self.tick * self.config.cycles_per_tick()
    }

    /// False: not yet.
    fn step(&mut self, op: &Op) -> Result<bool, CommandFault> {
        match op.operation {
            Operation::Write { register, value } => self.write(op.xccs, &register, value),
            Operation::Copy { source, destination, wide } => {
                self.copy(op.xccs, &source, &destination, wide)?
            }
            Operation::WaitRegister { register, wait } => {
                let mut each = (0..8).map(|xcc| 1 << xcc).filter(|xcc| op.xccs & xcc != 0);
                return Ok(each.all(|xcc| passes(&wait, self.read(xcc, &register))));
            }
            Operation::WaitMemory(wait) => {
                let value = self.stores.load(self.memory, wait.address)?;
                return Ok(passes(&wait, value));
            }
            Operation::Idle => {
                if !self.idle {
                    return Ok(false);
                }
                self.traces.idle(op.xccs, self.cycle());
            }
            Operation::Event(event) => self.traces.event(op.xccs, event, self.cycle()),
            Operation::Fault => return Err(CommandFault::Invalid(op.offset)),
        }
        Ok(true)
    }

    fn copy(
        &mut self,
        xccs: u8,
        source: &Source,
        destination: &Destination,
        wide: bool,
    ) -> Result<(), CommandFault> {
        // Every XCC of the mask runs the packet. Where they would all write one place, the last one's data stay.
        let (low, high) = match *source {
            Source::Register(register) => {
                let high = if wide { self.read(xccs, &self.following(&register)) } else { 0 };
                (self.read(xccs, &register), high)
            }
            Source::Memory(address) => {
                let high = if wide { self.stores.load(self.memory, address + 4)? } else { 0 };
                (self.stores.load(self.memory, address)?, high)
            }
            Source::Immediate(value) => (value as u32, (value >> 32) as u32),
            Source::Clock => (self.tick as u32, (self.tick >> 32) as u32),
        };
        match *destination {
            Destination::Register(register) => {
                self.write(xccs, &register, low);
                if wide {
                    self.write(xccs, &self.following(&register), high);
                }
            }
            Destination::Memory(address) => {
                self.stores.push(address, low);
                if wide {
                    self.stores.push(address + 4, high);
                }
            }
        }
        Ok(())
    }

    /// The register behind another.
    fn following(&self, register: &Register) -> Register {
        let address = register.address + 1;
        Register { address, role: self.roles.of(address) }
    }

    /// Calls `visit` once for each group of XCCs that share a GRBM_GFX_INDEX.
    fn each_selection(&mut self, xccs: u8, mut visit: impl FnMut(&mut Self, Selection)) {
        let generation = self.config.target.generation();
        let mut left = xccs;
        while left != 0 {
            let value = self.context.gfx_index[left.trailing_zeros() as usize];
            let same = (0..8).filter(|&xcc| self.context.gfx_index[xcc] == value);
            let group = left & same.fold(0, |mask, xcc| mask | 1 << xcc);
            left &= !group;
            visit(self, Selection { xccs: group, index: GrbmGfxIndex::decode(generation, value) });
        }
    }

    fn write(&mut self, xccs: u8, register: &Register, value: u32) {
        match register.role {
            Role::GfxIndex => {
                let all = self.context.gfx_index.iter_mut().enumerate();
                all.filter(|(xcc, _)| xccs >> xcc & 1 != 0).for_each(|(_, index)| *index = value);
            }
            Role::PerfmonControl => self.perfmon(xccs, value),
            Role::PerfmonClock => {
                self.sync();
                self.monitor.set_clock(xccs, value & 1 != 0);
            }
            Role::PerfcountEnable => {
                let enabled = if value & 1 != 0 { xccs } else { 0 };
                self.context.perfcount = self.context.perfcount & !xccs | enabled;
            }
            Role::Gate => {
                self.sync();
                self.store(xccs, register, value);
            }
            Role::UserData => self.user_data(xccs, register, value),
            Role::Trace(name) => self.trace(xccs, name, value),
            Role::Select(counter) => {
                self.store(xccs, register, value);
                self.report(&counter, value);
            }
            Role::Value(..) | Role::Plain => self.store(xccs, register, value),
        }
    }

    fn store(&mut self, xccs: u8, register: &Register, value: u32) {
        self.each_selection(xccs, |this, selection| this.registers.write(register.address, selection, value));
    }

    /// Brings the counters up to the present.
    fn sync(&mut self) {
        let Self { config, roles, chip, .. } = *self;
        let registers = &*self.registers;
        self.monitor.sync(self.tick * config.cycles_per_tick(), chip, || gates(config, roles, registers));
    }

    fn perfmon(&mut self, xccs: u8, value: u32) {
        const SAMPLE_ENABLE: u32 = 1 << 10;
        self.sync();
        self.monitor.set_state(xccs, value & 0xF);
        if value & SAMPLE_ENABLE != 0 {
            self.monitor.sample(xccs);
        }
    }

    fn user_data(&mut self, xccs: u8, register: &Register, value: u32) {
        let cycle = self.cycle();
        self.each_selection(xccs, |this, selection| {
            this.traces.user_data(selection, register.address as u32, value, cycle);
        });
    }

    fn trace(&mut self, xccs: u8, name: RegisterName, value: u32) {
        let cycle = self.cycle();
        self.each_selection(xccs, |this, selection| {
            let Self { chip, memory, faults, config, roles, .. } = *this;
            let Self { registers, monitor, traces, .. } = this;
            let plan = |xcc, se| sample_plan(config, roles, registers, xcc, se);
            let now = Moment { cycle, chip, monitor, memory, faults, plan: &plan };
            traces.write(&now, selection, name, value);
        });
    }

    /// Takes note of an event that is selected; lists one that reads as zero because nothing here counts it.
    fn report(&mut self, counter: &Counter, value: u32) {
        let event = value & counter.block.select.event_mask;
        let target = self.config.target;
        let quantity = quantity(target, counter.block, event);
        if quantity.is_some_and(|quantity| self.monitor.is_new(quantity)) {
            self.sync();
            self.monitor.count_instructions(self.chip);
        }
        let known = quantity.is_some() || accumulate(target, event).is_some();
        let Some(truth) = self.truth else { return };
        if !known && self.reported.insert((counter.block.id, event)) {
            let (device, block) = (self.config.device, counter.block.name.to_owned());
            truth.record(&Truth::Unmodelled { device, block, event });
        }
    }

    /// What the last XCC of the mask reads.
    fn read(&mut self, xccs: u8, register: &Register) -> u32 {
        let xcc = xccs.checked_ilog2().unwrap_or(0) as usize;
        let index = GrbmGfxIndex::decode(self.config.target.generation(), self.context.gfx_index[xcc]);
        match register.role {
            Role::GfxIndex => self.context.gfx_index[xcc],
            Role::Value(counter, half) => self.counter(xcc, index, &counter, half),
            Role::Trace(name) => self.traces.read(self.faults, self.cycle(), (xcc, index), name),
            _ => self.registers.read(register.address, xcc, index),
        }
    }

    fn counter(&self, xcc: usize, index: GrbmGfxIndex, counter: &Counter, half: Half) -> u32 {
        let value = self.counter_value(xcc, index, counter).unwrap_or(0);
        match half {
            Half::Low => value as u32,
            Half::High => (value >> 32) as u32,
        }
    }

    fn counter_value(&self, xcc: usize, index: GrbmGfxIndex, counter: &Counter) -> Option<u64> {
        let target = self.config.target;
        let event = self.selected(xcc, index, counter)?;
        let se = usize::from(index.se.unwrap_or(0));
        let wgp = usize::from(index.wgp().map_or(0, |(wgp, _)| wgp));
        let sequencer = self.monitor.sequencer(se, usize::from(index.sa.unwrap_or(0)), wgp);
        let totals = self.monitor.sampled(xcc);
        let is_sq = matches!(counter.block.id, BlockId::SQ | BlockId::SQ_CS);
        if let Some(step) = accumulate(target, event).filter(|_| is_sq) {
            let before = self.roles.counter(counter.block, counter.number.checked_sub(1)?)?;
            let level = quantity(target, counter.block, self.selected(xcc, index, &before)?)?;
            let summed = level == crate::counters::Quantity::Level;
            return summed.then(|| totals.sequencers.get(sequencer).map_or(0, |sq| sq.wave_cycles / step));
        }
        let quantity = quantity(target, counter.block, event)?;
        let unit = || {
            let (sa, unit) = self.compute_unit(index);
            self.chip.find_compute_unit(Position { xcc: xcc as u8, se: se as u8, sa, unit })
        };
        let unit = matches!(quantity, crate::counters::Quantity::Requests(_)).then(unit).flatten();
        Some(totals.value(quantity, se, sequencer, unit))
    }

    /// Array and number of the compute unit that an index names in a block that every compute unit has: by the instance
    /// on gfx9; by the instance over both arrays of the engine on gfx10 and gfx11, where command buffers select no array;
    /// by WGP and instance on gfx12.
    fn compute_unit(&self, index: GrbmGfxIndex) -> (u8, u8) {
        let instance = index.instance.unwrap_or(0);
        match (self.config.target.generation(), index.sa) {
            (Generation::Gfx10 | Generation::Gfx11, None) => {
                (instance / self.config.cu_per_sa, instance % self.config.cu_per_sa)
            }
            (Generation::Gfx9 | Generation::Gfx10 | Generation::Gfx11, sa) => (sa.unwrap_or(0), instance),
            (Generation::Gfx12, sa) => {
                let (wgp, of_wgp) = index.wgp().unwrap_or((0, 0));
                (sa.unwrap_or(0), wgp * 2 + of_wgp)
            }
        }
    }

    /// The event that a counter's select register asks for; `None` where it counts nothing.
    fn selected(&self, xcc: usize, index: GrbmGfxIndex, counter: &Counter) -> Option<u32> {
        /// SIMD_MASK of the gfx9 sequencer's select: no SIMD, no event.
        const SIMD_MASK: u32 = 0xF << 24;
        let value = self.registers.read(counter.select, xcc, index);
        let is_sq = matches!(counter.block.id, BlockId::SQ | BlockId::SQ_CS);
        let gfx9 = self.config.target.generation() == Generation::Gfx9;
        let blind = is_sq && gfx9 && value & SIMD_MASK == 0;
        (!blind).then_some(value & counter.block.select.event_mask)
    }
}

fn passes(wait: &WaitRegMem, value: u32) -> bool {
    wait.function().passes(value, wait.mask, wait.reference).unwrap_or(true)
}

/// What a trace of an engine samples, from the sequencer's selects and its control register.
fn sample_plan(
    config: &DeviceConfig,
    roles: &Roles,
    registers: &RegisterFile,
    xcc: usize,
    se: usize,
) -> Option<Plan> {
    const COUNTERS: u32 = 8;
    let index = GrbmGfxIndex::BROADCAST.with_se(se as u8);
    let block = config.target.block(BlockId::SQ)?;
    let select = |number| {
        let counter = roles.counter(block, number)?;
        Some(registers.read(counter.select, xcc, index))
    };
    let selects: Vec<u32> = (0..COUNTERS).map_while(select).collect();
    let used = selects.iter().rposition(|&select| select != 0)? + 1;
    let event = |&select: &u32| quantity(config.target, block, select & block.select.event_mask);
    let control = registers.read(u64::from(roles.address(RegisterName::SqPerfcounterCtrl)?), xcc, index);
    // CNTR_RATE 12:8: cycles of a period, less one.
    let period = (control >> 8 & 0x1F) + 1;
    let units_of_engine = config.compute_units / config.shader_engines();
    let interval = Plan::interval(units_of_engine, used, period);
    Some(Plan { interval, units: 0, events: selects[..used].iter().map(event).collect() })
}

/// Which sequencers count, from their control registers.
pub(crate) fn gates(config: &DeviceConfig, roles: &Roles, registers: &RegisterFile) -> Gates {
    const CS_EN: u32 = 1 << 6;
    let read = |name, xcc: u8, se: u8| {
        let address = roles.address(name).map(u64::from);
        address.map(|address| registers.read(address, usize::from(xcc), GrbmGfxIndex::BROADCAST.with_se(se)))
    };
    Gates::new(config, |xcc, se| {
        let control = read(RegisterName::SqPerfcounterCtrl, xcc, se).unwrap_or(0);
        let open = control & CS_EN != 0;
        let mask = match config.target.generation() {
            // VMID mask in the upper half; SH0's compute units in the mask register.
            Generation::Gfx9 if control >> 16 == 0 => 0,
            Generation::Gfx9 => read(RegisterName::SqPerfcounterMask, xcc, se).unwrap_or(0) & 0xFFFF,
            Generation::Gfx10 => u32::MAX,
            Generation::Gfx11 | Generation::Gfx12 => {
                // FORCE_EN, or a VMID of the mask.
                let second = read(RegisterName::SqPerfcounterCtrl2, xcc, se).unwrap_or(0);
                if second & 0x1_FFFF == 0 { 0 } else { u32::MAX }
            }
        };
        if open { mask } else { 0 }
    })
}
