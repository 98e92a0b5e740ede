//! One instruction from its bytes.

use crate::encoding::Encoding;
use crate::error::Error;
use crate::instruction::Instruction;
use crate::opcode::{Opcode, Traits};
use crate::tables::format::{Extension, Source};
use crate::tables::{Prefix, Table, table};
use crate::target::Target;

/// Decodes the instruction that starts at the first byte.
///
/// An opcode that no table names, or with junk in fields that it does not use, still has a length and a class: those of
/// its encoding.
///
/// # Errors
///
/// [`Error::Truncated`] when the bytes end inside it, [`Error::UnknownEncoding`] when no encoding of the target begins
/// with these bits.
pub fn decode(target: Target, bytes: &[u8]) -> Result<Instruction, Error> {
    let table = table(target.generation());
    let Some(low) = low_bits(bytes) else {
        return Err(Error::Truncated { needed: 4, available: bytes.len() });
    };
    let Some(prefix) = table.prefix(low as u32) else {
        return Err(Error::UnknownEncoding { word: low as u32, target });
    };
    let mut opcode = table.opcode(prefix, low);
    let mut dwords = prefix.format.dwords;
    match prefix.format.extension {
        Extension::Sources(sources) => dwords += extra(opcode, sources, low),
        Extension::Addresses(count) => dwords += count.of(low) as u8,
        Extension::Dual(_, second) if has_constant(second.of(low)) => dwords += 1,
        Extension::Dual(sources, _) => dwords += extra(opcode, sources, low),
        Extension::Pair(sources) => match pair(table, prefix, low, bytes) {
            Some(both) => (opcode, dwords) = (both, 4),
            None => dwords += extra(opcode, sources, low),
        },
    }
    let size = dwords * 4;
    if bytes.len() < size as usize {
        return Err(Error::Truncated { needed: size as usize, available: bytes.len() });
    }
    Ok(Instruction { size, opcode, branch: low as i16 })
}

/// The first 8 bytes, missing ones zero. None when not even 4 are there.
fn low_bits(bytes: &[u8]) -> Option<u64> {
    match bytes.first_chunk::<8>() {
        Some(eight) => Some(u64::from_le_bytes(*eight)),
        None => bytes.first_chunk::<4>().map(|four| u64::from(u32::from_le_bytes(*four))),
    }
}

/// Dwords behind the instruction: its own literal, which sources can only share, else the control word of DPP or SDWA
/// and the one literal that sources ask for.
fn extra(opcode: Opcode, sources: &[Source], low: u64) -> u8 {
    if opcode.has(Traits::LITERAL) {
        return 1;
    }
    if opcode.has(Traits::WIDE_LITERAL) {
        return 2;
    }
    let (mut control, mut literal) = (0, 0);
    for (number, source) in sources.iter().enumerate() {
        if opcode.reads >> number & 1 != 0 {
            control |= source.control_dwords(low);
            literal = source.literal_dwords(low).max(literal);
        }
    }
    control + literal
}

/// Whether the second operation of a VOPD instruction is `v_dual_fmaak_f32` or `v_dual_fmamk_f32`. Operations common
/// to both places have the same number in both.
const fn has_constant(opcode: u64) -> bool {
    matches!(opcode, 1 | 2)
}

/// The VOP3PX instruction that begins here, if the instruction behind this one makes it one.
fn pair(table: &Table, prefix: Prefix, low: u64, bytes: &[u8]) -> Option<Opcode> {
    let next = low_bits(bytes.get(8..)?)?;
    let second = table.prefix(next as u32)?;
    if table.opcode(second, next).encoding != Encoding::Vop3p {
        return None;
    }
    table.pair(prefix.format.opcode_of(low), second.format.opcode_of(next))
}
