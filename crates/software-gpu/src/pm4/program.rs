//! Compiled command buffers.

use wavescope_pm4::{CopyData, CopySource, Decoder, EventWrite, Opcode, Packet, WaitRegMem};

use super::role::{Role, Roles};

/// A register with its function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Register {
    /// Dword address; above bit 31 the die.
    pub(crate) address: u64,
    pub(crate) role: Role,
}

/// Where a copy comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    Register(Register),
    Memory(u64),
    Immediate(u64),
    Clock,
}

/// Where a copy goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Destination {
    Register(Register),
    Memory(u64),
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operation {
    Write {
        register: Register,
        value: u32,
    },
    Copy {
        source: Source,
        destination: Destination,
        wide: bool,
    },
    WaitRegister {
        register: Register,
        wait: WaitRegMem,
    },
    WaitMemory(WaitRegMem),
    /// Waits until compute work of this queue is done.
    Idle,
    /// Any other event, for the trace.
    Event(EventWrite),
    /// The processor cannot go on.
    Fault,
}

/// One operation with the XCCs that run it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Op {
    pub(crate) xccs: u8,
    /// Dword offset of its packet.
    pub(crate) offset: u32,
    pub(crate) operation: Operation,
}

/// A command buffer and what it came from.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) dwords: Vec<u32>,
    pub(crate) ops: Vec<Op>,
}

/// A type-2 packet: one dword without effect (kernel `soc15d.h`, `PACKET_TYPE2`).
const TYPE2: u32 = 2;

impl Program {
    /// Compiles `dwords` for a device with the XCCs of `all`.
    pub(crate) fn compile(dwords: Vec<u32>, roles: &Roles, all: u8) -> Self {
        let mut compiler = Compiler { roles, all, predicate: all, predicated_to: 0, ops: Vec::new() };
        for item in Decoder::new(&dwords) {
            match item {
                Ok(located) => compiler.packet(located.offset, &located.packet),
                Err(error) => compiler.broken(error),
            }
        }
        let ops = compiler.ops;
        Self { dwords, ops }
    }
}

struct Compiler<'a> {
    roles: &'a Roles,
    all: u8,
    predicate: u8,
    /// Dword offset at which the predicate ends.
    predicated_to: usize,
    ops: Vec<Op>,
}

impl Compiler<'_> {
    fn push(&mut self, offset: usize, operation: Operation) {
        let xccs = if offset < self.predicated_to { self.predicate } else { self.all };
        if xccs != 0 {
            self.ops.push(Op { xccs, offset: offset as u32, operation });
        }
    }

    fn register(&self, address: u64) -> Register {
        Register { address, role: self.roles.of(address) }
    }

    fn broken(&mut self, error: wavescope_pm4::Error) {
        match error {
            wavescope_pm4::Error::NotType3 { value, .. } if value >> 30 == TYPE2 => {}
            error => self.push(error.offset(), Operation::Fault),
        }
    }

    fn packet(&mut self, offset: usize, packet: &Packet<'_>) {
        match packet {
            Packet::SetRegs(set) => {
                for (address, value) in set.writes() {
                    let register = self.register(u64::from(address));
                    self.push(offset, Operation::Write { register, value });
                }
            }
            Packet::CopyData(copy) => self.copy(offset, copy),
            Packet::WaitRegMem(wait) => self.wait(offset, *wait),
            &Packet::EventWrite(EventWrite::CS_PARTIAL_FLUSH) => self.push(offset, Operation::Idle),
            &Packet::EventWrite(event) => self.push(offset, Operation::Event(event)),
            Packet::PredExec(pred) => {
                let within = offset < self.predicated_to;
                let outer = if within { self.predicate } else { self.all };
                self.predicate = outer & pred.xcc_mask();
                self.predicated_to = offset + 2 + pred.dwords() as usize;
            }
            // Memory is coherent here and every access is in order.
            Packet::AcquireMem(_) => {}
            Packet::Unknown(unknown) if unknown.opcode == Opcode::NOP => {}
            Packet::IndirectBuffer(_) | Packet::Unknown(_) => self.push(offset, Operation::Fault),
        }
    }

    fn copy(&mut self, offset: usize, copy: &CopyData) {
        let from = copy.control.source();
        let source = if from.is_register() {
            Some(Source::Register(self.register(copy.source)))
        } else if from.is_memory() {
            Some(Source::Memory(copy.source))
        } else {
            match from {
                CopySource::IMMEDIATE => Some(Source::Immediate(copy.source)),
                CopySource::GPU_CLOCK => Some(Source::Clock),
                _ => None,
            }
        };
        let to = copy.control.destination();
        let destination = if to.is_register() {
            Some(Destination::Register(self.register(copy.destination)))
        } else if to.is_memory() {
            Some(Destination::Memory(copy.destination))
        } else {
            None
        };
        let wide = copy.control.bytes() == 8;
        match (source, destination) {
            (Some(source), Some(destination)) => {
                self.push(offset, Operation::Copy { source, destination, wide });
            }
            _ => self.push(offset, Operation::Fault),
        }
    }

    fn wait(&mut self, offset: usize, wait: WaitRegMem) {
        let operation = if wait.function().passes(0, 0, 0).is_none() {
            Operation::Fault
        } else if wait.is_memory() {
            Operation::WaitMemory(wait)
        } else {
            Operation::WaitRegister { register: self.register(wait.address), wait }
        };
        self.push(offset, operation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavescope_pm4::{PredExec, RegisterMap, SetRegs, Target};

    fn compile(dwords: Vec<u32>) -> Program {
        let roles = Roles::new(RegisterMap::with_fixed_bases(Target::Gfx942));
        Program::compile(dwords, &roles, 0xFF)
    }

    #[test]
    fn a_predicate_covers_its_dwords_and_no_more() {
        let mut dwords = Vec::new();
        Packet::PredExec(PredExec::new(0b100, 3)).encode(&mut dwords);
        Packet::SetRegs(SetRegs::uconfig(0xC200, &[1])).encode(&mut dwords);
        Packet::SetRegs(SetRegs::uconfig(0xC200, &[2])).encode(&mut dwords);
        let masks: Vec<u8> = compile(dwords).ops.iter().map(|op| op.xccs).collect();
        assert_eq!(masks, [0b100, 0xFF]);
    }

    #[test]
    fn nops_do_nothing_and_rubbish_stops_the_processor() {
        assert!(compile(vec![0x8000_0000, 0xC000_1000, 0]).ops.is_empty());
        let ops = compile(vec![0x8000_0000, 0x1234]).ops;
        assert_eq!(ops, [Op { xccs: 0xFF, offset: 1, operation: Operation::Fault }]);
    }
}
