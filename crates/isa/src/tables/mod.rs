//! One constant table per generation: formats by the first bits, opcodes by number.
//!
//! The rows are facts of AMD's instruction-set documents and LLVM's AMDGPU target, checked against LLVM's disassembler
//! by `examples/compare_random_words.rs` and, on compiled programs, `examples/compare_disassembly.rs`.

mod buffer;
mod build;
mod compare;
mod control;
mod flat;
pub(crate) mod format;
mod formats;
mod image;
mod packed;
mod row;
mod scalar;
mod share;
mod vector;
mod vop3;

use crate::encoding::Encoding;
use crate::opcode::Opcode;
use crate::target::Generation;
use format::Format;
use formats::Formats;
use row::Row;

/// All rows, in the order of [`NAMES`].
const SECTIONS: &[(Encoding, &[Row])] = &[
    (Encoding::Sop2, scalar::SOP2),
    (Encoding::Sopk, scalar::SOPK),
    (Encoding::Sop1, scalar::SOP1),
    (Encoding::Sopc, control::SOPC),
    (Encoding::Sopp, control::SOPP),
    (Encoding::Smem, control::SMEM),
    (Encoding::Vop2, vector::VOP2),
    (Encoding::Vop1, vector::VOP1),
    (Encoding::Vopc, compare::VOPC),
    (Encoding::Vop3, vop3::VOP3),
    (Encoding::Vop3p, packed::VOP3P),
    (Encoding::Vop3px, packed::VOP3PX),
    (Encoding::Vopd, packed::VOPD),
    (Encoding::Vopd3, packed::VOPD3),
    (Encoding::Vintrp, vector::VINTRP),
    (Encoding::Vinterp, packed::VINTERP),
    (Encoding::Ldsdir, vector::LDSDIR),
    (Encoding::Ds, share::DS),
    (Encoding::Mubuf, buffer::MUBUF),
    (Encoding::Mtbuf, buffer::MTBUF),
    (Encoding::Mimg, image::MIMG),
    (Encoding::Vsample, image::VSAMPLE),
    (Encoding::Flat, flat::FLAT),
    (Encoding::Scratch, flat::SCRATCH),
    (Encoding::Global, flat::GLOBAL),
    (Encoding::Exp, vector::EXP),
];

/// Number of names: one per encoding, then one per row.
const NAME_COUNT: usize = {
    let mut count = Encoding::COUNT;
    let mut section = 0;
    while section < SECTIONS.len() {
        count += SECTIONS[section].1.len();
        section += 1;
    }
    count
};

/// Every mnemonic; [`Opcode::name`] is a place in it. The encodings' own names come first.
pub(crate) static NAMES: [&str; NAME_COUNT] = {
    let mut names = [""; NAME_COUNT];
    let mut next = Encoding::COUNT;
    let mut section = 0;
    while section < SECTIONS.len() {
        let (encoding, rows) = SECTIONS[section];
        names[encoding as usize] = encoding.name();
        let mut row = 0;
        while row < rows.len() {
            names[next] = rows[row].name;
            next += 1;
            row += 1;
        }
        section += 1;
    }
    names
};

/// What the first bits of an instruction tell.
#[derive(Clone, Copy)]
pub(crate) struct Prefix {
    pub(crate) format: &'static Format,
    /// Where the format's opcodes begin in the generation's.
    base: u16,
}

/// Everything that decoding needs to know of a generation.
pub(crate) struct Table {
    /// By the first 9 bits.
    prefixes: [Option<Prefix>; 512],
    opcodes: &'static [Opcode],
    /// VOP3PX by its two opcodes.
    pairs: &'static [(u16, Opcode)],
}

impl Table {
    /// What the instruction that begins with `word` is laid out like.
    pub(crate) const fn prefix(&self, word: u32) -> Option<Prefix> {
        self.prefixes[(word >> 23) as usize]
    }

    /// Opcode of an instruction in this format.
    pub(crate) const fn opcode(&self, prefix: Prefix, low: u64) -> Opcode {
        self.opcodes[prefix.base as usize + prefix.format.opcode_of(low)]
    }

    /// The one instruction that two VOP3P instructions with these opcodes make together.
    pub(crate) fn pair(&self, first: usize, second: usize) -> Option<Opcode> {
        let both = first << 8 | second;
        self.pairs.iter().find(|(opcodes, _)| *opcodes as usize == both).map(|(_, opcode)| *opcode)
    }
}

/// The table of a generation.
pub(crate) const fn table(generation: Generation) -> &'static Table {
    match generation {
        Generation::Gfx9 => &GFX9,
        Generation::Gfx90a => &GFX90A,
        Generation::Gfx940 => &GFX940,
        Generation::Gfx10 => &GFX10,
        Generation::Gfx10_3 => &GFX10_3,
        Generation::Gfx11 => &GFX11,
        Generation::Gfx11_5 => &GFX11_5,
        Generation::Gfx12 => &GFX12,
        Generation::Gfx1250 => &GFX1250,
    }
}

/// Builds the table of one generation. An opcode that the generation does not name is taken from its siblings, later
/// ones winning: the chip may well run it though a strict disassembler refuses.
macro_rules! table {
    ($name:ident, $formats:expr, [$($sibling:ident),*], $own:ident, $pairs:literal) => {
        static $name: Table = {
            const FORMATS: Formats = $formats;
            const GENERATIONS: &[Generation] = &[$(Generation::$sibling,)* Generation::$own];
            static OPCODES: [Opcode; build::opcode_count(FORMATS)] = build::opcodes(FORMATS, GENERATIONS);
            static PAIRS: [(u16, Opcode); $pairs] = build::pairs(Generation::$own);
            Table { prefixes: build::prefixes(FORMATS), opcodes: &OPCODES, pairs: &PAIRS }
        };
    };
}

table!(GFX9, formats::GFX9, [Gfx940, Gfx90a], Gfx9, 0);
table!(GFX90A, formats::GFX9, [Gfx940, Gfx9], Gfx90a, 0);
table!(GFX940, formats::GFX9, [Gfx9, Gfx90a], Gfx940, 2);
table!(GFX10, formats::GFX10, [Gfx10_3], Gfx10, 0);
table!(GFX10_3, formats::GFX10, [Gfx10], Gfx10_3, 0);
table!(GFX11, formats::GFX11, [Gfx11_5], Gfx11, 0);
table!(GFX11_5, formats::GFX11, [Gfx11], Gfx11_5, 0);
table!(GFX12, formats::GFX12, [Gfx1250], Gfx12, 0);
table!(GFX1250, formats::GFX1250, [Gfx12], Gfx1250, 4);

#[cfg(test)]
mod tests;
