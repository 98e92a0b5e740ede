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

/// The packed part of an [`Occupancy`], start bit apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OccupancyTags(u32);

impl OccupancyTags {
    /// The queue that launched a wave.
    #[inline(always)]
    pub(crate) const fn of_queue(me: u8, pipe: u8) -> Self {
        OccupancyTags((me as u32 & 7) << 1 | (pipe as u32 & 15) << 4)
    }

    /// The same for a queue as a start token names it: pipe in the low two bits, micro-engine above.
    #[inline(always)]
    pub(crate) const fn of_start(queue: u8) -> Self {
        const ALL: [OccupancyTags; 8] = {
            let mut all = [OccupancyTags(0); 8];
            let mut queue = 0;
            while queue < 8 {
                all[queue as usize] = OccupancyTags::of_queue(queue >> 2, queue & 3);
                queue += 1;
            }
            all
        };
        ALL[queue as usize % 8]
    }

    /// With the work group of an extended start.
    #[inline(always)]
    pub(crate) const fn extended(self, workgroup: u8) -> Self {
        OccupancyTags(self.0 | 1 << 8 | (workgroup as u32 & 127) << 9)
    }

    /// With the cluster.
    #[inline(always)]
    pub(crate) const fn in_cluster(self, cluster: u8) -> Self {
        OccupancyTags(self.0 | (cluster as u32 & 31) << 16)
    }
}

impl Occupancy {
    #[inline(always)]
    pub(crate) const fn new(
        start: bool,
        pc: Pc,
        time: i64,
        place: (u8, u8, u8),
        tags: OccupancyTags,
    ) -> Self {
        let (cu, simd, wave_id) = place;
        Occupancy { pc, time: time as u64, reserved: 0, cu, simd, wave_id, bits: tags.0 | start as u32 }
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
