//! The kernel descriptor: the 64 bytes at `kernel_object`.
//!
//! Layout and granules: LLVM "User Guide for AMDGPU Backend", "Code Object V3 Kernel Descriptor" and
//! `AMDGPUBaseInfo.cpp` (`getVGPRAllocGranule`, `getVGPREncodingGranule`, `getTotalNumVGPRs`).

use wavescope_pm4::{Generation, Target};

use crate::DeviceConfig;

pub(crate) const DESCRIPTOR_BYTES: usize = 64;

/// The fields that launching a wave needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// Address of the first instruction.
    pub(crate) entry: u64,
    /// COMPUTE_PGM_RSRC1, 2, 3.
    pub(crate) rsrc: [u32; 3],
    properties: u16,
}

impl Descriptor {
    const ENABLE_WAVEFRONT_SIZE32: u16 = 1 << 10;

    /// Takes the descriptor at `address` apart.
    pub(crate) fn parse(address: u64, bytes: &[u8; DESCRIPTOR_BYTES]) -> Self {
        let dword = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let offset = u64::from(dword(16)) | u64::from(dword(20)) << 32;
        Self {
            entry: address.wrapping_add(offset),
            rsrc: [dword(48), dword(52), dword(44)],
            properties: u16::from_le_bytes([bytes[56], bytes[57]]),
        }
    }

    /// Lanes of its waves: gfx9 has 64 only, later chips let the kernel choose.
    pub(crate) fn wave_size(&self, config: &DeviceConfig) -> u8 {
        match config.target.generation() {
            Generation::Gfx9 => 64,
            Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12 => {
                if self.properties & Self::ENABLE_WAVEFRONT_SIZE32 != 0 { 32 } else { 64 }
            }
        }
    }

    /// GRANULATED_WORKITEM_VGPR_COUNT.
    pub(crate) const fn vgpr_granules(&self) -> u32 {
        self.rsrc[0] & 0x3F
    }
}

/// How a SIMD gives out vector registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    /// Registers that one wave of this size could take if it were alone.
    pub(crate) total: u32,
    encoding_granule: u32,
    allocation_granule: u32,
}

impl Registers {
    pub(crate) const fn of(target: Target, wave_size: u8) -> Self {
        let wide = wave_size == 64;
        let (total, encoding_granule, allocation_granule) = match (target, wide) {
            (Target::Gfx906 | Target::Gfx908, _) => (256, 4, 4),
            (Target::Gfx90a | Target::Gfx942 | Target::Gfx950, _) => (512, 8, 8),
            (Target::Gfx1030, false) => (1024, 8, 16),
            (Target::Gfx1030, true) => (512, 4, 8),
            (Target::Gfx1100 | Target::Gfx1200 | Target::Gfx1201, false) => (1536, 8, 24),
            (Target::Gfx1100 | Target::Gfx1200 | Target::Gfx1201, true) => (768, 4, 12),
        };
        Self { total, encoding_granule, allocation_granule }
    }

    /// Registers taken by a wave whose descriptor holds this granule count.
    pub(crate) const fn allocated(self, granules: u32) -> u32 {
        ((granules + 1) * self.encoding_granule).next_multiple_of(self.allocation_granule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Occupancy figures of LLVM's AMDGPU guide: 512 registers on gfx90a leave 8 waves of up to 64 registers.
    #[test]
    fn granules_are_those_of_the_target() {
        let mi200 = Registers::of(Target::Gfx90a, 64);
        assert_eq!((mi200.allocated(0), mi200.allocated(7)), (8, 64));
        assert_eq!(mi200.total / mi200.allocated(8), 7);
        let navi31 = Registers::of(Target::Gfx1100, 32);
        assert_eq!((navi31.allocated(0), navi31.allocated(11)), (24, 96));
        assert_eq!(navi31.total / navi31.allocated(11), 16);
    }

    #[test]
    fn descriptor_fields_lie_where_llvm_puts_them() {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        bytes[16..24].copy_from_slice(&(-256_i64).to_le_bytes());
        bytes[44..48].copy_from_slice(&3_u32.to_le_bytes());
        bytes[48..52].copy_from_slice(&0xC0_u32.to_le_bytes());
        bytes[52..56].copy_from_slice(&0x1388_u32.to_le_bytes());
        bytes[56..58].copy_from_slice(&0x400_u16.to_le_bytes());
        let descriptor = Descriptor::parse(0x1000, &bytes);
        assert_eq!(descriptor.entry, 0xF00);
        assert_eq!(descriptor.rsrc, [0xC0, 0x1388, 3]);
        let mut config = DeviceConfig::mi300x();
        assert_eq!(descriptor.wave_size(&config), 64);
        config.target = Target::Gfx1100;
        assert_eq!(descriptor.wave_size(&config), 32);
    }
}
