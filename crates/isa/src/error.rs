//! What can go wrong when reading instructions and code objects.

use crate::target::Target;

/// Why an instruction or a code object could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name is none of [`Target::ALL`].
    #[error("unknown target `{name}`; supported: {}", Target::names())]
    UnknownTarget {
        /// The name as given.
        name: String,
    },
    /// The machine number in the ELF header flags belongs to no supported target.
    #[error("unknown machine {machine:#x} in the ELF header flags; supported: {}", Target::names())]
    UnknownMachine {
        /// `EF_AMDGPU_MACH` bits of `e_flags`.
        machine: u32,
    },
    /// The bytes end inside the instruction.
    #[error("instruction needs {needed} bytes, {available} left")]
    Truncated {
        /// Length of the instruction as far as its present bytes tell.
        needed: usize,
        /// Bytes that were there.
        available: usize,
    },
    /// No encoding of the target begins with these bits.
    #[error("{word:#010x} begins no instruction of {target}")]
    UnknownEncoding {
        /// First 32 bits of the instruction.
        word: u32,
        /// Target that the bytes were read for.
        target: Target,
    },
    /// The file is not an AMD GPU code object, or a structure in it is out of bounds.
    #[error("code object, offset {offset:#x}: {what}")]
    CodeObject {
        /// Byte offset in the file where the unreadable structure lies.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// No loaded bytes at this address of a code object.
    #[error("address {vaddr:#x} is outside the code object's loaded bytes")]
    Unmapped {
        /// Virtual address in the code object.
        vaddr: u64,
    },
    /// AMD's code-object manager library cannot be loaded.
    #[cfg(feature = "comgr")]
    #[error("no usable libamd_comgr (install ROCm's comgr, or do without instruction text): {reason}")]
    ComgrMissing {
        /// What the loader said, for each name tried.
        reason: String,
    },
    /// A function of the code-object manager library failed.
    #[cfg(feature = "comgr")]
    #[error("{function} failed for {target} with status {status}")]
    Comgr {
        /// The function.
        function: &'static str,
        /// `amd_comgr_status_t`.
        status: i32,
        /// Target of the disassembler.
        target: Target,
    },
}
