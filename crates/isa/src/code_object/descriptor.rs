//! The kernel descriptor: 64 bytes that the packet processor reads to start waves.
//!
//! Layout: LLVM's AMDGPU usage guide, "Kernel Descriptor".

use crate::target::{Generation, Target};

const SIZE: usize = 64;

/// A kernel descriptor, read in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelDescriptor<'data> {
    bytes: &'data [u8; SIZE],
}

impl<'data> KernelDescriptor<'data> {
    /// Size in bytes.
    pub const SIZE: usize = SIZE;

    /// Reads the descriptor at the start of `bytes`. None if they are too few.
    pub fn new(bytes: &'data [u8]) -> Option<Self> {
        Some(Self { bytes: bytes.first_chunk()? })
    }

    fn word(&self, at: usize) -> u32 {
        let [a, b, c, d] = [0, 1, 2, 3].map(|byte| self.bytes[at + byte]);
        u32::from_le_bytes([a, b, c, d])
    }

    /// Bytes of LDS that the kernel declares.
    pub fn group_bytes(&self) -> u32 {
        self.word(0)
    }

    /// Bytes of scratch per lane.
    pub fn private_bytes(&self) -> u32 {
        self.word(4)
    }

    /// Bytes of kernel arguments.
    pub fn kernarg_bytes(&self) -> u32 {
        self.word(8)
    }

    /// First instruction, relative to the descriptor's own address.
    pub fn entry_offset(&self) -> i64 {
        (u64::from(self.word(20)) << 32 | u64::from(self.word(16))) as i64
    }

    /// Register `COMPUTE_PGM_RSRC1`.
    pub fn rsrc1(&self) -> u32 {
        self.word(48)
    }

    /// Register `COMPUTE_PGM_RSRC2`.
    pub fn rsrc2(&self) -> u32 {
        self.word(52)
    }

    /// Register `COMPUTE_PGM_RSRC3`.
    pub fn rsrc3(&self) -> u32 {
        self.word(44)
    }

    /// `KERNEL_CODE_PROPERTIES`: which registers are set up at the start, and the wave size.
    pub fn code_properties(&self) -> u16 {
        self.word(56) as u16
    }

    /// Whether waves have 32 lanes. Always false before gfx10.
    pub fn is_wave32(&self) -> bool {
        self.code_properties() >> 10 & 1 != 0
    }

    /// User scalar registers.
    pub fn user_sgprs(&self) -> u32 {
        self.rsrc2() >> 1 & 0x1f
    }

    /// Vector registers allocated per lane, in the granularity that the register field has on this target.
    pub fn vgprs(&self, target: Target) -> u32 {
        let granule = match target.generation() {
            Generation::Gfx9 => 4,
            Generation::Gfx90a | Generation::Gfx940 => 8,
            Generation::Gfx1250 => 16,
            _ if self.is_wave32() => 8,
            _ => 4,
        };
        ((self.rsrc1() & 0x3f) + 1) * granule
    }

    /// First accumulation register among the vector registers, where the two share a file (gfx90a, gfx940).
    pub fn accumulation_offset(&self, target: Target) -> Option<u32> {
        let shared = matches!(target.generation(), Generation::Gfx90a | Generation::Gfx940);
        shared.then(|| ((self.rsrc3() & 0x3f) + 1) * 4)
    }

    /// Scalar registers allocated. Every wave has 128 since gfx10.
    pub fn sgprs(&self, target: Target) -> u32 {
        if target.gfxip() > 9 { 128 } else { ((self.rsrc1() >> 7 & 7) + 1) * 16 }
    }
}
