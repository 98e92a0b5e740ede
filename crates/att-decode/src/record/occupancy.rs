//! Starts and ends of waves.

use super::Pc;

/// Start or end of a wave anywhere on the shader engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Occupancy {
    /// Kernel entry of the wave.
    pub pc: Pc,
    /// Shader clock.
    pub time: u64,
    reserved: u8,
    /// Compute unit, or shader array · 128 + WGP on RDNA.
    pub cu: u8,
    /// SIMD.
    pub simd: u8,
    /// Wave slot.
    pub wave_id: u8,
    bits: u32,
}

const _: () = assert!(size_of::<Occupancy>() == 32);

/// The packed part of an [`Occupancy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OccupancyTags {
    pub(crate) me: u8,
    pub(crate) pipe: u8,
    pub(crate) is_ext: bool,
    pub(crate) workgroup: u8,
    pub(crate) cluster: u8,
}

impl Occupancy {
    pub(crate) const fn new(
        start: bool,
        pc: Pc,
        time: i64,
        place: (u8, u8, u8),
        tags: OccupancyTags,
    ) -> Self {
        let bits = start as u32
            | (tags.me as u32 & 7) << 1
            | (tags.pipe as u32 & 15) << 4
            | (tags.is_ext as u32) << 8
            | (tags.workgroup as u32 & 127) << 9
            | (tags.cluster as u32 & 31) << 16;
        let (cu, simd, wave_id) = place;
        Occupancy { pc, time: time as u64, reserved: 0, cu, simd, wave_id, bits }
    }

    /// Whether the wave starts; it ends otherwise.
    pub const fn is_start(&self) -> bool {
        self.bits & 1 == 1
    }

    /// Micro-engine of the queue.
    pub const fn me_id(&self) -> u8 {
        (self.bits >> 1 & 7) as u8
    }

    /// Pipe of the queue.
    pub const fn pipe_id(&self) -> u8 {
        (self.bits >> 4 & 15) as u8
    }

    /// Whether the start token had the extended form with the work group in it.
    pub const fn is_ext(&self) -> bool {
        self.bits >> 8 & 1 == 1
    }

    /// Work group, where the start had the extended form.
    pub const fn workgroup_id(&self) -> u8 {
        (self.bits >> 9 & 127) as u8
    }

    /// Cluster (gfx1250).
    pub const fn cluster_id(&self) -> u8 {
        (self.bits >> 16 & 31) as u8
    }
}
