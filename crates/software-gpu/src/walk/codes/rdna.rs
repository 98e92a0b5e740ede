//! gfx10 and later: numbers in the INST token, which say cycles too. Vector ALU work of one pass has a token of its
//! own, [`ONE_PASS`] here.

use wavescope_isa::{Encoding, Generation, Instruction};

use super::super::work::Unit;
use super::valu::{Rate, rate};
use super::{dwords, writes};

/// Stands for the token VALU_INST, which carries no number. No INST token has it.
pub(crate) const ONE_PASS: u8 = 0xFF;

/// Number in the INST token, and cycles.
pub(super) fn code(generation: Generation, unit: Unit, instruction: Instruction, bytes: &[u8]) -> (u8, u8) {
    let name = instruction.mnemonic();
    match unit {
        Unit::Skip | Unit::Immediate | Unit::End => (0, 1),
        Unit::Smem => (if writes(unit, name) || name.contains("dcache") { 2 } else { 1 }, 1),
        Unit::Salu => salu(generation, name),
        Unit::Indirect => (5, 1),
        Unit::Vmem => vmem(generation, instruction, bytes),
        Unit::Flat => flat(generation, name),
        Unit::Lds => lds(name),
        Unit::Valu => valu(generation, name),
        Unit::Branch => (4, 1),
        Unit::Barrier | Unit::Barrier9 | Unit::BarrierWait => (19, 1),
        Unit::Message if name.starts_with("s_barrier_join") => (138, 1),
        Unit::Message if name.starts_with("s_barrier") => (122, 1),
        Unit::Message => (9, 1),
        Unit::Bvh => (103, 8),
    }
}

const fn is_gfx10(generation: Generation) -> bool {
    matches!(generation, Generation::Gfx10 | Generation::Gfx10_3)
}

const fn is_gfx12(generation: Generation) -> bool {
    matches!(generation, Generation::Gfx12 | Generation::Gfx1250)
}

fn salu(generation: Generation, name: &str) -> (u8, u8) {
    if is_gfx12(generation) && name.starts_with("s_mul_i32") {
        (155, 2)
    } else if is_gfx12(generation) && name.starts_with("s_alloc_vgpr") {
        (135, 1)
    } else if !is_gfx10(generation) && name.contains("saveexec") {
        (114, 1)
    } else {
        (0, 1)
    }
}

fn valu(generation: Generation, name: &str) -> (u8, u8) {
    match rate(name) {
        Rate::Plain => (ONE_PASS, 1),
        Rate::Transcendental => (11, 4),
        Rate::Shift64 => (13, 2),
        Rate::Multiply => (14, 4),
        Rate::CompareExec if is_gfx10(generation) => (ONE_PASS, 1),
        Rate::CompareExec => (115, 1),
        Rate::Scalar => (153, 1),
        Rate::Double if is_gfx12(generation) => (146, 16),
        Rate::Double => (15, 16),
        Rate::Matrix(passes) if is_gfx12(generation) => (if passes > 8 { 141 } else { 140 }, passes),
        Rate::Matrix(_) => (ONE_PASS, 1),
    }
}

/// Flat: the read, then writes of one to four dwords.
fn flat(generation: Generation, name: &str) -> (u8, u8) {
    let (read, cycles) = if is_gfx10(generation) { (30, 1) } else { (28, 2) };
    let more = if writes(Unit::Flat, name) { dwords(name) } else { 0 };
    (read + more, cycles + more)
}

fn lds(name: &str) -> (u8, u8) {
    if writes(Unit::Lds, name) {
        let dwords = dwords(name);
        (42 + dwords, 1 + dwords)
    } else {
        (41, 1)
    }
}

fn vmem(generation: Generation, instruction: Instruction, bytes: &[u8]) -> (u8, u8) {
    let name = instruction.mnemonic();
    let write = writes(Unit::Vmem, name);
    let dwords = dwords(name);
    match instruction.encoding() {
        Encoding::Mubuf | Encoding::Mtbuf if write => (48 + dwords, dwords),
        Encoding::Mubuf | Encoding::Mtbuf => (47, 1),
        Encoding::Mimg | Encoding::Vsample if write => (67 + dwords, dwords),
        Encoding::Mimg | Encoding::Vsample => (55, 1),
        _ if write && is_gfx10(generation) => (35 + dwords, dwords),
        _ if write => (35 + dwords, 1 + dwords),
        _ if is_gfx10(generation) => (35, 1),
        _ if has_scalar_base(generation, bytes) => (33, 1),
        _ => (34, 2),
    }
}

/// Whether a global or scratch instruction names a scalar base: field SADDR.
fn has_scalar_base(generation: Generation, bytes: &[u8]) -> bool {
    const NULL: u8 = 0x7C;
    let field = if is_gfx12(generation) { bytes[0] & 0x7F } else { bytes[6] & 0x7F };
    field != NULL
}
