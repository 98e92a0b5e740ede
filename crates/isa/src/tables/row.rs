//! One line of the opcode tables, and names for the sets of generations that share it.

use crate::target::Generation;

/// An opcode: its number in the format, the generations that have it, its name.
pub(crate) struct Row {
    pub(crate) opcode: u16,
    pub(crate) generations: u16,
    pub(crate) reads: u8,
    pub(crate) name: &'static str,
}

/// An opcode that reads every source field of its format.
pub(super) const fn row(opcode: u16, generations: u16, name: &'static str) -> Row {
    Row { opcode, generations, reads: u8::MAX, name }
}

impl Row {
    /// Reads only these source fields, bit 0 for the first. The others can hold anything: the code of a literal
    /// there brings no literal.
    pub(super) const fn reads(self, fields: u8) -> Self {
        Self { reads: fields, ..self }
    }

    /// Whether the generation has it.
    pub(crate) const fn is_in(&self, generation: Generation) -> bool {
        self.generations & bit(generation) != 0
    }
}

const fn bit(generation: Generation) -> u16 {
    1 << generation as u16
}

pub(super) const GFX9: u16 = bit(Generation::Gfx9);
pub(super) const GFX90A: u16 = bit(Generation::Gfx90a);
pub(super) const GFX940: u16 = bit(Generation::Gfx940);
pub(super) const GFX10: u16 = bit(Generation::Gfx10);
pub(super) const GFX10_3: u16 = bit(Generation::Gfx10_3);
pub(super) const GFX11: u16 = bit(Generation::Gfx11);
pub(super) const GFX11_5: u16 = bit(Generation::Gfx11_5);
pub(super) const GFX12: u16 = bit(Generation::Gfx12);
pub(super) const GFX1250: u16 = bit(Generation::Gfx1250);

pub(super) const GFX9_ALL: u16 = GFX9 | GFX90A | GFX940;
pub(super) const GFX10_ALL: u16 = GFX10 | GFX10_3;
pub(super) const GFX11_ALL: u16 = GFX11 | GFX11_5;
pub(super) const GFX12_ON: u16 = GFX12 | GFX1250;
pub(super) const GFX11_ON: u16 = GFX11_ALL | GFX12_ON;
pub(super) const RDNA: u16 = GFX10_ALL | GFX11_ON;
pub(super) const ALL: u16 = GFX9_ALL | RDNA;
