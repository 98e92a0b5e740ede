//! Events that count instructions.
//!
//! Numbers: `counter_defs.yaml` of ROCm/rocm-systems. Meanings: AMD Instinct MI300 and MI200 performance counters
//! (rocm.docs.amd.com): vector memory includes flat, `SENDMSG` includes ends of program, MI200's `LDS` includes flat
//! instructions that reach LDS.

use wavescope_pm4::Target;

use crate::walk::Counts;

/// Instructions of one sequencer's waves, by the size of the wave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Executed {
    pub(crate) wave32: Counts,
    pub(crate) wave64: Counts,
}

/// A kind of instruction that an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    All,
    Valu,
    Matrix,
    Salu,
    Smem,
    Vmem,
    VmemRead,
    VmemWrite,
    /// Everything in the flat encoding.
    Flat,
    /// Flat proper.
    FlatSegment,
    Lds,
    LdsAndFlatSegment,
    Branch,
    /// Messages and ends of program.
    Message,
    /// Buffer and image reads.
    TexLoad,
    TexStore,
    Wave32,
    Wave32Valu,
    Wave32Lds,
    Wave64,
}

impl Executed {
    /// The counts of waves of this size.
    pub(crate) const fn of_size(&mut self, wave_size: u8) -> &mut Counts {
        if wave_size == 32 { &mut self.wave32 } else { &mut self.wave64 }
    }

    /// How many instructions of a kind.
    pub(crate) fn count(&self, kind: Kind) -> u64 {
        let mut both = self.wave32;
        both += self.wave64;
        match kind {
            Kind::All => both.all(),
            Kind::Valu => both.valu,
            Kind::Matrix => both.matrix,
            Kind::Salu => both.salu,
            Kind::Smem => both.smem,
            Kind::Vmem => both.vmem_read + both.vmem_write,
            Kind::VmemRead => both.vmem_read,
            Kind::VmemWrite => both.vmem_write,
            Kind::Flat => both.flat_read + both.flat_write,
            Kind::FlatSegment => both.flat_segment,
            Kind::Lds => both.lds,
            Kind::LdsAndFlatSegment => both.lds + both.flat_segment,
            Kind::Branch => both.branch,
            Kind::Message => both.message + both.end,
            Kind::TexLoad => both.vmem_read - both.flat_read,
            Kind::TexStore => both.vmem_write - both.flat_write,
            Kind::Wave32 => self.wave32.all(),
            Kind::Wave32Valu => self.wave32.valu,
            Kind::Wave32Lds => self.wave32.lds,
            Kind::Wave64 => self.wave64.all(),
        }
    }
}

/// What an SQ event counts, if it counts instructions.
pub(crate) fn kind(target: Target, event: u32) -> Option<Kind> {
    let table = match target {
        Target::Gfx906 => return None,
        Target::Gfx908 => GFX908,
        Target::Gfx90a => GFX90A,
        Target::Gfx942 => GFX942,
        Target::Gfx950 => GFX950,
        Target::Gfx1030 => GFX1030,
        Target::Gfx1100 => GFX1100,
        Target::Gfx1200 | Target::Gfx1201 => GFX12,
    };
    table.iter().find(|(number, _)| *number == event).map(|(_, kind)| *kind)
}

type Table = &'static [(u32, Kind)];

const GFX908: Table = &[
    (25, Kind::All),
    (26, Kind::Valu),
    (27, Kind::Matrix),
    (28, Kind::VmemWrite),
    (29, Kind::VmemRead),
    (30, Kind::Vmem),
    (31, Kind::Salu),
    (32, Kind::Smem),
    (33, Kind::Flat),
    (35, Kind::LdsAndFlatSegment),
    (39, Kind::Branch),
    (40, Kind::Message),
];

const GFX90A: Table = &[
    (25, Kind::All),
    (26, Kind::Valu),
    (52, Kind::Matrix),
    (53, Kind::VmemWrite),
    (54, Kind::VmemRead),
    (55, Kind::Vmem),
    (56, Kind::Salu),
    (57, Kind::Smem),
    (58, Kind::Flat),
    (60, Kind::LdsAndFlatSegment),
    (64, Kind::Branch),
    (65, Kind::Message),
];

const GFX942: Table = &[
    (25, Kind::All),
    (26, Kind::Valu),
    (56, Kind::Matrix),
    (57, Kind::VmemWrite),
    (58, Kind::VmemRead),
    (59, Kind::Vmem),
    (60, Kind::Salu),
    (61, Kind::Smem),
    (62, Kind::Flat),
    (65, Kind::Lds),
    (69, Kind::Branch),
    (70, Kind::Message),
];

const GFX950: Table = &[
    (25, Kind::All),
    (26, Kind::Valu),
    (58, Kind::Matrix),
    (59, Kind::VmemWrite),
    (60, Kind::VmemRead),
    (61, Kind::Vmem),
    (62, Kind::Salu),
    (63, Kind::Smem),
    (64, Kind::Flat),
    (65, Kind::FlatSegment),
    (67, Kind::Lds),
    (71, Kind::Branch),
    (72, Kind::Message),
];

const GFX1030: Table = &[
    (57, Kind::Flat),
    (59, Kind::Lds),
    (60, Kind::Salu),
    (61, Kind::Smem),
    (64, Kind::Valu),
    (71, Kind::Wave32),
    (74, Kind::Wave32Lds),
    (75, Kind::Wave32Valu),
    (84, Kind::Wave32),
    (85, Kind::Wave64),
];

const GFX1100: Table = &[
    (56, Kind::Flat),
    (57, Kind::Lds),
    (58, Kind::Salu),
    (59, Kind::Smem),
    (62, Kind::Valu),
    (66, Kind::TexLoad),
    (67, Kind::TexStore),
    (70, Kind::Wave32),
    (72, Kind::Wave32Lds),
    (73, Kind::Wave32Valu),
    (82, Kind::Wave32),
    (83, Kind::Wave64),
];

const GFX12: Table = &[
    (44, Kind::Flat),
    (45, Kind::Lds),
    (46, Kind::Salu),
    (47, Kind::Smem),
    (50, Kind::Valu),
    (54, Kind::TexLoad),
    (55, Kind::TexStore),
    (58, Kind::Wave32),
    (60, Kind::Wave32Lds),
    (61, Kind::Wave32Valu),
    (70, Kind::Wave32),
    (71, Kind::Wave64),
];
