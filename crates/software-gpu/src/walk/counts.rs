//! How many instructions of which kind.

use super::path::{Flow, Step};
use super::work::{Alu, Unit};

/// Instructions by kind. Each is in exactly one of the fields up to `other`, but for `matrix`, a part of `valu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Vector ALU.
    pub valu: u64,
    /// Of these, matrix.
    pub matrix: u64,
    /// Scalar ALU, jumps to registers included.
    pub salu: u64,
    /// Scalar memory.
    pub smem: u64,
    /// Vector memory reads, without flat.
    pub vmem_read: u64,
    /// Vector memory writes and atomics, without flat.
    pub vmem_write: u64,
    /// Flat reads; on gfx9 global and scratch ones too.
    pub flat_read: u64,
    /// Flat writes and atomics, likewise.
    pub flat_write: u64,
    /// Local data share.
    pub lds: u64,
    /// Relative branches.
    pub branch: u64,
    /// Of these, taken.
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
        let field = match work.unit {
            Unit::Valu => &mut self.valu,
            Unit::Salu | Unit::Indirect => &mut self.salu,
            Unit::Smem => &mut self.smem,
            Unit::Vmem if work.write => &mut self.vmem_write,
            Unit::Vmem => &mut self.vmem_read,
            Unit::Flat if work.write => &mut self.flat_write,
            Unit::Flat => &mut self.flat_read,
            Unit::Lds => &mut self.lds,
            Unit::Branch => &mut self.branch,
            Unit::Message => &mut self.message,
            Unit::Immediate | Unit::Barrier | Unit::Barrier9 | Unit::BarrierWait => &mut self.immediate,
            Unit::End => &mut self.end,
            Unit::Skip | Unit::Bvh => &mut self.other,
        };
        *field += 1;
        self.matrix += u64::from(work.alu == Alu::Matrix);
        self.taken += u64::from(work.unit == Unit::Branch && step.flow != Flow::Next);
    }

    /// Adds what another one has.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.fields_mut().into_iter().zip(other.fields()) {
            *mine += theirs;
        }
    }

    /// All instructions.
    pub fn all(&self) -> u64 {
        self.fields().iter().sum::<u64>() - self.matrix - self.taken
    }

    fn fields(&self) -> [u64; 15] {
        let mut copy = *self;
        copy.fields_mut().map(|field| *field)
    }

    fn fields_mut(&mut self) -> [&mut u64; 15] {
        [
            &mut self.valu,
            &mut self.matrix,
            &mut self.salu,
            &mut self.smem,
            &mut self.vmem_read,
            &mut self.vmem_write,
            &mut self.flat_read,
            &mut self.flat_write,
            &mut self.lds,
            &mut self.branch,
            &mut self.taken,
            &mut self.message,
            &mut self.immediate,
            &mut self.end,
            &mut self.other,
        ]
    }
}

impl<'a> FromIterator<&'a Step> for Counts {
    fn from_iter<I: IntoIterator<Item = &'a Step>>(steps: I) -> Self {
        let mut counts = Self::default();
        steps.into_iter().for_each(|step| counts.add(step));
        counts
    }
}
