//! What the tables know of an opcode.

use crate::class::InstructionClass;

/// Facts of an opcode that its name tells, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traits(u16);

impl Traits {
    /// No table names the opcode.
    pub(crate) const UNNAMED: Self = Self(1);
    /// Branches relative to the program counter.
    pub(crate) const RELATIVE: Self = Self(1 << 1);
    /// The following instruction does not run next.
    pub(crate) const NO_FALL_THROUGH: Self = Self(1 << 2);
    /// Ends the wave.
    pub(crate) const END: Self = Self(1 << 3);
    /// Takes the next program counter from a register.
    pub(crate) const INDIRECT: Self = Self(1 << 4);
    /// Saves a return address.
    pub(crate) const CALL: Self = Self(1 << 5);
    /// Name starts with `s_waitcnt`.
    pub(crate) const WAITCNT: Self = Self(1 << 6);
    /// Name starts with `s_barrier_wait`.
    pub(crate) const BARRIER_WAIT: Self = Self(1 << 7);
    /// Name contains `_load_`.
    pub(crate) const LOAD: Self = Self(1 << 8);
    /// Name contains `scratch_`.
    pub(crate) const SCRATCH: Self = Self(1 << 9);
}

/// One opcode of one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opcode {
    pub(crate) name: &'static str,
    pub(crate) traits: Traits,
    pub(crate) class: InstructionClass,
}

impl Opcode {
    pub(crate) const fn name(self) -> &'static str {
        self.name
    }

    pub(crate) const fn class(self) -> InstructionClass {
        self.class
    }

    pub(crate) const fn has(self, traits: Traits) -> bool {
        self.traits.0 & traits.0 != 0
    }
}
