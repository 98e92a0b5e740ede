//! Program lines seen so far, linked to their successors.

use std::collections::HashMap;

use wavescope_isa::InstructionClass;

use crate::record::Pc;
use crate::source::{InstructionSource, LineTraits, ProgramLine};

/// Index of a line.
pub(crate) type LineId = u32;

/// A link that was never followed.
const UNKNOWN: LineId = LineId::MAX;

/// One line of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub(crate) pc: Pc,
    pub(crate) class: InstructionClass,
    pub(crate) traits: LineTraits,
    /// A trace instruction was matched with it before.
    pub(crate) is_seen: bool,
    /// A barrier wait that the capture leaves out; its class counts no more.
    pub(crate) is_excluded: bool,
    size: u32,
    branch: i64,
    next: LineId,
    target: LineId,
}

/// All lines of a session. Lines are asked for once; a place without an instruction is asked for again.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    lines: Vec<Line>,
    by_pc: HashMap<Pc, LineId>,
    /// The place asked for last: waves of a kernel begin at the same one.
    last: Option<(Pc, LineId)>,
}

impl Lines {
    /// The line of an index that this table gave.
    #[inline(always)]
    pub(crate) fn get(&self, id: LineId) -> &Line {
        &self.lines[id as usize]
    }

    pub(crate) fn set_seen(&mut self, id: LineId) {
        self.lines[id as usize].is_seen = true;
    }

    pub(crate) fn set_excluded(&mut self, id: LineId) {
        self.lines[id as usize].is_excluded = true;
    }

    /// The line at a place.
    pub(crate) fn at(&mut self, pc: Pc, gfxip: u32, source: &mut dyn InstructionSource) -> Option<LineId> {
        if let Some((last, id)) = self.last
            && last == pc
        {
            return Some(id);
        }
        let id = match self.by_pc.get(&pc) {
            Some(&id) => id,
            None => self.add(pc, source.instruction(pc, gfxip)?),
        };
        self.last = Some((pc, id));
        Some(id)
    }

    fn add(&mut self, pc: Pc, line: ProgramLine) -> LineId {
        let ProgramLine { size, class, branch, traits } = line;
        let id = self.lines.len() as LineId;
        self.lines.push(Line {
            pc,
            class,
            traits,
            is_seen: false,
            is_excluded: false,
            size,
            branch,
            next: UNKNOWN,
            target: UNKNOWN,
        });
        self.by_pc.insert(pc, id);
        id
    }

    /// The line behind a line.
    #[inline]
    pub(crate) fn following(
        &mut self,
        id: LineId,
        gfxip: u32,
        source: &mut dyn InstructionSource,
    ) -> Option<LineId> {
        let line = &self.lines[id as usize];
        if line.next != UNKNOWN {
            return Some(line.next);
        }
        let next = self.at(line.pc.offset(i64::from(line.size)), gfxip, source)?;
        self.lines[id as usize].next = next;
        Some(next)
    }

    /// The line that a branch goes to.
    #[inline]
    pub(crate) fn target(
        &mut self,
        id: LineId,
        gfxip: u32,
        source: &mut dyn InstructionSource,
    ) -> Option<LineId> {
        let line = &self.lines[id as usize];
        if line.target != UNKNOWN {
            return Some(line.target);
        }
        let target = self.at(line.pc.offset(line.branch), gfxip, source)?;
        self.lines[id as usize].target = target;
        Some(target)
    }
}
