//! Writes commands packet by packet, keeping addresses symbolic.

use wavescope_pm4::{
    AcquireMem, CopyControl, CopyData, CopyDestination, CopySource, EventWrite, GrbmGfxIndex, IndirectBuffer,
    Packet, PredExec, RegisterName, SetRegs, WaitFunction, WaitRegMem,
};

use super::dialect::Dialect;
use super::relocation::{Commands, Form, Relocation};
use crate::agent::Chip;
use crate::error::Error;

/// A place in one of the program's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) buffer: u8,
    pub(crate) offset: u64,
}

impl Symbol {
    /// The start of a buffer.
    pub(crate) const fn start(buffer: u8) -> Self {
        Self { buffer, offset: 0 }
    }

    /// A place `bytes` further on.
    pub(crate) const fn plus(self, bytes: u64) -> Self {
        Self { buffer: self.buffer, offset: self.offset + bytes }
    }
}

/// A register's value: a number, or part of an address.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Number(u32),
    Address(Form, Symbol),
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number)
    }
}

impl Value {
    /// The value for a buffer at address 0.
    const fn at_zero(self) -> u32 {
        match self {
            Self::Number(number) => number,
            Self::Address(form, symbol) => form.first_dword(symbol.offset),
        }
    }
}

/// Appends packets of one chip.
pub(crate) struct Emitter<'c> {
    pub(crate) chip: &'c Chip,
    pub(crate) dialect: &'static Dialect,
    dwords: Vec<u32>,
    relocations: Vec<Relocation>,
    longest_conditional: usize,
}

impl<'c> Emitter<'c> {
    /// An empty command buffer.
    pub(crate) fn new(chip: &'c Chip) -> Self {
        let dialect = Dialect::of(chip.generation);
        Self { chip, dialect, dwords: Vec::new(), relocations: Vec::new(), longest_conditional: 0 }
    }

    /// The commands, if their lengths fit the hardware's fields.
    pub(crate) fn finish(self) -> Result<Commands, Error> {
        if self.longest_conditional > PredExec::MAX_DWORDS as usize {
            let (dwords, limit) = (self.longest_conditional, PredExec::MAX_DWORDS);
            return Err(Error::ConditionalTooLong { dwords, limit });
        }
        let dwords = self.dwords.len();
        if dwords > IndirectBuffer::MAX_DWORDS as usize {
            return Err(Error::CommandsTooLong { dwords, limit: IndirectBuffer::MAX_DWORDS });
        }
        Ok(Commands::new(self.dwords, self.relocations))
    }

    /// Address of a named register. Sequences ask only for registers that their generation has.
    pub(crate) fn register(&self, name: RegisterName) -> u32 {
        let register = self.chip.generation.register(name);
        debug_assert!(register.is_some(), "{name:?} is no register of {:?}", self.chip.generation);
        register.map_or(0, |register| register.address(&self.chip.bases))
    }

    /// Waits until compute work is idle.
    pub(crate) fn idle(&mut self) {
        self.event(EventWrite::CS_PARTIAL_FLUSH);
    }

    /// Raises an event.
    pub(crate) fn event(&mut self, event: EventWrite) {
        self.push(Packet::EventWrite(event));
    }

    /// Selects copies of banked registers.
    pub(crate) fn select(&mut self, index: GrbmGfxIndex) {
        self.set(RegisterName::GrbmGfxIndex, index.encode(self.chip.generation));
    }

    /// Selects every copy.
    pub(crate) fn select_all(&mut self) {
        self.select(GrbmGfxIndex::BROADCAST);
    }

    /// Sets a named user-configuration register.
    pub(crate) fn set(&mut self, name: RegisterName, value: impl Into<Value>) {
        let address = self.register(name);
        self.set_uconfig(address, value);
    }

    /// Sets a named shader register.
    pub(crate) fn set_sh(&mut self, name: RegisterName, value: u32) {
        let address = self.register(name);
        self.push(Packet::SetRegs(SetRegs::sh(address, &[value])));
    }

    /// Sets a register by SET_UCONFIG_REG.
    pub(crate) fn set_uconfig(&mut self, address: u32, value: impl Into<Value>) {
        let value = value.into();
        let at = self.push(Packet::SetRegs(SetRegs::uconfig(address, &[value.at_zero()])));
        self.relocate_value(at + 2, value);
    }

    /// Writes a register by COPY_DATA from an immediate. Bits above 31 of the address name another die.
    pub(crate) fn copy_write(&mut self, address: u64, value: impl Into<Value>) {
        let value = value.into();
        let mut control = self.dialect.write;
        if self.is_privileged(address) {
            control = control.with_destination(CopyDestination::PERF_COUNTER);
        }
        let at = self.copy(control, value.at_zero().into(), address);
        self.relocate_value(at + 2, value);
    }

