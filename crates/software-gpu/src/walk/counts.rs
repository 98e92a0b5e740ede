//! How many instructions of which kind.

use super::path::{Flow, Step};
use super::work::{Detail, Unit};

/// Instructions by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Vector ALU.
    pub valu: u64,
    /// Part of `valu`: matrix.
    pub matrix: u64,
    /// Scalar ALU, jumps to registers included.
    pub salu: u64,
    /// Scalar memory.
    pub smem: u64,
    /// Vector memory reads, flat included.
    pub vmem_read: u64,
    /// Vector memory writes and atomics, flat included.
    pub vmem_write: u64,
    /// Part of `vmem_read`: flat, global and scratch ones.
    pub flat_read: u64,
    /// Part of `vmem_write`, likewise.
    pub flat_write: u64,
    /// Part of the last two: those that reach LDS too (`flat_*`).
    pub flat_segment: u64,
    /// Part of `vmem_write` without the flat ones: atomics.
    pub buffer_atomic: u64,
    /// Part of `flat_write`: atomics.
    pub flat_atomic: u64,
    /// Local data share.
    pub lds: u64,
    /// Relative branches.
    pub branch: u64,
    /// Part of `branch`: taken.
    pub taken: u64,
    /// Messages; on gfx12 barrier signals too.
    pub message: u64,
    /// What is done at issue: waits, barriers, `s_nop`, …
    pub immediate: u64,
    /// Ends of program.
    pub end: u64,
    /// Ray intersection and instructions that leave no trace.
    pub other: u64,
}

impl Counts {
    /// Counts one instruction.
    pub fn add(&mut self, step: &Step) {
        let work = &step.work;
        *self.field(work.unit, work.write) += 1;
        let vector = matches!(work.unit, Unit::Vmem | Unit::Flat);
        match work.detail {
            Detail::None => self.buffer_atomic += u64::from(work.atomic && vector),
            Detail::Matrix => self.matrix += 1,
            Detail::FlatEncoding | Detail::FlatSegment => {
                *(if work.write { &mut self.flat_write } else { &mut self.flat_read }) += 1;
                self.flat_atomic += u64::from(work.atomic);
                self.flat_segment += u64::from(work.detail == Detail::FlatSegment);
            }
        }
        self.taken += u64::from(work.unit == Unit::Branch && step.flow != Flow::Next);
    }

    /// The field in which an instruction is whole.
    const fn field(&mut self, unit: Unit, write: bool) -> &mut u64 {
        match unit {
            Unit::Valu => &mut self.valu,
            Unit::Salu | Unit::Indirect => &mut self.salu,
            Unit::Smem => &mut self.smem,
            Unit::Vmem | Unit::Flat if write => &mut self.vmem_write,
            Unit::Vmem | Unit::Flat => &mut self.vmem_read,
            Unit::Lds => &mut self.lds,
            Unit::Branch => &mut self.branch,
            Unit::Message => &mut self.message,
            Unit::Immediate | Unit::Barrier | Unit::Barrier9 | Unit::BarrierWait => &mut self.immediate,
            Unit::End => &mut self.end,
            Unit::Skip | Unit::Bvh => &mut self.other,
        }
    }

    /// All instructions.
    pub const fn all(&self) -> u64 {
        self.valu
            + self.salu
            + self.smem
            + self.vmem_read
            + self.vmem_write
            + self.lds
            + self.branch
            + self.message
            + self.immediate
            + self.end
            + self.other
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.valu += other.valu;
        self.matrix += other.matrix;
        self.salu += other.salu;
        self.smem += other.smem;
        self.vmem_read += other.vmem_read;
        self.vmem_write += other.vmem_write;
        self.flat_read += other.flat_read;
        self.flat_write += other.flat_write;
        self.flat_segment += other.flat_segment;
        self.buffer_atomic += other.buffer_atomic;
        self.flat_atomic += other.flat_atomic;
        self.lds += other.lds;
        self.branch += other.branch;
        self.taken += other.taken;
        self.message += other.message;
        self.immediate += other.immediate;
        self.end += other.end;
        self.other += other.other;
    }
}

impl<'a> FromIterator<&'a Step> for Counts {
    fn from_iter<I: IntoIterator<Item = &'a Step>>(steps: I) -> Self {
        let mut counts = Self::default();
        steps.into_iter().for_each(|step| counts.add(step));
        counts
    }
}
