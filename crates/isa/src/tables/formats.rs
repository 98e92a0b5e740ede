//! Microcode formats of each generation, after AMD's instruction-set documents ("Microcode formats").

use super::format::{Extension, FIXED, Field, Format, Source, field, format, source};
use crate::encoding::Encoding::{
    Ds, Exp, Flat, Global, Ldsdir, Mimg, Mtbuf, Mubuf, Scratch, Smem, Sop1, Sop2, Sopc, Sopk, Sopp, Vinterp,
    Vintrp, Vop1, Vop2, Vop3, Vop3p, Vopc, Vopd, Vopd3, Vsample,
};

const SCALAR_1: &[Source] = &[source(0, 8)];
const SCALAR_2: &[Source] = &[source(0, 8), source(8, 8)];
const VECTOR: &[Source] = &[source(0, 9).modified()];

const WIDE_SCALAR_1: &[Source] = &[source(0, 8).wide()];
const WIDE_SCALAR_2: &[Source] = &[source(0, 8).wide(), source(8, 8).wide()];
const WIDE_VECTOR: &[Source] = &[source(0, 9).wide().modified()];

/// gfx10: literals in the 64-bit formats, but no DPP yet.
const VECTOR_3: &[Source] = &[source(32, 9), source(41, 9), source(50, 9)];
const DPP_VECTOR_3: &[Source] = &[source(32, 9).modified(), source(41, 9), source(50, 9)];
const WIDE_VECTOR_3: &[Source] =
    &[source(32, 9).wide().modified(), source(41, 9).wide(), source(50, 9).wide()];

const DUAL: &[Source] = &[source(0, 9), source(32, 9)];
const WIDE_DUAL: &[Source] = &[source(0, 9).wide(), source(32, 9).wide()];

/// Opcode of the second operation of a VOPD instruction.
const DUAL_OPCODE: Field = field(17, 5);

/// The 32-bit formats are laid out the same in every generation.
const fn short(
    scalar_1: &'static [Source],
    scalar_2: &'static [Source],
    vector: &'static [Source],
) -> [Format; 8] {
    [
        format((0b10, 2), 1, field(23, 7), &[(Sop2, 0)], Extension::Sources(scalar_2)),
        format((0b1011, 4), 1, field(23, 5), &[(Sopk, 0)], FIXED),
        format((0b1_0111_1101, 9), 1, field(8, 8), &[(Sop1, 0)], Extension::Sources(scalar_1)),
        format((0b1_0111_1110, 9), 1, field(16, 7), &[(Sopc, 0)], Extension::Sources(scalar_2)),
        format((0b1_0111_1111, 9), 1, field(16, 7), &[(Sopp, 0)], FIXED),
        format((0b0, 1), 1, field(25, 6), &[(Vop2, 0)], Extension::Sources(vector)),
        format((0b011_1111, 7), 1, field(9, 8), &[(Vop1, 0)], Extension::Sources(vector)),
        format((0b011_1110, 7), 1, field(17, 8), &[(Vopc, 0)], Extension::Sources(vector)),
    ]
}

const SHORT: &[Format] = &short(SCALAR_1, SCALAR_2, VECTOR);
const WIDE_SHORT: &[Format] = &short(WIDE_SCALAR_1, WIDE_SCALAR_2, WIDE_VECTOR);

/// Flat, scratch and global memory share a format of 7 opcode bits and a segment number.
const SEGMENTS_7: &[(crate::Encoding, u16)] = &[(Flat, 0), (Scratch, 1 << 7), (Global, 2 << 7)];
const SEGMENTS_8: &[(crate::Encoding, u16)] = &[(Flat, 0), (Scratch, 1 << 8), (Global, 2 << 8)];

/// Vector compares have the same opcodes in VOP3 as in VOPC.
const THREE_SOURCES: &[(crate::Encoding, u16)] = &[(Vop3, 0)];

