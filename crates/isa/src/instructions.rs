//! Linear walk over a text section.

use crate::decode::decode;
use crate::error::Error;
use crate::instruction::Instruction;
use crate::target::Target;

/// Decodes instruction after instruction. Items are the byte offset and what was found there.
///
/// Ends with the bytes. After bytes that begin no instruction it goes on 4 bytes later, so that a data word in a text
/// section costs one error; a cut-off last instruction is an error and the end.
#[derive(Debug, Clone)]
pub struct Instructions<'a> {
    target: Target,
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Instructions<'a> {
    /// Starts at the first byte of `bytes`.
    pub const fn new(target: Target, bytes: &'a [u8]) -> Self {
        Self { target, bytes, offset: 0 }
    }
}

impl Iterator for Instructions<'_> {
    type Item = (usize, Result<Instruction, Error>);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.offset..).filter(|rest| !rest.is_empty())?;
        let found = decode(self.target, rest);
        let step = match &found {
            Ok(instruction) => instruction.size(),
            Err(Error::Truncated { .. }) => rest.len(),
            Err(_) => 4,
        };
        let offset = self.offset;
        self.offset += step;
        Some((offset, found))
    }
}

impl std::iter::FusedIterator for Instructions<'_> {}
