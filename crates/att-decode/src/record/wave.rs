//! Waves and their instructions.

use super::Pc;

/// What kind of unit issued an instruction. Numbers are those of the public C decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Category {
    /// No effect.
    None = 0,
    /// Scalar memory.
    Smem = 1,
    /// Scalar ALU.
    Salu = 2,
    /// Vector memory.
    Vmem = 3,
    /// Flat memory.
    Flat = 4,
    /// Local data share.
    Lds = 5,
    /// Vector ALU.
    Valu = 6,
    /// Branch taken.
    Jump = 7,
    /// Branch not taken.
    Next = 8,
    /// Handled at issue: waits, barriers, nops.
    Immed = 9,
    /// Trap entered or left (public name CONTEXT).
    Trap = 10,
    /// Message, end of program.
    Msg = 11,
    /// Ray intersection.
    Bvh = 12,
    /// gfx9: issued, completion not seen yet.
    Unfinished = 14,
}

impl Category {
    /// The category of a number; `None` where no category has it.
    pub const fn from_number(number: u8) -> Option<Category> {
        Some(match number {
            0 => Category::None,
            1 => Category::Smem,
            2 => Category::Salu,
            3 => Category::Vmem,
            4 => Category::Flat,
            5 => Category::Lds,
            6 => Category::Valu,
            7 => Category::Jump,
            8 => Category::Next,
            9 => Category::Immed,
            10 => Category::Trap,
            11 => Category::Msg,
            12 => Category::Bvh,
            14 => Category::Unfinished,
            _ => return None,
        })
    }
}

/// One instruction of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// Category in bits 0 to 7, stall cycles above.
    bits: u32,
    /// Cycles from `time` to the end of issue, stall included.
    pub duration: i32,
    /// Shader clock at which the wave was ready to issue it.
    pub time: i64,
    /// Where it stands in the program, invalid where that is not known.
    pub pc: Pc,
}

const _: () = assert!(size_of::<Instruction>() == 32);

impl Instruction {
    /// Stall is stored in 24 bits and wraps; damaged streams show it.
    #[inline(always)]
    pub(crate) const fn new(time: i64, category: Category, duration: i32, stall: i64) -> Self {
        let bits = category as u32 | (stall as u32) << 8;
        Instruction { bits, duration, time, pc: Pc::INVALID }
    }

    /// The kind of unit.
    #[inline(always)]
    pub const fn category(&self) -> Category {
        match Category::from_number(self.bits as u8) {
            Some(category) => category,
            None => Category::None,
        }
    }

    /// The number of the category.
    #[inline(always)]
    pub const fn category_number(&self) -> u8 {
        self.bits as u8
    }

    /// Cycles spent ready but not issued.
    #[inline(always)]
    pub const fn stall(&self) -> u32 {
        self.bits >> 8
    }

    /// First clock after the instruction.
    #[inline(always)]
    pub(crate) const fn end(&self) -> i64 {
        self.time.wrapping_add(self.duration as i64)
    }

    #[inline(always)]
    pub(crate) const fn is(&self, category: Category) -> bool {
        self.bits as u8 == category as u8
    }

    pub(crate) const fn set_category(&mut self, category: Category) {
        self.bits = self.bits & !0xff | category as u32;
    }

    pub(crate) const fn set_stall(&mut self, stall: i64) {
        self.bits = self.bits & 0xff | (stall as u32) << 8;
    }
}

/// What a wave is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum WaveState {
    /// Before its start and after its end.
    Empty = 0,
    /// Nothing to issue.
    Idle = 1,
    /// Executing.
    Exec = 2,
    /// Waiting for a counter or barrier.
    Wait = 3,
    /// Ready, not issued.
    Stall = 4,
}

/// A stretch of time in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct TimelineEntry {
    /// The state.
    pub state: WaveState,
    /// Shader clocks.
    pub duration: i32,
}

const _: () = assert!(size_of::<TimelineEntry>() == 8);

/// One wave of the traced SIMD.
#[derive(Debug, Clone, Copy)]
pub struct Wave<'a> {
    /// Compute unit, or shader array · 128 + WGP on RDNA.
    pub cu: u8,
    /// SIMD.
    pub simd: u8,
    /// Wave slot.
    pub wave_id: u8,
    /// Context saves and restores it went through.
    pub contexts: u8,
    /// Queue that launched it: (ME & 7) · 16 + (pipe & 15).
    pub dispatcher: u8,
    /// Work group, where the stream has it.
    pub workgroup_id: u8,
    /// Cluster (gfx1250).
    pub cluster_id: u8,
    /// Shader clock of the start.
    pub begin_time: i64,
    /// Shader clock of the end; of the last sign of life where the end is missing.
    pub end_time: i64,
    /// What it did when, from `begin_time` on.
    pub timeline: &'a [TimelineEntry],
    /// Its instructions in order.
    pub instructions: &'a [Instruction],
}
