//! Program lines seen so far, linked to their successors.

use std::collections::HashMap;

use wavescope_isa::InstructionClass;

use super::matching::LineClass;
use crate::record::Pc;
use crate::source::{InstructionSource, LineTraits, ProgramLine};

/// Index of a line.
pub(crate) type LineId = u32;

/// The link to the line behind.
pub(super) const BEHIND: usize = 0;
/// The link to the line that a line branches to.
pub(super) const TARGET: usize = 1;

/// A link that was never followed.
pub(super) const UNKNOWN: LineId = LineId::MAX;

/// What every step of a walk looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) pc: Pc,
    /// The line behind it, and the one that it branches to: [`BEHIND`] and [`TARGET`].
    pub(super) links: [LineId; 2],
    /// Its class, refined by what makes the walk slow down.
    pub(super) class: LineClass,
    /// A trace instruction was matched with it before.
    pub(super) is_seen: bool,
}

/// What only some steps look at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Details {
    pub(super) class: InstructionClass,
    pub(super) traits: LineTraits,
    size: u32,
    branch: i64,
}

/// All lines of a session. Lines are asked for once; a place without an instruction is asked for again.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(super) lines: Vec<Line>,
    details: Vec<Details>,
    by_pc: HashMap<Pc, LineId>,
    /// The place asked for last: waves of a kernel begin at the same one.
    last: Option<(Pc, LineId)>,
}

impl Lines {
    /// The line of an index that this table gave.
    #[inline(always)]
    pub(super) fn get(&self, id: LineId) -> &Line {
        &self.lines[id as usize]
    }

    /// More about a line.
    pub(super) fn details(&self, id: LineId) -> &Details {
        &self.details[id as usize]
    }

    pub(super) fn set_seen(&mut self, id: LineId) {
        self.lines[id as usize].is_seen = true;
    }

    /// The capture leaves the line out: its class counts no more.
    pub(super) fn set_excluded(&mut self, id: LineId) {
        self.lines[id as usize].class = LineClass::EXCLUDED;
    }

    /// Whether the capture leaves the line out.
    pub(super) fn is_excluded(&self, id: LineId) -> bool {
        self.get(id).class == LineClass::EXCLUDED
    }

    /// Class of a line; none if the capture leaves it out.
    pub(super) fn class(&self, id: LineId) -> Option<InstructionClass> {
        if self.is_excluded(id) { None } else { Some(self.details(id).class) }
    }

    /// The line at a place.
    #[inline]
    pub(super) fn at(&mut self, pc: Pc, gfxip: u32, source: &mut dyn InstructionSource) -> Option<LineId> {
        match self.last {
            Some((last, id)) if last == pc => Some(id),
            _ => self.look_up(pc, gfxip, source),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, pc: Pc, gfxip: u32, source: &mut dyn InstructionSource) -> Option<LineId> {
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
        let kind = LineClass::new(class, traits);
        self.lines.push(Line { pc, links: [UNKNOWN; 2], class: kind, is_seen: false });
        self.details.push(Details { class, traits, size, branch });
        self.by_pc.insert(pc, id);
        id
    }

    /// The line behind a line.
    pub(super) fn following(
        &mut self,
        id: LineId,
        gfxip: u32,
        source: &mut dyn InstructionSource,
    ) -> Option<LineId> {
        self.linked(id, BEHIND, i64::from(self.details(id).size), gfxip, source)
    }

    /// The line that a branch goes to.
    pub(super) fn target(
        &mut self,
        id: LineId,
        gfxip: u32,
        source: &mut dyn InstructionSource,
    ) -> Option<LineId> {
        self.linked(id, TARGET, self.details(id).branch, gfxip, source)
    }

    /// Follows a link to the line that stands so many bytes behind.
    #[inline(always)]
    fn linked(
        &mut self,
        id: LineId,
        link: usize,
        distance: i64,
        gfxip: u32,
        source: &mut dyn InstructionSource,
    ) -> Option<LineId> {
        let line = self.get(id);
        if line.links[link] != UNKNOWN {
            return Some(line.links[link]);
        }
        let linked = self.at(line.pc.offset(distance), gfxip, source)?;
        self.lines[id as usize].links[link] = linked;
        Some(linked)
    }
}
