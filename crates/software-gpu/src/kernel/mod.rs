//! What a dispatch asks of the hardware: geometry from its packet, resources from its kernel descriptor.

mod descriptor;
mod geometry;

pub(crate) use descriptor::{DESCRIPTOR_BYTES, Descriptor, Registers};
pub(crate) use geometry::{Geometry, Workgroup};

use crate::DeviceConfig;

/// What one work-group needs on a compute unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Lanes of a wave.
    pub(crate) wave_size: u8,
    /// Vector registers of one wave, rounded as the hardware allocates them.
    pub(crate) vgprs: u32,
    /// LDS bytes of the work-group, rounded likewise.
    pub(crate) lds_bytes: u32,
}

impl Needs {
    /// Combines descriptor and packet: LDS is what the packet says, static and dynamic.
    pub(crate) fn new(config: &DeviceConfig, descriptor: &Descriptor, group_segment_bytes: u32) -> Self {
        let wave_size = descriptor.wave_size(config);
        let rules = Registers::of(config.target, wave_size);
        Self {
            wave_size,
            vgprs: rules.allocated(descriptor.vgpr_granules()),
            lds_bytes: group_segment_bytes.next_multiple_of(LDS_GRANULE),
        }
    }
}

/// LDS is given out in blocks of this many bytes (LLVM AMDGPU usage, GRANULATED_LDS_SIZE).
const LDS_GRANULE: u32 = 512;