    /// Writes a register of either kind: gfx9 sets those of the user-configuration space and copies to the
    /// rest; later generations copy to the privileged ones and set the rest.
    pub(crate) fn write(&mut self, address: u32, value: impl Into<Value>) {
        let sets = if self.dialect.sets_unprivileged {
            !is_privileged_address(address.into())
        } else {
            (0xC000..=0xFFFF).contains(&address)
        };
        if sets { self.set_uconfig(address, value) } else { self.copy_write(address.into(), value) }
    }

    /// Copies a register to memory.
    pub(crate) fn copy_read(&mut self, address: u64, to: Symbol) {
        self.read_with(self.dialect.read, address, to);
    }

    /// Copies a register to memory and waits until it has arrived.
    pub(crate) fn copy_read_confirmed(&mut self, address: u32, to: Symbol) {
        self.read_with(self.dialect.read.with_confirm(), address.into(), to);
    }

    /// Emits a COPY_DATA whose destination is a place in a buffer.
    pub(crate) fn copy_to(&mut self, control: CopyControl, source: u64, to: Symbol) {
        let at = self.copy(control, source, to.offset);
        self.relocate(at + 4, Form::Pair, to);
    }

    /// Emits a COPY_DATA whose source is a place in a buffer.
    pub(crate) fn copy_from(&mut self, control: CopyControl, from: Symbol, register: u32) {
        let at = self.copy(control, from.offset, register.into());
        self.relocate(at + 2, Form::Pair, from);
    }

    /// Emits a COPY_DATA without an address and returns the index of its header.
    pub(crate) fn copy(&mut self, control: CopyControl, source: u64, destination: u64) -> usize {
        self.push(Packet::CopyData(CopyData { control, source, destination }))
    }

    /// Makes a range of a buffer coherent.
    pub(crate) fn acquire(&mut self, range: Symbol, bytes: u64) {
        let packet = AcquireMem::for_range(self.chip.generation, range.offset, bytes);
        let at = self.push(Packet::AcquireMem(packet));
        self.relocate(at + 4, Form::Shr8, range);
        self.relocate(at + 5, Form::Shr40, range);
    }

    /// Polls a register until `register & mask` compares.
    pub(crate) fn wait(&mut self, function: WaitFunction, register: u32, mask: u32, reference: u32) {
        let poll = self.dialect.wait_poll;
        self.push(Packet::WaitRegMem(WaitRegMem::register(function, register, mask, reference, poll)));
    }

    /// Lets only one XCC execute what `body` emits, where there are several.
    pub(crate) fn on_xcc(&mut self, xcc: u32, body: impl FnOnce(&mut Self)) {
        if !self.chip.has_several_xccs() {
            return body(self);
        }
        let at = self.push(Packet::PredExec(PredExec::new(0, 0)));
        let first = self.dwords.len();
        body(self);
        let dwords = self.dwords.len() - first;
        self.longest_conditional = self.longest_conditional.max(dwords);
        let predicate = PredExec::new(1u8.unbounded_shl(xcc), dwords as u32);
        if let Some(dword) = self.dwords.get_mut(at + 1) {
            *dword = predicate.0;
        }
    }

    fn read_with(&mut self, control: CopyControl, address: u64, to: Symbol) {
        let privileged = self.is_privileged(address);
        let control = if privileged { control.with_source(CopySource::PERF_COUNTER) } else { control };
        self.copy_to(control, address, to);
    }

    /// Whether the privileged selector is used: never on gfx9 with several XCCs, whose firmware hangs on it.
    fn is_privileged(&self, address: u64) -> bool {
        is_privileged_address(address) && !self.chip.has_several_xccs()
    }

    /// Appends a packet and returns the index of its header.
    fn push(&mut self, packet: Packet<'_>) -> usize {
        let at = self.dwords.len();
        packet.encode(&mut self.dwords);
        at
    }

    fn relocate_value(&mut self, dword: usize, value: Value) {
        if let Value::Address(form, symbol) = value {
            self.relocate(dword, form, symbol);
        }
    }

    fn relocate(&mut self, dword: usize, form: Form, to: Symbol) {
        let dword = dword as u32;
        self.relocations.push(Relocation { dword, buffer: to.buffer, form, offset: to.offset });
    }
}

/// Registers that only privileged selectors reach.
fn is_privileged_address(address: u64) -> bool {
    (0x2000..=0x9FFF).contains(&address)
}
