//! What the register writes of a stream say about the program: entry points, dispatches, code objects, clocks.

mod code_objects;
mod dispatch;
mod registers;
mod user_data;

pub(crate) use code_objects::CodeObjects;
pub(crate) use dispatch::GFX9_AS_VERSION;
pub(crate) use registers::{ComputeRegister, Queue, Registers};
pub(crate) use user_data::{SWITCH_ON, UserData, Word, payload};

/// User-data register that carries marker words.
pub(crate) const MARKER_REGISTER: u16 = 0xc342;
/// User-data register that carries clock samples (gfx9).
pub(crate) const CLOCK_REGISTER: u16 = 0xc343;

/// Everything of a chunk that its register writes build up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) registers: Registers,
    pub(crate) code: CodeObjects,
    pub(crate) user_data: UserData,
}

impl Program {
    /// An empty program of at most so many code objects.
    pub(crate) fn with_limit(code_objects: u32) -> Self {
        Program { code: CodeObjects::with_limit(code_objects), ..Program::default() }
    }

    /// Start program counter of a wave of this queue.
    #[inline]
    pub(crate) fn entry(&self, queue: Queue) -> crate::record::Pc {
        self.code.translate(self.registers.entry_address(queue))
    }
}
