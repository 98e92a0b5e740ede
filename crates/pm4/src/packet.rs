//! Packets: the sum type and the small ones.

use std::fmt;

use crate::cache::AcquireMem;
use crate::copy_data::CopyData;
use crate::opcode::Opcode;
use crate::set_regs::SetRegs;
use crate::target::Generation;
use crate::wait::WaitRegMem;

/// One type-3 packet. What is not understood is kept as [`Packet::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// SET_SH_REG or SET_UCONFIG_REG.
    SetRegs(SetRegs<'a>),
    /// EVENT_WRITE.
    EventWrite(EventWrite),
    /// COPY_DATA.
    CopyData(CopyData),
    /// ACQUIRE_MEM.
    AcquireMem(AcquireMem),
    /// WAIT_REG_MEM.
    WaitRegMem(WaitRegMem),
    /// PRED_EXEC.
    PredExec(PredExec),
    /// INDIRECT_BUFFER.
    IndirectBuffer(IndirectBuffer),
    /// Any other opcode, with its body.
    Unknown(Unknown<'a>),
}

impl Packet<'_> {
    /// The packet's opcode.
    pub const fn opcode(&self) -> Opcode {
        match self {
            Self::SetRegs(set) => set.space.opcode(),
            Self::EventWrite(_) => Opcode::EVENT_WRITE,
            Self::CopyData(_) => Opcode::COPY_DATA,
            Self::AcquireMem(_) => Opcode::ACQUIRE_MEM,
            Self::WaitRegMem(_) => Opcode::WAIT_REG_MEM,
            Self::PredExec(_) => Opcode::PRED_EXEC,
            Self::IndirectBuffer(_) => Opcode::INDIRECT_BUFFER,
            Self::Unknown(unknown) => unknown.opcode,
        }
    }
}

/// EVENT_WRITE's dword 1: event type 5:0, event index 11:8.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventWrite(pub u32);

impl EventWrite {
    /// Waits until compute work is idle.
    pub const CS_PARTIAL_FLUSH: Self = Self(0x407);
    /// Tells the thread trace to end.
    pub const THREAD_TRACE_FINISH: Self = Self(0x37);

    /// The event type.
    pub const fn event_type(self) -> u8 {
        (self.0 & 0x3F) as u8
    }

    /// The event index.
    pub const fn event_index(self) -> u8 {
        (self.0 >> 8 & 0xF) as u8
    }
}

impl fmt::Debug for EventWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EVENT_WRITE({:#x})", self.0)
    }
}

/// PRED_EXEC's dword 1: which XCCs execute the dwords that follow, and how many those are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PredExec(pub u32);

impl PredExec {
    /// The longest body that the count field holds.
    pub const MAX_DWORDS: u32 = 0x3FFF;

    /// The next `dwords` dwords run only on the XCCs of `xcc_mask`. The count is cut to its 14 bits.
    pub const fn new(xcc_mask: u8, dwords: u32) -> Self {
        Self((xcc_mask as u32) << 24 | dwords & Self::MAX_DWORDS)
    }

    /// Virtual XCCs that execute, one bit each.
    pub const fn xcc_mask(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// Dwords that are conditional.
    pub const fn dwords(self) -> u32 {
        self.0 & Self::MAX_DWORDS
    }
}

impl fmt::Debug for PredExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PRED_EXEC(xcc {:#04x}, {} dwords)", self.xcc_mask(), self.dwords())
    }
}

/// INDIRECT_BUFFER: runs another command buffer. The AQL packet that carries PM4 holds exactly this.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IndirectBuffer {
    /// Byte address, a multiple of 4 (dwords 1 and 2).
    pub address: u64,
    /// Dword 3: size 19:0, VALID 23, cache policy or temporal hint 29:28.
    pub control: u32,
}

impl IndirectBuffer {
    /// The longest buffer that the size field holds, in dwords.
    pub const MAX_DWORDS: u32 = 0xF_FFFF;
    const VALID: u32 = 1 << 23;

    /// A valid buffer of `dwords` dwords. Both numbers are cut to their fields.
    pub const fn new(generation: Generation, address: u64, dwords: u32) -> Self {
        let policy = match generation {
            Generation::Gfx9 | Generation::Gfx10 | Generation::Gfx11 => 1,
            Generation::Gfx12 => 3,
        };
        Self { address: address & !3, control: dwords & Self::MAX_DWORDS | Self::VALID | policy << 28 }
    }

    /// Length of the buffer.
    pub const fn dwords(&self) -> u32 {
        self.control & Self::MAX_DWORDS
    }

    /// Whether the VALID bit is set.
    pub const fn is_valid(&self) -> bool {
        self.control & Self::VALID != 0
    }
}

impl fmt::Debug for IndirectBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "INDIRECT_BUFFER({:#x}, {} dwords)", self.address, self.dwords())
    }
}

/// A packet whose opcode has no type here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Unknown<'a> {
    /// Its opcode.
    pub opcode: Opcode,
    /// Everything after the header.
    pub body: &'a [u32],
}

impl fmt::Debug for Unknown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:08x?})", self.opcode, self.body)
    }
}
