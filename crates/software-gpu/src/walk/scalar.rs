//! Program counters in scalar registers.
//!
//! Compilers reach far code through registers: `s_getpc_b64`, a distance added, `s_setpc_b64` or `s_swappc_b64`; the
//! way back is in the register pair that the call wrote; the address of a function elsewhere is loaded from a table
//! beside the code. As many registers are followed as that takes: constants, moves, additions, loads from known
//! addresses. Whatever else writes a register makes it unknown.

use wavescope_isa::{Encoding, Generation, Instruction};

use super::program::Code;

/// Number of scalar registers and special ones, as operands number them.
const REGISTERS: usize = 128;

/// A source operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Register(u8),
    Constant(u32),
    Unknown,
}

/// What an instruction does to registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// The following instruction's address goes into a pair.
    Pc {
        to: u8,
    },
    Move {
        to: u8,
        from: Source,
    },
    /// Two registers; a constant is extended by its sign.
    Move64 {
        to: u8,
        from: Source,
    },
    Add {
        to: u8,
        left: Source,
        right: Source,
        carry: bool,
    },
    /// Two registers each; constants are extended by their sign.
    Add64 {
        to: u8,
        left: Source,
        right: Source,
    },
    /// A load with nothing but a pair and a constant in its address.
    Load {
        to: u8,
        count: u8,
        base: u8,
        offset: i32,
    },
    /// Jumps to what is in a pair; a call writes the way back into another one.
    Jump {
        from: u8,
        back: Option<u8>,
    },
    /// Makes registers unknown.
    Lose {
        from: u8,
        count: u8,
    },
}

/// Finds out what an instruction does; `None`: nothing that matters.
pub(super) fn operation(generation: Generation, instruction: Instruction, bytes: &[u8]) -> Option<Operation> {
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (low, high, size) = (word(0), word(4), instruction.size());
    let name = instruction.mnemonic();
    match instruction.encoding() {
        Encoding::Sop1 => Some(one_source(name, low, high)),
        Encoding::Sop2 => Some(two_sources(name, low, high)),
        Encoding::Sopk => constant(name, low),
        Encoding::Smem => load(generation, name, low, high),
        Encoding::Vop1 if name.starts_with("v_readfirstlane") => Some(lose(low >> 17 & 0xFF, 1)),
        Encoding::Vop3 | Encoding::Vop3p if size > 4 => vector(name, low),
        _ => None,
    }
}

const fn lose(from: u32, count: u8) -> Operation {
    Operation::Lose { from: from as u8, count }
}

/// A scalar source field of eight bits.
const fn source(field: u32, literal: u32) -> Source {
    match field & 0xFF {
        register if (register as usize) < REGISTERS => Source::Register(register as u8),
        0x80..=0xC0 => Source::Constant((field & 0xFF) - 0x80),
        0xC1..=0xD0 => Source::Constant(0xC0_u32.wrapping_sub(field & 0xFF)),
        0xFF => Source::Constant(literal),
        _ => Source::Unknown,
    }
}

fn one_source(name: &str, low: u32, literal: u32) -> Operation {
    let (to, from) = ((low >> 16 & 0x7F) as u8, source(low, literal));
    let pair = (low & 0x7F) as u8;
    match name {
        "s_getpc_b64" | "s_get_pc_i64" => Operation::Pc { to },
        "s_mov_b32" => Operation::Move { to, from },
        "s_mov_b64" => Operation::Move64 { to, from },
        "s_setpc_b64" | "s_set_pc_i64" => Operation::Jump { from: pair, back: None },
        "s_swappc_b64" | "s_swap_pc_i64" => Operation::Jump { from: pair, back: Some(to) },
        _ => Operation::Lose { from: to, count: 2 },
    }
}

fn two_sources(name: &str, low: u32, literal: u32) -> Operation {
    let to = (low >> 16 & 0x7F) as u8;
    let (left, right) = (source(low, literal), source(low >> 8, literal));
    match name {
        "s_add_u32" | "s_add_i32" | "s_add_co_u32" | "s_add_co_i32" => {
            Operation::Add { to, left, right, carry: false }
        }
        "s_addc_u32" | "s_add_co_ci_u32" => Operation::Add { to, left, right, carry: true },
        "s_add_nc_u64" | "s_add_u64" => Operation::Add64 { to, left, right },
        _ => Operation::Lose { from: to, count: 2 },
    }
}

fn constant(name: &str, low: u32) -> Option<Operation> {
    let to = (low >> 16 & 0x7F) as u8;
    let value = i32::from(low as i16).cast_unsigned();
    match name {
        "s_movk_i32" => Some(Operation::Move { to, from: Source::Constant(value) }),
        "s_call_b64" | "s_call_i64" => Some(Operation::Pc { to }),
        _ if name.starts_with("s_cmpk") || name.starts_with("s_setreg") => None,
        _ => Some(Operation::Lose { from: to, count: 1 }),
    }
}

