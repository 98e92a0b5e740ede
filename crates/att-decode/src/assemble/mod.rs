//! Chunks from text: the other direction of [`dump`](crate::dump), for readable golden cases.
//!
//! One token per line: its kind, then fields by the names that the dump prints. `+N` in front lets N clocks pass
//! since the line before; the assembler uses the token's own increment and puts TIME, MISC or TIMESTAMP tokens in front
//! where that is too small. A [`Case`] is such a text with the program that runs and the records that are expected.
//!
//! ```
//! use wavescope_att_decode::{Generation, assemble};
//! let chunk = assemble::chunk(Generation::Gfx11, "HEADER version=3 simd=1 wgp=2\n+30 WAVE_START simd=1 wgp=2 slot=7")?;
//! let mut text = String::new();
//! wavescope_att_decode::dump::write(&chunk, &mut text)?;
//! assert!(text.contains("\tWAVE_START\t32\t30\t"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bits;
mod case;
mod line;

pub use case::Case;

use thiserror::Error as ThisError;

use crate::generation::Generation;
use bits::BitWriter;
use line::Line;

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum AssembleError {
    /// The kind is none of the generation.
    #[error("line {line}: {generation:?} has no token `{kind}`")]
    UnknownKind {
        /// Number of the line, from 1.
        line: usize,
        /// What it should be a token of.
        generation: Generation,
        /// The name found.
        kind: String,
    },
    /// A field is none of the token's.
    #[error("line {line}: {kind} has no field `{field}`")]
    UnknownField {
        /// Number of the line, from 1.
        line: usize,
        /// The token.
        kind: &'static str,
        /// The name found.
        field: String,
    },
    /// A number is malformed or too large for its field.
    #[error("line {line}: `{text}` is no number that fits")]
    Number {
        /// Number of the line, from 1.
        line: usize,
        /// The text found.
        text: String,
    },
    /// So few clocks cannot pass before a token that has no increment of its own.
    #[error("line {line}: {clocks} clocks cannot pass before this token")]
    Clocks {
        /// Number of the line, from 1.
        line: usize,
        /// The clocks.
        clocks: u64,
    },
    /// A section of a case is missing or malformed.
    #[error("case: {what}")]
    Case {
        /// What is wrong.
        what: String,
    },
}

/// Bytes that chunks are padded to, as hardware does.
const CHUNK_UNIT: usize = 32;

/// Zero bytes behind the last token, so that the rules of a chunk's end do not matter.
const END_PADDING: usize = 32;

/// Assembles a chunk; empty lines and those that begin with `#` are passed over. Padding follows the last token.
///
/// # Errors
///
/// Every [`AssembleError`] but `Case` names the line.
pub fn chunk(generation: Generation, text: &str) -> Result<Vec<u8>, AssembleError> {
    let mut bytes = tokens(generation, text)?;
    bytes.resize((bytes.len() + END_PADDING).next_multiple_of(CHUNK_UNIT), 0);
    Ok(bytes)
}

/// The same without padding: a chunk that ends with its last token, filled up to a byte.
///
/// # Errors
///
/// Those of [`chunk`].
pub fn tokens(generation: Generation, text: &str) -> Result<Vec<u8>, AssembleError> {
    let mut out = BitWriter::default();
    // Positions of the lines' fields go by the latest header, as in the decoder.
    let mut version = 0;
    for (number, text) in text.lines().enumerate() {
        if let Some(line) = Line::parse(number + 1, text)? {
            line.assemble(generation, &mut version, &mut out)?;
        }
    }
    Ok(out.into_bytes())
}
