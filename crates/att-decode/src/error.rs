//! What can make a chunk undecodable.
//!
//! Damage inside a stream is not an error: it decodes to something and is reported as data. Only input that does
//! not say what it is, or gfx9 input that names hardware which does not exist, ends a chunk.

use thiserror::Error;

/// Why the decoding of one chunk ended early. Records delivered before the error stay valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The chunk has fewer bytes than the eight that name its format.
    #[error("chunk of {bytes} bytes is too short to name its format, 8 are needed")]
    TooShort {
        /// Size of the chunk.
        bytes: usize,
    },
    /// The first eight bytes are no header of a known generation.
    #[error("first word {word:#018x} names no known trace format")]
    UnknownFormat {
        /// The first eight bytes, little endian.
        word: u64,
    },
    /// A gfx9 chunk holds its software header and nothing else.
    #[error("gfx9 chunk holds nothing but its 8-byte header")]
    EmptyGfx9,
    /// A gfx9 token names a wave slot that the hardware does not have (there are ten per SIMD).
    #[error("token at byte {byte_offset} names wave slot {slot}, gfx9 has slots 0 to 9")]
    WaveSlot {
        /// Offset of the token in the chunk.
        byte_offset: u64,
        /// The slot number found.
        slot: u8,
    },
    /// A gfx9 instruction token completes an issue whose instruction has been removed by a replay.
    #[error("token at byte {byte_offset} completes instruction {index}, the wave has {len}")]
    StaleIssue {
        /// Offset of the token in the chunk.
        byte_offset: u64,
        /// Index kept in the issue queue.
        index: u32,
        /// Number of instructions the wave has.
        len: u32,
    },
    /// The generation has no quick scan or cannot be cut.
    #[error("not available for this generation")]
    NotImplemented,
    /// A range, or a chunk without the state of the one before it, cannot be used.
    #[error("range {begin}..{end} cannot be cut out of a chunk of {bytes} bytes")]
    Range {
        /// First byte wanted.
        begin: usize,
        /// One past the last byte wanted.
        end: usize,
        /// Size of the chunk.
        bytes: usize,
    },
}

impl Error {
    /// The status that the public C decoder returns for it.
    pub const fn status(self) -> u32 {
        /// INVALID_ARGUMENT
        const INVALID_ARGUMENT: u32 = 3;
        /// INVALID_SHADER_DATA
        const INVALID_SHADER_DATA: u32 = 4;
        /// NOT_IMPLEMENTED
        const NOT_IMPLEMENTED: u32 = 5;
        match self {
            Error::NotImplemented => NOT_IMPLEMENTED,
            Error::Range { .. } => INVALID_ARGUMENT,
            _ => INVALID_SHADER_DATA,
        }
    }
}
