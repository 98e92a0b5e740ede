//! What can be wrong with a command buffer.

/// A malformed packet: where it lies and the dword that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The dword is no type-3 header, so nothing says how long the packet is.
    #[error("dword {offset}: {value:#010x} is not a type-3 packet header")]
    NotType3 {
        /// Dword offset of the packet.
        offset: usize,
        /// The dword found.
        value: u32,
    },
    /// The buffer ends inside the packet.
    #[error("dword {offset}: header {value:#010x} needs {needed} dwords, the buffer has {available}")]
    Truncated {
        /// Dword offset of the packet.
        offset: usize,
        /// Its header.
        value: u32,
        /// Dwords the header announces, itself included.
        needed: usize,
        /// Dwords left in the buffer.
        available: usize,
    },
    /// A known opcode with a length that its layout does not have.
    #[error("dword {offset}: header {value:#010x} announces {dwords} dwords, which its opcode never has")]
    Length {
        /// Dword offset of the packet.
        offset: usize,
        /// Its header.
        value: u32,
        /// Dwords the header announces, itself included.
        dwords: usize,
    },
}

impl Error {
    /// Dword offset of the packet that is wrong.
    pub const fn offset(self) -> usize {
        match self {
            Self::NotType3 { offset, .. } | Self::Truncated { offset, .. } | Self::Length { offset, .. } => {
                offset
            }
        }
    }
}
