//! SET_SH_REG and SET_UCONFIG_REG: writes to consecutive registers of one space.

use std::fmt;

use crate::opcode::Opcode;

/// A register space with a SET packet of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterSpace {
    /// Shader registers, from 0x2C00.
    Sh,
    /// User-configuration registers, from 0xC000.
    Uconfig,
}

impl RegisterSpace {
    /// The first register.
    pub const fn base(self) -> u32 {
        match self {
            Self::Sh => 0x2C00,
            Self::Uconfig => 0xC000,
        }
    }

    /// The opcode that writes it.
    pub const fn opcode(self) -> Opcode {
        match self {
            Self::Sh => Opcode::SET_SH_REG,
            Self::Uconfig => Opcode::SET_UCONFIG_REG,
        }
    }
}

/// Writes `values` to consecutive registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SetRegs<'a> {
    /// The space.
    pub space: RegisterSpace,
    /// Dword 1 as it stands: the register's distance from the space's base in bits 15:0, an index in 31:28.
    pub offset: u32,
    /// One dword for each register.
    pub values: &'a [u32],
}

impl<'a> SetRegs<'a> {
    /// Writes user-configuration registers from `register` on. An address below the space wraps in the 16-bit
    /// field, as upstream's builder lets it.
    pub const fn uconfig(register: u32, values: &'a [u32]) -> Self {
        Self {
            space: RegisterSpace::Uconfig,
            offset: Self::offset_in(RegisterSpace::Uconfig, register),
            values,
        }
    }

    /// Writes shader registers from `register` on.
    pub const fn sh(register: u32, values: &'a [u32]) -> Self {
        Self { space: RegisterSpace::Sh, offset: Self::offset_in(RegisterSpace::Sh, register), values }
    }

    const fn offset_in(space: RegisterSpace, register: u32) -> u32 {
        register.wrapping_sub(space.base()) & 0xFFFF
    }

    /// Address of the first register written.
    pub const fn register(&self) -> u32 {
        self.space.base() + (self.offset & 0xFFFF)
    }

    /// Each register written, with its value.
    pub fn writes(&self) -> impl Iterator<Item = (u32, u32)> + 'a {
        (self.register()..).zip(self.values.iter().copied())
    }
}

impl fmt::Debug for SetRegs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:#07x} = {:08x?})", self.space.opcode(), self.register(), self.values)
    }
}
