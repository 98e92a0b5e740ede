//! Microcode formats, as AMD's instruction-set documents name them.

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
