//! Decides whether an `s_barrier_wait` of the program is missing in a trace whose capture excludes them (gfx12).

use wavescope_isa::InstructionClass;

use super::lines::LineId;
use super::matching::is_elaborate;
use super::walk::{Chip, Walk};
use crate::record::Category;

/// Instructions compared at most. The public decoder has no bound, which makes its time quadratic in a wave that
/// matches for long; real waves are decided within a few dozen.
const MAX_STEPS: usize = 1024;

impl Walk<'_> {
    /// Whether the wait at `line`, with `next` behind it, has no instruction of its own in the trace. It is then
    /// noted as a gap.
    pub(super) fn excludes_barrier_wait(&mut self, chip: Chip, line: LineId, next: Option<LineId>) -> bool {
        let facts = self.lines.get(line);
        let is_candidate = facts.is_excluded
            || !facts.is_seen && facts.class == InstructionClass::Immediate && facts.traits.is_barrier_wait;
        if !is_candidate {
            return false;
        }
        let is_immediate = self.instructions[self.index].is(Category::Immed);
        if is_immediate && !self.fits_without_wait(chip, next) {
            return false;
        }
        self.gaps.push((self.index, self.lines.get(line).pc));
        self.lines.set_excluded(line);
        true
    }

    /// Whether the instructions from here on fit the lines behind the wait.
    ///
    /// Quirk: a step that compares moves on by two instructions, one that does not by one.
    fn fits_without_wait(&mut self, chip: Chip, mut ahead: Option<LineId>) -> bool {
        let mut kind = None;
        let mut at = self.index;
        for _ in 0..MAX_STEPS {
            let (Some(line), Some(instruction)) = (ahead, self.instructions.get(at)) else { return true };
            let category = instruction.category();
            let (class, is_excluded) = {
                let line = self.lines.get(line);
                (line.class, line.is_excluded)
            };
            let jumps = class == InstructionClass::Branch && category == Category::Jump && !is_excluded;
            ahead = if jumps { self.target(chip, line) } else { self.following(chip, line) };
            if ahead.is_none() {
                return true;
            }
            if !is_excluded && matches!(class, InstructionClass::Unknown | InstructionClass::Skip) {
                at += 1;
                continue;
            }
            if is_excluded || !is_elaborate(category, class) {
                return false;
            }
            if category != Category::Immed && class != InstructionClass::Valu {
                if kind.is_some_and(|kind| kind != class) {
                    return true;
                }
                kind = Some(class);
            }
            at += 2;
        }
        true
    }
}
