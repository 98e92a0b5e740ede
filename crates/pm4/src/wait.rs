//! WAIT_REG_MEM: polls a register or memory until a comparison holds.

use std::fmt;

/// The comparison (control bits 2:0), unknown values kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaitFunction(pub u8);

impl WaitFunction {
    /// Passes at once.
    pub const ALWAYS: Self = Self(0);
    /// `(value & mask) == reference`.
    pub const EQUAL: Self = Self(3);
    /// `(value & mask) != reference`.
    pub const NOT_EQUAL: Self = Self(4);

    /// Whether a value lets the packet pass; `None` for a comparison that this crate does not know.
    pub const fn passes(self, value: u32, mask: u32, reference: u32) -> Option<bool> {
        match self {
            Self::ALWAYS => Some(true),
            Self::EQUAL => Some(value & mask == reference),
            Self::NOT_EQUAL => Some(value & mask != reference),
            _ => None,
        }
    }
}

/// A WAIT_REG_MEM packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct WaitRegMem {
    /// Dword 1: function 2:0, memory space 5:4, operation 7:6.
    pub control: u32,
    /// Dwords 2 and 3: register or address.
    pub address: u64,
    /// What is compared with.
    pub reference: u32,
    /// Which bits are compared.
    pub mask: u32,
    /// Clocks between polls.
    pub poll_interval: u32,
}

impl WaitRegMem {
    /// Polls a register.
    pub const fn register(
        function: WaitFunction,
        register: u32,
        mask: u32,
        reference: u32,
        poll: u32,
    ) -> Self {
        Self { control: function.0 as u32, address: register as u64, reference, mask, poll_interval: poll }
    }

    /// The comparison.
    pub const fn function(&self) -> WaitFunction {
        WaitFunction((self.control & 7) as u8)
    }

    /// Whether memory is polled instead of a register.
    pub const fn is_memory(&self) -> bool {
        self.control >> 4 & 3 == 1
    }
}

impl fmt::Debug for WaitRegMem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { control, address, reference, mask, poll_interval } = self;
        write!(f, "WAIT_REG_MEM({control:#x}: {address:#x} & {mask:#x} ? {reference:#x} / {poll_interval})")
    }
}
