//! The way of one wave through its program.

use super::work::{Unit, Work};

/// What a traced instruction is, as thread-trace records number it (ROCm/rocm-systems, projects/rocprof-trace-decoder
/// `trace_decoder_types.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Category {
    /// Scalar memory.
    Smem = 1,
    /// Scalar ALU.
    Salu = 2,
    /// Vector memory.
    Vmem = 3,
    /// Flat memory; on gfx9 global and scratch memory too.
    Flat = 4,
    /// Local data share.
    Lds = 5,
    /// Vector ALU.
    Valu = 6,
    /// Branch taken.
    Jump = 7,
    /// Branch not taken.
    Next = 8,
    /// Handled at issue: waits, `s_nop`, …
    Immediate = 9,
    /// Message, barrier, end of program.
    Message = 11,
    /// Ray intersection.
    Bvh = 12,
}

/// Where the wave went from an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the following instruction.
    Next,
    /// To the target of a relative branch.
    Jump,
    /// To an address that no branch distance tells: the one of the next step.
    Far,
}

/// One instruction of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its address.
    pub pc: u64,
    /// What it is to the hardware.
    pub work: Work,
    /// Where it led.
    pub flow: Flow,
}

impl Step {
    /// What a trace shows of it: nothing, one record, or two (the barrier of gfx9).
    pub fn categories(&self) -> impl Iterator<Item = Category> + use<> {
        let (first, second) = match self.work.unit {
            Unit::Skip => (None, None),
            Unit::Smem => (Some(Category::Smem), None),
            Unit::Salu | Unit::Indirect => (Some(Category::Salu), None),
            Unit::Vmem => (Some(Category::Vmem), None),
            Unit::Flat => (Some(Category::Flat), None),
            Unit::Lds => (Some(Category::Lds), None),
            Unit::Valu => (Some(Category::Valu), None),
            Unit::Branch if self.flow == Flow::Next => (Some(Category::Next), None),
            Unit::Branch => (Some(Category::Jump), None),
            Unit::Immediate | Unit::BarrierWait => (Some(Category::Immediate), None),
            Unit::Message | Unit::Barrier | Unit::End => (Some(Category::Message), None),
            Unit::Barrier9 => (Some(Category::Message), Some(Category::Immediate)),
            Unit::Bvh => (Some(Category::Bvh), None),
        };
        first.into_iter().chain(second)
    }
}

/// Why a wave stopped before its program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// No encoding of the target begins with these bits, or memory ends inside the instruction.
    Unsized,
    /// Nothing can be read there.
    Unmapped,
    /// Zeros only: memory to which no program was written.
    Blank,
    /// A jump to a register whose value nobody knows.
    UnknownTarget,
    /// The limit of instructions was reached.
    Limit,
}

/// How a path ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// `s_endpgm` and alike.
    Program,
    /// At this address, before the instruction there.
    Stopped {
        /// Where.
        pc: u64,
        /// Why.
        stop: Stop,
    },
}

/// The way of one wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Instructions in order.
    pub steps: Vec<Step>,
    /// How it ended.
    pub end: End,
    /// How often [`Outcomes`](super::Outcomes) were asked: 0 where the code alone decides.
    pub asked: u32,
}

impl Path {
    /// (PC, category) of everything that a trace shows. Where the end of program has no token of its own (gfx10 and
    /// later), it shows as what follows the last instruction, so a wave that does nothing else shows nothing; and a
    /// barrier of gfx10 and gfx11 shows as one by the wave's next token, so before the end it is any immediate.
    pub fn traced(&self) -> impl Iterator<Item = (u64, Category)> {
        let steps = self.steps.iter().skip_while(|step| step.work.unit == Unit::End && step.work.code == 0);
        let tokens = |step: &Step| !matches!(step.work.unit, Unit::Skip | Unit::End);
        let last = self.steps.iter().rposition(tokens);
        let last = last.map(|last| &self.steps[last]).filter(|last| last.work.unit == Unit::Barrier);
        steps.flat_map(move |step| {
            let open = last.is_some_and(|last| std::ptr::eq(last, step));
            let shown = step.categories();
            shown.map(move |category| (step.pc, if open { Category::Immediate } else { category }))
        })
    }
}
