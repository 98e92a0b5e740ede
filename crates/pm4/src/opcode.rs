//! Opcodes of type-3 packets (kernel `soc15d.h`, `nvd.h`: `PACKET3_*`).

use std::fmt;

/// Bits 15:8 of a type-3 header. Any value is allowed; the constants are those with a meaning here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Opcode(pub u8);

impl Opcode {
    /// Does nothing.
    pub const NOP: Self = Self(0x10);
    /// An atomic operation on memory.
    pub const ATOMIC_MEM: Self = Self(0x1E);
    /// Makes the following dwords conditional on the XCC.
    pub const PRED_EXEC: Self = Self(0x23);
    /// Writes immediate dwords to registers or memory.
    pub const WRITE_DATA: Self = Self(0x37);
    /// Polls a register or memory.
    pub const WAIT_REG_MEM: Self = Self(0x3C);
    /// Runs another command buffer.
    pub const INDIRECT_BUFFER: Self = Self(0x3F);
    /// Moves one or two dwords between registers, memory, immediates and clocks.
    pub const COPY_DATA: Self = Self(0x40);
    /// Raises an event in the pipeline.
    pub const EVENT_WRITE: Self = Self(0x46);
    /// Writes back and signals when earlier work is done.
    pub const RELEASE_MEM: Self = Self(0x49);
    /// Writes back and invalidates caches over a range.
    pub const ACQUIRE_MEM: Self = Self(0x58);
    /// Fills the translation cache.
    pub const PRIME_UTCL2: Self = Self(0x5D);
    /// Writes shader registers, 0x2C00 and up.
    pub const SET_SH_REG: Self = Self(0x76);
    /// Writes user-configuration registers, 0xC000 and up.
    pub const SET_UCONFIG_REG: Self = Self(0x79);

    /// The field's name for the opcode, where this crate knows one.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NOP => "NOP",
            Self::ATOMIC_MEM => "ATOMIC_MEM",
            Self::PRED_EXEC => "PRED_EXEC",
            Self::WRITE_DATA => "WRITE_DATA",
            Self::WAIT_REG_MEM => "WAIT_REG_MEM",
            Self::INDIRECT_BUFFER => "INDIRECT_BUFFER",
            Self::COPY_DATA => "COPY_DATA",
            Self::EVENT_WRITE => "EVENT_WRITE",
            Self::RELEASE_MEM => "RELEASE_MEM",
            Self::ACQUIRE_MEM => "ACQUIRE_MEM",
            Self::PRIME_UTCL2 => "PRIME_UTCL2",
            Self::SET_SH_REG => "SET_SH_REG",
            Self::SET_UCONFIG_REG => "SET_UCONFIG_REG",
            _ => return None,
        })
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "opcode {:#04x}", self.0),
        }
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
