//! What the register writes of a stream say about the program: entry points, dispatches, code objects, clocks.

use crate::record::Pc;

mod code_objects;
mod dispatch;
mod registers;
mod user_data;

pub(crate) use code_objects::CodeObjects;
pub(crate) use registers::{ComputeRegister, Queue, Registers};
pub(crate) use user_data::{SWITCH_ON, UserData, Word, payload};

/// User-data register that carries marker words.
pub(crate) const MARKER_REGISTER: u16 = 0xc342;
/// User-data register that carries clock samples (gfx9).
pub(crate) const CLOCK_REGISTER: u16 = 0xc343;

/// Everything of a chunk that its register writes build up.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) registers: Registers,
    pub(crate) code: CodeObjects,
    pub(crate) user_data: UserData,
    /// Where a wave of each queue starts, kept up to date with registers and code objects.
    entries: [Pc; Queue::COUNT],
}

impl Default for Program {
    fn default() -> Self {
        Program::with_limit(u32::MAX)
    }
}

impl Program {
    /// An empty program of at most so many code objects.
    pub(crate) fn with_limit(code_objects: u32) -> Self {
        Program {
            registers: Registers::default(),
            code: CodeObjects::with_limit(code_objects),
            user_data: UserData::default(),
            entries: [Pc::INVALID; Queue::COUNT],
        }
    }

    /// Takes a write to a compute register.
    #[inline]
    pub(crate) fn write(&mut self, register: ComputeRegister, data: u32, queue: Queue) {
        self.registers.write(register, data, queue);
        if matches!(register, ComputeRegister::PGM_LO | ComputeRegister::PGM_HI) {
            self.entries[queue.index()] = self.code.translate(self.registers.entry_address(queue));
        }
    }

    /// Takes a word written to the marker register.
    pub(crate) fn marker_word(&mut self, word: u32, queue: Queue) -> Word {
        let word = self.user_data.marker_word(word, queue, &mut self.code);
        if matches!(word, Word::Loaded { .. } | Word::Unloaded { .. }) {
            for (index, entry) in self.entries.iter_mut().enumerate() {
                let queue = Queue::new(index as u8 >> 2, index as u8 & 3);
                *entry = self.code.translate(self.registers.entry_address(queue));
            }
        }
        word
    }

    /// Start program counter of a wave of this queue.
    #[inline(always)]
    pub(crate) fn entry(&self, queue: Queue) -> Pc {
        self.entry_of_start(queue.index() as u8)
    }

    /// The same for a queue as an RDNA start token names it: by its position.
    #[inline(always)]
    pub(crate) fn entry_of_start(&self, queue: u8) -> Pc {
        self.entries[usize::from(queue) % Queue::COUNT]
    }
}
