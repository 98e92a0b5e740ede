//! One instruction from its bytes.

use crate::error::Error;
use crate::instruction::Instruction;
use crate::target::Target;

/// Decodes the instruction that starts at the first byte.
///
/// # Errors
///
/// [`Error::Truncated`] when the bytes end inside it, [`Error::UnknownEncoding`] when no encoding of the target begins
/// with these bits.
pub fn decode(target: Target, bytes: &[u8]) -> Result<Instruction, Error> {
    let Some(word) = bytes.first_chunk::<4>() else {
        return Err(Error::Truncated { needed: 4, available: bytes.len() });
    };
    Err(Error::UnknownEncoding { word: u32::from_le_bytes(*word), target })
}
