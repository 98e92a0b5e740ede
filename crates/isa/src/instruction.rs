//! One decoded instruction.

use crate::class::InstructionClass;
use crate::encoding::Encoding;
use crate::opcode::{Opcode, Traits};

/// Length, class, name and branch of one instruction. 12 bytes, `Copy`, borrows nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    pub(crate) size: u8,
    pub(crate) opcode: Opcode,
    pub(crate) branch: i16,
}

impl Instruction {
    /// Length in bytes, literals and further address words included: 4 to 20, a multiple of 4.
    pub const fn size(self) -> usize {
        self.size as usize
    }

    /// Microcode format.
    pub const fn encoding(self) -> Encoding {
        self.opcode.encoding
    }

    /// What the thread-trace stitcher takes it for.
    pub const fn class(self) -> InstructionClass {
        self.opcode.class
    }

    /// Opcode name as LLVM prints it, without the suffixes that say the encoding (`_e32`, `_e64`, `_sdwa`, `_dpp`).
    /// An opcode that no table names gives the encoding's name, for example `vop3`.
    pub const fn mnemonic(self) -> &'static str {
        self.opcode.text()
    }

    /// Whether a table names the opcode.
    pub const fn is_named(self) -> bool {
        self.opcode.is_named()
    }

    /// Address where a relative branch, loop or call goes from an instruction at `address`, wrapping at 2^64. None
    /// for anything else; the fork and join instructions of gfx9 that branch to a register have none either.
    pub const fn branch_target(self, address: u64) -> Option<u64> {
        match self.branch_offset() {
            Some(offset) => Some(address.wrapping_add(self.size as u64).wrapping_add_signed(offset)),
            None => None,
        }
    }

    /// Distance in bytes from the end of the instruction to where it branches, see [`branch_target`].
    ///
    /// [`branch_target`]: Self::branch_target
    pub const fn branch_offset(self) -> Option<i64> {
        if self.opcode.has(Traits::RELATIVE) { Some(self.branch as i64 * 4) } else { None }
    }

    /// Whether the following instruction may run after it: false for `s_branch`, `s_setpc_b64`, `s_endpgm` and alike.
    pub const fn falls_through(self) -> bool {
        !self.opcode.has(Traits::NO_FALL_THROUGH)
    }

    /// Whether the wave ends here (`s_endpgm`, `s_endpgm_saved`, `s_endpgm_ordered_ps_done`).
    pub const fn ends_program(self) -> bool {
        self.opcode.has(Traits::END)
    }

    /// Whether a scalar register gives the next program counter (`s_setpc_b64`, `s_swappc_b64`, `s_rfe_b64`, …).
    pub const fn is_indirect(self) -> bool {
        self.opcode.has(Traits::INDIRECT)
    }

    /// Whether it saves a return address (`s_swappc_b64`, `s_call_b64`).
    pub const fn is_call(self) -> bool {
        self.opcode.has(Traits::CALL)
    }

    /// Whether the name starts with `s_waitcnt`.
    pub const fn is_waitcnt(self) -> bool {
        self.opcode.has(Traits::WAITCNT)
    }

    /// Whether the name starts with `s_barrier_wait`.
    pub const fn is_barrier_wait(self) -> bool {
        self.opcode.has(Traits::BARRIER_WAIT)
    }

    /// Whether the name contains `_load_`.
    pub const fn is_load(self) -> bool {
        self.opcode.has(Traits::LOAD)
    }

    /// Whether the name contains `scratch_`.
    pub const fn is_scratch(self) -> bool {
        self.opcode.has(Traits::SCRATCH)
    }
}
