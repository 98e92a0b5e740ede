//! What the tables know of an opcode.

use crate::class::{InstructionClass, contains, starts_with};
use crate::encoding::Encoding;
use crate::tables::NAMES;

/// Facts of an opcode that its name tells, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traits(u16);

impl Traits {
    /// Branches relative to the program counter.
    pub(crate) const RELATIVE: Self = Self(1);
    /// The following instruction does not run next.
    pub(crate) const NO_FALL_THROUGH: Self = Self(1 << 1);
    /// Ends the wave.
    pub(crate) const END: Self = Self(1 << 2);
    /// Takes the next program counter from a register.
    pub(crate) const INDIRECT: Self = Self(1 << 3);
    /// Saves a return address.
    pub(crate) const CALL: Self = Self(1 << 4);
    /// Name starts with `s_waitcnt`.
    pub(crate) const WAITCNT: Self = Self(1 << 5);
    /// Name starts with `s_barrier_wait`.
    pub(crate) const BARRIER_WAIT: Self = Self(1 << 6);
    /// Name contains `_load_`.
    pub(crate) const LOAD: Self = Self(1 << 7);
    /// Name contains `scratch_`.
    pub(crate) const SCRATCH: Self = Self(1 << 8);
    /// Always has a 32-bit literal.
    pub(crate) const LITERAL: Self = Self(1 << 9);
    /// Always has a 64-bit literal.
    pub(crate) const WIDE_LITERAL: Self = Self(1 << 10);

    const NONE: Self = Self(0);

    const fn with(self, other: Self, condition: bool) -> Self {
        if condition { Self(self.0 | other.0) } else { self }
    }

    /// Facts of the opcode with this name.
    pub(crate) const fn of_name(name: &str) -> Self {
        let name = name.as_bytes();
        if starts_with(name, b"s_") {
            return Self::of_scalar(name);
        }
        if starts_with(name, b"v_") {
            let constant = contains_any(name, &["madmk", "madak", "fmamk", "fmaak"]);
            let wide = constant && contains(name, b"f64");
            return Self::NONE.with(Self::LITERAL, constant && !wide).with(Self::WIDE_LITERAL, wide);
        }
        Self::of_memory(name)
    }

    const fn of_memory(name: &[u8]) -> Self {
        Self::NONE
            .with(Self::LOAD, contains(name, b"_load_"))
            .with(Self::SCRATCH, contains(name, b"scratch_"))
    }

    const fn of_scalar(name: &[u8]) -> Self {
        let registers = ["s_setpc", "s_set_pc", "s_swap", "s_rfe", "s_add_pc", "s_cbranch_join"];
        let indirect = starts_with_any(name, &registers);
        let to_register = indirect || starts_with(name, b"s_cbranch_g_fork");
        let call = starts_with_any(name, &["s_call", "s_swap"]);
        let loops = ["branch", "s_call", "s_subvector_loop"];
        let relative = contains_any(name, &loops) && !to_register;
        let end = starts_with(name, b"s_endpgm");
        let literals = ["s_setreg_imm32", "s_fmamk", "s_fmaak"];
        Self::of_memory(name)
            .with(Self::RELATIVE, relative)
            .with(Self::NO_FALL_THROUGH, end || indirect || call || starts_with(name, b"s_branch"))
            .with(Self::END, end)
            .with(Self::INDIRECT, to_register)
            .with(Self::CALL, call)
            .with(Self::WAITCNT, starts_with(name, b"s_waitcnt"))
            .with(Self::BARRIER_WAIT, starts_with(name, b"s_barrier_wait"))
            .with(Self::LITERAL, starts_with_any(name, &literals))
    }
}

const fn starts_with_any(text: &[u8], prefixes: &[&str]) -> bool {
    let mut at = 0;
    while at < prefixes.len() {
        if starts_with(text, prefixes[at].as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

const fn contains_any(text: &[u8], parts: &[&str]) -> bool {
    let mut at = 0;
    while at < parts.len() {
        if contains(text, parts[at].as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

/// One opcode of one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opcode {
    /// Place in [`NAMES`].
    pub(crate) name: u16,
    pub(crate) traits: Traits,
    pub(crate) class: InstructionClass,
    pub(crate) encoding: Encoding,
    /// Source fields that it reads, bit 0 for the first.
    pub(crate) reads: u8,
}

impl Opcode {
    /// An opcode that no table names. Its name is the encoding's, its class what most of the encoding is; it reads
    /// every source field.
    pub(crate) const fn unnamed(encoding: Encoding) -> Self {
        Self {
            name: encoding as u16,
            traits: Traits::NONE,
            class: encoding.class(),
            encoding,
            reads: u8::MAX,
        }
    }

    pub(crate) const fn is_named(self) -> bool {
        self.name as usize >= Encoding::COUNT
    }

    pub(crate) const fn text(self) -> &'static str {
        NAMES[self.name as usize]
    }

    pub(crate) const fn has(self, traits: Traits) -> bool {
        self.traits.0 & traits.0 != 0
    }
}
