//! What an instruction is to the hardware, before any operand is looked at.

/// Who executes an instruction, and what that does to the wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Nobody: it only tells the scheduler something and leaves no trace (`s_delay_alu`, …).
    Skip,
    /// Scalar memory.
    Smem,
    /// Scalar ALU.
    Salu,
    /// Scalar ALU that writes the program counter (`s_setpc_b64`, `s_swappc_b64`, `s_call_b64`).
    Indirect,
    /// Vector memory.
    Vmem,
    /// The flat unit: `flat_*`, on gfx9 also `global_*` and `scratch_*`.
    Flat,
    /// Local data share.
    Lds,
    /// Vector ALU.
    Valu,
    /// Branch unit.
    Branch,
    /// Nobody: done at issue (`s_nop`, waits, …).
    Immediate,
    /// Barrier of gfx10 and gfx11: signal and wait in one.
    Barrier,
    /// Barrier of gfx9: a message, then a wait.
    Barrier9,
    /// Second half of the barrier of gfx12.
    BarrierWait,
    /// Message, also the first half of the barrier of gfx12.
    Message,
    /// End of the wave.
    End,
    /// Ray intersection.
    Bvh,
}

/// How many operations may still be out after a wait; [`Wait::ANY`] where it does not wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wait {
    /// Vector loads; on gfx9 stores too.
    pub loads: u8,
    /// Vector stores, gfx10 and later.
    pub stores: u8,
    /// LDS; before gfx12 scalar loads too.
    pub lds: u8,
    /// Scalar loads, gfx12.
    pub scalar: u8,
}

impl Wait {
    /// Any number.
    pub const ANY: u8 = u8::MAX;
    /// Waits for nothing.
    pub const NONE: Self = Self { loads: Self::ANY, stores: Self::ANY, lds: Self::ANY, scalar: Self::ANY };
}

/// What counters tell apart beyond the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detail {
    /// Nothing.
    None,
    /// Vector ALU: matrix.
    Matrix,
    /// Vector memory in the flat encoding that cannot reach LDS: global and scratch.
    FlatEncoding,
    /// Vector memory in the flat encoding that can.
    FlatSegment,
}

/// What an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Work {
    /// Who executes it.
    pub unit: Unit,
    /// Number of its kind in the trace tokens of its generation; of branches, of those not taken. 0 where no token
    /// carries one.
    pub code: u8,
    /// Cycles that it keeps its unit busy.
    pub cycles: u8,
    /// Writes memory, atomics too.
    pub write: bool,
    /// Reads and writes memory in one.
    pub atomic: bool,
    /// What counters tell apart.
    pub detail: Detail,
    /// What it waits for.
    pub wait: Wait,
}

impl Work {
    pub(super) const fn new(unit: Unit, code: u8, cycles: u8) -> Self {
        Self { unit, code, cycles, write: false, atomic: false, detail: Detail::None, wait: Wait::NONE }
    }
}