/// A generation's formats: the 32-bit ones and the others.
pub(super) type Formats = [&'static [Format]; 2];

pub(super) const GFX9: Formats = [
    SHORT,
    &[
        format((0b11_0000, 6), 2, field(18, 8), &[(Smem, 0)], FIXED),
        format((0b11_0001, 6), 2, field(0, 0), &[(Exp, 0)], FIXED),
        format((0b11_0100, 6), 2, field(16, 10), THREE_SOURCES, FIXED),
        format((0b1_1010_0111, 9), 2, field(16, 7), &[(Vop3p, 0)], Extension::Pair(&[])),
        format((0b11_0101, 6), 1, field(16, 2), &[(Vintrp, 0)], FIXED),
        format((0b11_0110, 6), 2, field(17, 8), &[(Ds, 0)], FIXED),
        format((0b11_0111, 6), 2, field(18, 7), SEGMENTS_7, FIXED).and(field(14, 2)),
        format((0b11_1000, 6), 2, field(18, 7), &[(Mubuf, 0)], FIXED),
        format((0b11_1010, 6), 2, field(15, 4), &[(Mtbuf, 0)], FIXED),
        format((0b11_1100, 6), 2, field(18, 7), &[(Mimg, 0)], FIXED).and(field(0, 1)),
    ],
];

pub(super) const GFX10: Formats = [
    SHORT,
    &[
        format((0b11_0010, 6), 1, field(16, 2), &[(Vintrp, 0)], FIXED),
        format((0b11_0011, 6), 2, field(16, 7), &[(Vop3p, 0)], Extension::Sources(VECTOR_3)),
        format((0b11_0101, 6), 2, field(16, 10), THREE_SOURCES, Extension::Sources(VECTOR_3)),
        format((0b11_0110, 6), 2, field(18, 8), &[(Ds, 0)], FIXED),
        format((0b11_0111, 6), 2, field(18, 7), SEGMENTS_7, FIXED).and(field(14, 2)),
        format((0b11_1000, 6), 2, field(18, 8), &[(Mubuf, 0)], FIXED),
        format((0b11_1010, 6), 2, field(16, 3), &[(Mtbuf, 0)], FIXED).and(field(53, 1)),
        format((0b11_1100, 6), 2, field(18, 7), &[(Mimg, 0)], Extension::Addresses(field(1, 2)))
            .and(field(0, 1)),
        format((0b11_1101, 6), 2, field(18, 8), &[(Smem, 0)], FIXED),
        format((0b11_1110, 6), 2, field(0, 0), &[(Exp, 0)], FIXED),
    ],
];

pub(super) const GFX11: Formats = [
    SHORT,
    &[
        format((0b11_0010, 6), 2, field(22, 4), &[(Vopd, 0)], Extension::Dual(DUAL, DUAL_OPCODE)),
        format((0b1100_1100, 8), 2, field(16, 8), &[(Vop3p, 0)], Extension::Sources(DPP_VECTOR_3)),
        format((0b1100_1101, 8), 2, field(16, 5), &[(Vinterp, 0)], FIXED),
        format((0b1100_1110, 8), 1, field(20, 2), &[(Ldsdir, 0)], FIXED),
        format((0b11_0101, 6), 2, field(16, 10), THREE_SOURCES, Extension::Sources(DPP_VECTOR_3)),
        format((0b11_0110, 6), 2, field(18, 8), &[(Ds, 0)], FIXED),
        format((0b11_0111, 6), 2, field(18, 7), SEGMENTS_7, FIXED).and(field(16, 2)),
        format((0b11_1000, 6), 2, field(18, 8), &[(Mubuf, 0)], FIXED),
        format((0b11_1010, 6), 2, field(15, 4), &[(Mtbuf, 0)], FIXED),
        format((0b11_1100, 6), 2, field(18, 8), &[(Mimg, 0)], Extension::Addresses(field(0, 1))),
        format((0b11_1101, 6), 2, field(18, 8), &[(Smem, 0)], FIXED),
        format((0b11_1110, 6), 2, field(0, 0), &[(Exp, 0)], FIXED),
    ],
];

pub(super) const GFX12: Formats = [
    SHORT,
    &[
        format((0b11_0001, 6), 3, field(14, 8), &[(Mubuf, 0)], FIXED),
        format((0b11_0010, 6), 2, field(22, 4), &[(Vopd, 0)], Extension::Dual(DUAL, DUAL_OPCODE)),
        format((0b1100_1100, 8), 2, field(16, 8), &[(Vop3p, 0)], Extension::Sources(DPP_VECTOR_3)),
        format((0b1100_1101, 8), 2, field(16, 5), &[(Vinterp, 0)], FIXED),
        format((0b1100_1110, 8), 1, field(20, 2), &[(Ldsdir, 0)], FIXED),
        // gfx1250's; no gfx12 chip is known to have it.
        format((0b1100_1111, 8), 3, field(18, 6), &[(Vopd3, 0)], Extension::Sources(DUAL)),
        format((0b11_0100, 6), 3, field(14, 8), &[(Mimg, 0)], FIXED),
        format((0b11_0101, 6), 2, field(16, 10), THREE_SOURCES, Extension::Sources(DPP_VECTOR_3)),
        format((0b11_0110, 6), 2, field(18, 8), &[(Ds, 0)], FIXED),
        format((0b11_1001, 6), 3, field(14, 8), &[(Vsample, 0)], FIXED),
        format((0b11_1011, 6), 3, field(14, 8), SEGMENTS_8, FIXED).and(field(24, 2)),
        format((0b11_1101, 6), 2, field(13, 6), &[(Smem, 0)], FIXED),
        format((0b11_1110, 6), 2, field(0, 0), &[(Exp, 0)], FIXED),
    ],
];

pub(super) const GFX1250: Formats = [
    WIDE_SHORT,
    &[
        format((0b11_0001, 6), 3, field(14, 8), &[(Mubuf, 0)], FIXED),
        format((0b11_0010, 6), 2, field(22, 4), &[(Vopd, 0)], Extension::Dual(WIDE_DUAL, DUAL_OPCODE)),
        format((0b1100_1100, 8), 2, field(16, 8), &[(Vop3p, 0)], Extension::Pair(WIDE_VECTOR_3)),
        format((0b1100_1101, 8), 2, field(16, 5), &[(Vinterp, 0)], FIXED),
        format((0b1100_1110, 8), 1, field(20, 2), &[(Ldsdir, 0)], FIXED),
        format((0b1100_1111, 8), 3, field(18, 6), &[(Vopd3, 0)], Extension::Sources(DUAL)),
        format((0b11_0100, 6), 3, field(14, 8), &[(Mimg, 0)], FIXED),
        format((0b11_0101, 6), 2, field(16, 10), THREE_SOURCES, Extension::Sources(WIDE_VECTOR_3)),
        format((0b11_0110, 6), 2, field(18, 8), &[(Ds, 0)], FIXED),
        format((0b11_1001, 6), 3, field(14, 8), &[(Vsample, 0)], FIXED),
        format((0b11_1011, 6), 3, field(14, 8), SEGMENTS_8, FIXED).and(field(24, 2)),
        format((0b11_1101, 6), 2, field(13, 6), &[(Smem, 0)], FIXED),
        format((0b11_1110, 6), 2, field(0, 0), &[(Exp, 0)], FIXED),
    ],
];
