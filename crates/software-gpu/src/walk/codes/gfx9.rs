//! gfx9: a SIMD of 16 lanes passes a wave in four cycles, so nothing takes less.

use wavescope_isa::{Encoding, Instruction};

use super::super::work::Unit;
use super::valu::{Rate, rate};
use super::{dwords, writes};

/// Cycles of one pass.
const PASS: u8 = 4;

/// Number in the INST token, and cycles.
pub(super) fn code(unit: Unit, instruction: Instruction) -> (u8, u8) {
    let name = instruction.mnemonic();
    let write = writes(unit, name);
    match unit {
        Unit::Skip | Unit::Immediate | Unit::BarrierWait => (0, PASS),
        Unit::Smem => (if write { 16 } else { 0 }, PASS),
        Unit::Salu => (1, PASS),
        Unit::Indirect => (7, PASS),
        Unit::Vmem => (if write { 3 } else { 2 }, PASS),
        Unit::Flat => (if write { 4 } else { 14 }, PASS * if write { dwords(name) } else { 1 }),
        Unit::Lds => (6, if write { 2 * PASS } else { PASS }),
        Unit::Valu | Unit::Bvh => valu(instruction),
        Unit::Branch => (13, PASS),
        Unit::Message | Unit::Barrier | Unit::Barrier9 | Unit::End => (15, PASS),
    }
}

fn valu(instruction: Instruction) -> (u8, u8) {
    match (rate(instruction.mnemonic()), instruction.encoding()) {
        (Rate::Matrix(passes), _) => (28, passes * PASS),
        (rate, encoding) => {
            // Captures tell the encodings of 64 bits apart, not the operands.
            let wide = matches!(encoding, Encoding::Vop3 | Encoding::Vop3p | Encoding::Vop3px);
            let passes = match rate {
                Rate::Transcendental | Rate::Multiply | Rate::Double => 4,
                _ => 1,
            };
            (if wide { 18 } else { 5 }, passes * PASS)
        }
    }
}
