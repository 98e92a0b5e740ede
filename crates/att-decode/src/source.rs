//! Where instructions come from: the seam to code objects and to a caller's own disassembler.

use std::sync::Arc;

use wavescope_isa::InstructionClass;

use crate::marker::FunctionMap;
use crate::record::Pc;

/// What the stitcher needs to know of one instruction of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramLine {
    /// Bytes to the next instruction.
    pub size: u32,
    /// What the trace shows of it.
    pub class: InstructionClass,
    /// Distance in bytes from its own address to where it branches; 4 for anything but a relative branch.
    pub branch: i64,
    /// Facts beyond the class.
    pub traits: LineTraits,
}

/// Facts of an instruction that its class does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineTraits {
    /// Its name begins with `s_waitcnt`.
    pub is_waitcnt: bool,
    /// Its name contains `_load_`.
    pub is_load: bool,
    /// Its name contains `scratch_`.
    pub is_scratch: bool,
    /// Its name begins with `s_barrier_wait`.
    pub is_barrier_wait: bool,
    /// The disassembler knows the place but has no text for it.
    pub is_blank: bool,
}

impl ProgramLine {
    /// Bytes of the shortest instruction.
    const MIN_SIZE: u32 = 4;

    /// Reads a line of disassembly (lower case, as disassemblers print it) of a `size`-byte instruction.
    ///
    /// ```
    /// use wavescope_att_decode::ProgramLine;
    /// let back = ProgramLine::from_text(11, 4, "s_cbranch_scc1 65533");
    /// assert_eq!((back.size, back.branch), (4, 4 - 3 * 4));
    /// ```
    pub fn from_text(gfxip: u32, size: u32, text: &str) -> Self {
        ProgramLine {
            size: size.max(Self::MIN_SIZE),
            class: InstructionClass::of_text(gfxip as u8, text),
            branch: 4 + 4 * branch_distance(text),
            traits: LineTraits {
                is_waitcnt: text.starts_with("s_waitcnt"),
                is_load: text.contains("_load_"),
                is_scratch: text.contains("scratch_"),
                is_barrier_wait: text.starts_with("s_barrier_wait"),
                is_blank: text.is_empty(),
            },
        }
    }

    /// Takes an instruction that our own tables decoded.
    pub fn from_instruction(instruction: wavescope_isa::Instruction) -> Self {
        let size = instruction.size() as u32;
        ProgramLine {
            size,
            class: instruction.class(),
            branch: instruction.branch_offset().map_or(4, |offset| i64::from(size) + offset),
            traits: LineTraits {
                is_waitcnt: instruction.is_waitcnt(),
                is_load: instruction.is_load(),
                is_scratch: instruction.is_scratch(),
                is_barrier_wait: instruction.is_barrier_wait(),
                is_blank: false,
            },
        }
    }
}

/// Words to jump, from the last operand of a line: an unsigned 16-bit number that means a signed one.
fn branch_distance(text: &str) -> i64 {
    let mut quoted = false;
    let start = text
        .char_indices()
        .filter(|&(_, c)| {
            quoted ^= c == '"';
            c == ' ' && !quoted
        })
        .last()
        .map_or(0, |(at, _)| at + 1);
    let operand = text[start..].trim();
    let (negative, digits) = match operand.as_bytes() {
        [b'-', ..] => (true, &operand[1..]),
        [b'+', ..] => (false, &operand[1..]),
        _ => (false, operand),
    };
    let digits = &digits[..digits.bytes().take_while(u8::is_ascii_digit).count()];
    let value: i64 = digits.parse().unwrap_or(0);
    match (negative, value) {
        (true, value) => -value,
        (false, value) if value >= 1 << 15 => value - (1 << 16),
        (false, value) => value,
    }
}

/// Gives the instruction at a program counter.
///
/// Program counters with a code object id are offsets from that object's load address; those with id 0 are absolute
/// addresses. The decoder asks once per place and keeps the answer for the whole session; "no instruction there" is
/// not kept, since code may be known later.
pub trait InstructionSource {
    /// The instruction at `pc`, for a chip of this graphics IP version (9, 10, 11 or 12).
    fn instruction(&mut self, pc: Pc, gfxip: u32) -> Option<ProgramLine>;

    /// Whether any code object may have a map of shader markers. Asked once per chunk.
    fn has_function_maps(&self) -> bool {
        false
    }

    /// The map of shader markers of a code object, if it has one.
    fn function_map(&mut self, code_object_id: u64) -> Option<Arc<FunctionMap>> {
        let _ = code_object_id;
        None
    }

    /// Told when the stream announces a code object: where id `id` is loaded, and how large it is.
    fn code_object_loaded(&mut self, id: u64, address: u64, size: u64) {
        let _ = (id, address, size);
    }
}

impl<F: FnMut(Pc, u32) -> Option<ProgramLine>> InstructionSource for F {
    fn instruction(&mut self, pc: Pc, gfxip: u32) -> Option<ProgramLine> {
        self(pc, gfxip)
    }
}

/// Knows no instruction: waves get their instructions without program counters.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoInstructions;

impl InstructionSource for NoInstructions {
    fn instruction(&mut self, _: Pc, _: u32) -> Option<ProgramLine> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_operand_is_the_distance() {
        let cases = [
            ("s_branch 2", 2),
            ("s_branch 65535", -1),
            ("s_branch 32768", -32768),
            ("s_branch  12x", 12),
            ("s_branch target", 0),
            ("s_branch", 0),
            ("s_branch 7 ", 0),
            ("s_branch \"a b\"", 0),
            ("s_branch -3", -3),
        ];
        for (text, expected) in cases {
            assert_eq!(branch_distance(text), expected, "{text}");
        }
    }
}
