//! Where each microcode format of a generation keeps its parts.

use crate::encoding::Encoding;

/// Bits of the first 64 bits of an instruction.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    shift: u8,
    width: u8,
}

/// `width` bits from bit `shift` on.
pub(super) const fn field(shift: u8, width: u8) -> Field {
    Field { shift, width }
}

/// No bits: reads as 0.
pub(super) const NONE: Field = field(0, 0);

impl Field {
    pub(crate) const fn of(self, low: u64) -> u64 {
        (low >> self.shift) & ((1 << self.width) - 1)
    }

    pub(crate) const fn width(self) -> u8 {
        self.width
    }
}

/// A source operand field whose code may announce further dwords.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    pub(crate) field: Field,
    /// Code 254 is a 64-bit literal (gfx1250).
    pub(crate) wide_literal: bool,
    /// Codes 233, 234 (DPP8), 249 (SDWA) and 250 (DPP16) put a control dword behind the instruction. Where a
    /// generation lacks one of them, its code is reserved.
    pub(crate) modifiers: bool,
}

/// A source that may be a 32-bit literal.
pub(super) const fn source(shift: u8, width: u8) -> Source {
    Source { field: field(shift, width), wide_literal: false, modifiers: false }
}

impl Source {
    /// A 64-bit literal is possible too.
    pub(super) const fn wide(self) -> Self {
        Self { wide_literal: true, ..self }
    }

    /// DPP and SDWA are possible too.
    pub(super) const fn modified(self) -> Self {
        Self { modifiers: true, ..self }
    }

    /// Dwords of the literal that this source brings.
    pub(crate) const fn literal_dwords(self, low: u64) -> u8 {
        match self.field.of(low) {
            255 => 1,
            254 if self.wide_literal => 2,
            _ => 0,
        }
    }

    /// Dwords of the control word that this source brings.
    pub(crate) const fn control_dwords(self, low: u64) -> u8 {
        (self.modifiers && matches!(self.field.of(low), 233 | 234 | 249 | 250)) as u8
    }
}

/// What may make an instruction longer than its format.
#[derive(Clone, Copy)]
pub(crate) enum Extension {
    /// Sources. There is room for one literal, which several may share.
    Sources(&'static [Source]),
    /// VOP3P: sources, or a second instruction that counts as one with this (VOP3PX).
    Pair(&'static [Source]),
    /// VOPD: sources, or the second operation, in this field, has a literal of its own.
    Dual(&'static [Source], Field),
    /// Image: a count of further address dwords.
    Addresses(Field),
}

/// Never longer.
pub(super) const FIXED: Extension = Extension::Sources(&[]);

/// One microcode format of one generation.
pub(crate) struct Format {
    /// First bits of the instruction.
    pub(super) prefix: u16,
    /// How many they are, 1 to 9. A longer prefix wins over a shorter one.
    pub(super) prefix_length: u8,
    /// Length without extension.
    pub(crate) dwords: u8,
    /// Opcode: low bits, high bits.
    pub(crate) opcode: [Field; 2],
    /// Encodings in this format, each with the opcode that its table starts at.
    pub(super) encodings: &'static [(Encoding, u16)],
    pub(crate) extension: Extension,
}

/// A format with one encoding. `prefix` is written with all its bits.
pub(super) const fn format(
    (prefix, prefix_length): (u16, u8),
    dwords: u8,
    opcode: Field,
    encodings: &'static [(Encoding, u16)],
    extension: Extension,
) -> Format {
    Format { prefix, prefix_length, dwords, opcode: [opcode, NONE], encodings, extension }
}

impl Format {
    /// The opcode continues in `high`.
    pub(super) const fn and(self, high: Field) -> Self {
        let [low, _] = self.opcode;
        Self { opcode: [low, high], ..self }
    }

    /// How many opcodes there can be.
    pub(crate) const fn opcodes(&self) -> usize {
        let [low, high] = self.opcode;
        1 << (low.width() + high.width())
    }

    /// Opcode of an instruction.
    pub(crate) const fn opcode_of(&self, low: u64) -> usize {
        let [first, second] = self.opcode;
        (first.of(low) | second.of(low) << first.width()) as usize
    }
}