fn load(generation: Generation, name: &str, low: u32, high: u32) -> Option<Operation> {
    if !name.contains("load") {
        return None;
    }
    let sizes = [
        ("512", 16),
        ("x16", 16),
        ("256", 8),
        ("x8", 8),
        ("128", 4),
        ("x4", 4),
        ("96", 3),
        ("64", 2),
        ("x2", 2),
    ];
    let count = sizes.iter().find(|(size, _)| name.ends_with(size)).map_or(1, |(_, count)| *count);
    let (base, to) = ((low & 0x3F) as u8 * 2, (low >> 6 & 0x7F) as u8);
    let plain = match generation {
        // SOFFSET_EN clear, IMM set.
        Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => {
            low >> 14 & 1 == 0 && low >> 17 & 1 == 1
        }
        // SOFFSET is the null register.
        Generation::Gfx10 | Generation::Gfx10_3 => high >> 25 == 0x7D,
        _ => high >> 25 == 0x7C,
    };
    let bits = if matches!(generation, Generation::Gfx12 | Generation::Gfx1250) { 24 } else { 21 };
    let offset = (high << (32 - bits)).cast_signed() >> (32 - bits);
    if plain && name.starts_with("s_load") {
        Some(Operation::Load { to, count, base, offset })
    } else {
        Some(Operation::Lose { from: to, count })
    }
}

/// Vector instructions that write scalar registers: as their result, or as a carry.
fn vector(name: &str, low: u32) -> Option<Operation> {
    let results = ["v_cmp", "v_readlane", "v_readfirstlane", "v_s_"];
    let carries = ["_co_", "div_scale", "mad_u64", "mad_i64"];
    if results.iter().any(|start| name.starts_with(start)) {
        Some(lose(low & 0xFF, 2))
    } else if carries.iter().any(|part| name.contains(part)) {
        Some(lose(low >> 8 & 0x7F, 2))
    } else {
        None
    }
}

/// What is known of one wave's scalar registers.
#[derive(Clone, Debug)]
pub(super) struct Scalars {
    values: [u32; REGISTERS],
    /// Bit set: the value is known.
    known: u128,
    /// The carry of the last addition.
    carry: Option<bool>,
    target: Option<u64>,
}

impl Default for Scalars {
    fn default() -> Self {
        Self { values: [0; REGISTERS], known: 0, carry: None, target: None }
    }
}

impl Scalars {
    /// Where the jump that was executed last goes.
    pub(super) const fn jump_target(&self) -> Option<u64> {
        self.target
    }

    /// Executes; `next` is the address of the following instruction.
    pub(super) fn execute(&mut self, operation: Operation, next: u64, code: &dyn Code) {
        match operation {
            Operation::Pc { to } => self.set_pair(to, Some(next)),
            Operation::Move { to, from } => {
                let value = self.get(from);
                self.set(to, value);
            }
            Operation::Move64 { to, from } => {
                let value = self.get_pair(from);
                self.set_pair(to, value);
            }
            Operation::Add { to, left, right, carry } => {
                let carried = if carry { self.carry } else { Some(false) };
                self.add(to, self.get(left), self.get(right), carried);
            }
            Operation::Add64 { to, left, right } => {
                let both = self.get_pair(left).zip(self.get_pair(right));
                self.set_pair(to, both.map(|(left, right)| left.wrapping_add(right)));
            }
            Operation::Load { to, count, base, offset } => {
                let address = self.get_pair(Source::Register(base));
                self.load(to, count, address.map(|base| base.wrapping_add_signed(offset.into())), code);
            }
            Operation::Jump { from, back } => {
                self.target = self.get_pair(Source::Register(from));
                if let Some(back) = back {
                    self.set_pair(back, Some(next));
                }
            }
            Operation::Lose { from, count } => (0..count).for_each(|index| self.set(from + index, None)),
        }
    }

    fn add(&mut self, to: u8, left: Option<u32>, right: Option<u32>, carried: Option<bool>) {
        let sum = left.zip(right).zip(carried);
        let sum = sum.map(|((left, right), carried)| u64::from(left) + u64::from(right) + u64::from(carried));
        self.carry = sum.map(|sum| sum >> 32 != 0);
        self.set(to, sum.map(|sum| sum as u32));
    }

    fn load(&mut self, to: u8, count: u8, address: Option<u64>, code: &dyn Code) {
        for index in 0..count {
            let mut bytes = [0; 4];
            let at = address.map(|address| address.wrapping_add(u64::from(index) * 4));
            let read = at.is_some_and(|at| at % 4 == 0 && code.read(at, &mut bytes) == 4);
            self.set(to + index, read.then(|| u32::from_le_bytes(bytes)));
        }
    }

    fn get(&self, source: Source) -> Option<u32> {
        match source {
            Source::Register(register) => {
                (self.known >> register & 1 != 0).then(|| self.values[usize::from(register)])
            }
            Source::Constant(value) => Some(value),
            Source::Unknown => None,
        }
    }

    fn get_pair(&self, source: Source) -> Option<u64> {
        match source {
            Source::Register(register) => {
                let high = self.get(Source::Register((register + 1) % REGISTERS as u8))?;
                Some(u64::from(high) << 32 | u64::from(self.get(source)?))
            }
            Source::Constant(value) => Some(i64::from(value.cast_signed()).cast_unsigned()),
            Source::Unknown => None,
        }
    }

    fn set(&mut self, register: u8, value: Option<u32>) {
        let register = usize::from(register) % REGISTERS;
        self.known &= !(1 << register);
        if let Some(value) = value {
            self.known |= 1 << register;
            self.values[register] = value;
        }
    }

    fn set_pair(&mut self, register: u8, value: Option<u64>) {
        self.set(register, value.map(|value| value as u32));
        self.set(register + 1, value.map(|value| (value >> 32) as u32));
    }
}
