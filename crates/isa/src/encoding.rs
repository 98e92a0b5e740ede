//! Microcode formats, as AMD's instruction-set documents name them.

use crate::class::InstructionClass;

/// Microcode format of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Encoding {
    /// Scalar ALU, two sources.
    Sop2,
    /// Scalar ALU with a 16-bit constant.
    Sopk,
    /// Scalar ALU, one source.
    Sop1,
    /// Scalar compare.
    Sopc,
    /// Program control.
    Sopp,
    /// Scalar memory.
    Smem,
    /// Vector ALU, two sources.
    Vop2,
    /// Vector ALU, one source.
    Vop1,
    /// Vector compare.
    Vopc,
    /// Vector ALU, three sources, 64 bits.
    Vop3,
    /// Packed and matrix vector ALU.
    Vop3p,
    /// Matrix with scales, two 64-bit halves (gfx950, gfx1250).
    Vop3px,
    /// Two vector ALU operations in one instruction (gfx11 and later).
    Vopd,
    /// The same with three sources, 96 bits (gfx1250).
    Vopd3,
    /// Parameter interpolation, 32 bits (gfx9, gfx10).
    Vintrp,
    /// Parameter interpolation, 64 bits (gfx11 and later).
    Vinterp,
    /// Direct LDS load (gfx11 and later).
    Ldsdir,
    /// Local and global data share.
    Ds,
    /// Untyped buffer; VBUFFER on gfx12.
    Mubuf,
    /// Typed buffer; part of VBUFFER on gfx12.
    Mtbuf,
    /// Image; VIMAGE on gfx12.
    Mimg,
    /// Image with a sampler (gfx12).
    Vsample,
    /// Flat memory.
    Flat,
    /// Scratch memory in the flat format.
    Scratch,
    /// Global memory in the flat format.
    Global,
    /// Export.
    Exp,
}

impl Encoding {
    /// How many there are.
    pub(crate) const COUNT: usize = Self::Exp as usize + 1;

    /// Name in lower case; also the mnemonic of opcodes that no table names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sop2 => "sop2",
            Self::Sopk => "sopk",
            Self::Sop1 => "sop1",
            Self::Sopc => "sopc",
            Self::Sopp => "sopp",
            Self::Smem => "smem",
            Self::Vop2 => "vop2",
            Self::Vop1 => "vop1",
            Self::Vopc => "vopc",
            Self::Vop3 => "vop3",
            Self::Vop3p => "vop3p",
            Self::Vop3px => "vop3px",
            Self::Vopd => "vopd",
            Self::Vopd3 => "vopd3",
            Self::Vintrp => "vintrp",
            Self::Vinterp => "vinterp",
            Self::Ldsdir => "ldsdir",
            Self::Ds => "ds",
            Self::Mubuf => "mubuf",
            Self::Mtbuf => "mtbuf",
            Self::Mimg => "mimg",
            Self::Vsample => "vsample",
            Self::Flat => "flat",
            Self::Scratch => "scratch",
            Self::Global => "global",
            Self::Exp => "exp",
        }
    }

    /// What nearly all instructions of the format are to the stitcher.
    pub(crate) const fn class(self) -> InstructionClass {
        match self {
            Self::Sop2 | Self::Sopk | Self::Sop1 | Self::Sopc => InstructionClass::Salu,
            Self::Sopp => InstructionClass::Immediate,
            Self::Smem => InstructionClass::Smem,
            Self::Vop2 | Self::Vop1 | Self::Vopc | Self::Vop3 | Self::Vop3p | Self::Vop3px => {
                InstructionClass::Valu
            }
            Self::Vopd | Self::Vopd3 | Self::Vintrp | Self::Vinterp => InstructionClass::Valu,
            Self::Ldsdir | Self::Ds => InstructionClass::Lds,
            Self::Mubuf | Self::Mtbuf | Self::Mimg | Self::Vsample => InstructionClass::Vmem,
            Self::Scratch | Self::Global => InstructionClass::Vmem,
            Self::Flat => InstructionClass::Flat,
            Self::Exp => InstructionClass::Unknown,
        }
    }
}
