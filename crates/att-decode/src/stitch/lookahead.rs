//! Decides whether an `s_barrier_wait` of the program is missing in a trace whose capture excludes them (gfx12).

use wavescope_isa::InstructionClass;

use super::lines::LineId;
use super::matching::is_elaborate;
use super::walk::{Chip, Walk};
use crate::quirks;
use crate::record::Category;

/// Instructions compared at most. The public decoder has no bound, which makes its time quadratic in a wave that
/// matches for long; real waves are decided within a few dozen.
const MAX_STEPS: usize = 1024;

impl Walk<'_> {
    /// Whether the wait at `line`, with `next` behind it, has no instruction of its own in the trace. It is then
    /// noted as a gap.
    pub(super) fn excludes_barrier_wait(&mut self, chip: Chip, line: LineId, next: Option<LineId>) -> bool {
        let facts = self.lines.details(line);
        let may_be_missing = facts.class == InstructionClass::Immediate && facts.traits.is_barrier_wait;
        let is_candidate = self.lines.is_excluded(line) || may_be_missing && !self.lines.get(line).is_seen;
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
    fn fits_without_wait(&mut self, chip: Chip, mut ahead: Option<LineId>) -> bool {
        let mut kind = None;
        let mut at = self.index;
        for _ in 0..MAX_STEPS {
            let (Some(line), Some(instruction)) = (ahead, self.instructions.get(at)) else { return true };
            let category = instruction.category();
            let class = self.lines.class(line);
            let jumps = class == Some(InstructionClass::Branch) && category == Category::Jump;
            ahead = if jumps { self.target(chip, line) } else { self.following(chip, line) };
            if ahead.is_none() {
                return true;
            }
            let Some(class) = class else { return false };
            if matches!(class, InstructionClass::Unknown | InstructionClass::Skip) {
                at += 1;
                continue;
            }
            if !is_elaborate(category, class) {
                return false;
            }
            if category != Category::Immed && class != InstructionClass::Valu {
                if kind.is_some_and(|kind| kind != class) {
                    return true;
                }
                kind = Some(class);
            }
            at += quirks::LOOK_AHEAD_STEP;
        }
        true
    }
}
