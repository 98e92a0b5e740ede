//! From instructions to work: units, numbers of kinds in trace tokens, cycles.
//!
//! Units follow the instruction's class; numbers and cycles are per generation, read off captures that lie beside the
//! program that ran (tinygrad/tinygrad `extra/sqtt/examples`), and off the names that
//! tinygrad/tinygrad `tinygrad/renderer/amd/sqtt.py` gives them where no capture has them.

mod gfx9;
mod rdna;
mod valu;
mod wait;

use wavescope_isa::{Encoding, Generation, Instruction, InstructionClass as Class};

pub(crate) use self::rdna::ONE_PASS;
use super::work::{Detail, Unit, Wait, Work};

/// What `instruction` is on `generation`; `bytes` are its own, more may follow.
pub(super) fn work(generation: Generation, instruction: Instruction, bytes: &[u8]) -> Work {
    let unit = unit(generation, instruction);
    let (code, cycles) = match generation {
        Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => gfx9::code(unit, instruction),
        _ => rdna::code(generation, unit, instruction, bytes),
    };
    let detail = match instruction.encoding() {
        _ if unit == Unit::Valu && valu::is_matrix(instruction.mnemonic()) => Detail::Matrix,
        Encoding::Global | Encoding::Scratch => Detail::FlatEncoding,
        Encoding::Flat => Detail::FlatSegment,
        _ => Detail::None,
    };
    let wait = match unit {
        Unit::Immediate => wait::of(generation, instruction.mnemonic(), bytes),
        _ => Wait::NONE,
    };
    let write = writes(unit, instruction.mnemonic());
    let atomic = write && instruction.mnemonic().contains("atomic");
    Work { write, atomic, detail, wait, ..Work::new(unit, code, cycles) }
}

fn unit(generation: Generation, instruction: Instruction) -> Unit {
    if instruction.ends_program() {
        return Unit::End;
    }
    if instruction.is_indirect() || instruction.is_call() {
        return Unit::Indirect;
    }
    match instruction.class() {
        Class::Unknown | Class::Skip => Unit::Skip,
        Class::Smem => Unit::Smem,
        // A loop instruction that no branch class covers still writes the program counter.
        Class::Salu if instruction.branch_offset().is_some() => Unit::Indirect,
        Class::Salu => Unit::Salu,
        Class::Vmem if generation.gfxip() == 9 && is_flat(instruction.encoding()) => Unit::Flat,
        Class::Vmem => Unit::Vmem,
        Class::Flat => Unit::Flat,
        Class::Lds => Unit::Lds,
        Class::Valu | Class::MfmaScale | Class::Mov64 => Unit::Valu,
        Class::Branch => Unit::Branch,
        Class::Bvh => Unit::Bvh,
        Class::Barrier9 => Unit::Barrier9,
        Class::Immediate => immediate(instruction.mnemonic()),
    }
}

fn immediate(name: &str) -> Unit {
    match name {
        "s_barrier" => Unit::Barrier,
        "s_barrier_wait" => Unit::BarrierWait,
        _ if name.starts_with("s_barrier") || name.starts_with("s_sendmsg") => Unit::Message,
        _ => Unit::Immediate,
    }
}

const fn is_flat(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::Global | Encoding::Scratch | Encoding::Flat)
}

fn writes(unit: Unit, name: &str) -> bool {
    match unit {
        Unit::Smem | Unit::Vmem | Unit::Flat | Unit::Lds => {
            ["store", "write", "atomic"].iter().any(|word| name.contains(word))
        }
        _ => false,
    }
}

/// Dwords that a memory instruction moves per lane, 1 to 4.
fn dwords(name: &str) -> u8 {
    let has = |words: [&str; 3]| words.iter().any(|word| name.contains(word));
    if has(["128", "x4", "xyzw"]) {
        4
    } else if has(["96", "x3", "xyz"]) {
        3
    } else if has(["64", "x2", "xy"]) {
        2
    } else {
        1
    }
}
