//! The walk along the program.

use wavescope_isa::InstructionClass;

use super::lines::{LineId, Lines, UNKNOWN};
use super::matching::{Step, category_of, is_same, is_skippable, is_trivial, step};
use crate::record::{Category, Instruction, Pc};
use crate::source::InstructionSource;
use crate::wave::{PcPoint, WaveData};

/// Lines that may be passed over in a row before the walk gives up.
const MAX_FAILURES: u32 = 1000;

/// Lines that show nothing in a trace may follow each other without an end where a source invents them. The public
/// decoder would not come back from there.
const MAX_SILENT_LINES: u32 = 1 << 16;

/// What the rules depend on besides the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chip {
    /// Graphics IP version.
    pub(crate) gfxip: u32,
    /// The capture leaves `s_barrier_wait` out.
    pub(crate) excludes_barrier_wait: bool,
}

/// Outcome of a walk.
#[derive(Debug)]
pub(crate) struct Stitched {
    /// Whether every instruction found its place.
    pub(crate) is_complete: bool,
    /// Barrier waits that the trace leaves out: before which instruction, and where in the program.
    pub(crate) gaps: Vec<(usize, Pc)>,
}

/// State of a walk.
pub(super) struct Walk<'a> {
    pub(super) instructions: &'a mut [Instruction],
    pub(super) lines: &'a mut Lines,
    pub(super) index: usize,
    pub(super) gaps: Vec<(usize, Pc)>,
    source: &'a mut dyn InstructionSource,
    points: &'a [PcPoint],
    point: usize,
    next: Option<LineId>,
    failures: u32,
    silent: u32,
    /// Immediates of the trace that stood for a line of another class and may be missing further on.
    spare: u32,
    begin: i64,
    end: i64,
}

/// What a round of the walk says about the next one.
enum Round {
    /// Go on.
    On,
    /// The walk ends; so many instructions have their place.
    Ends(usize),
}

/// What became of the line at hand.
enum Verdict {
    Matched,
    PassedOver,
    Ends,
}

/// Matches the instructions of a wave with the program.
pub(crate) fn stitch(
    wave: &mut WaveData,
    chip: Chip,
    lines: &mut Lines,
    source: &mut dyn InstructionSource,
) -> Stitched {
    let len = wave.instructions.len();
    let mut walk = Walk {
        instructions: &mut wave.instructions,
        lines,
        index: 0,
        gaps: Vec::new(),
        source,
        points: &wave.points,
        point: 0,
        next: None,
        failures: 0,
        silent: 0,
        spare: 0,
        begin: wave.begin,
        end: wave.end,
    };
    let placed = walk.run(chip);
    Stitched { is_complete: placed == len, gaps: walk.gaps }
}

impl Walk<'_> {
    fn run(&mut self, chip: Chip) -> usize {
        while self.index < self.instructions.len() && self.failures < MAX_FAILURES {
            if self.points.get(self.point).is_some_and(|point| point.index as usize <= self.index)
                && let Round::Ends(placed) = self.pass_points(chip)
            {
                return placed;
            }
            if let Round::Ends(placed) = self.round(chip) {
                return placed;
            }
            self.run_fast();
        }
        self.index
    }

    /// Follows the program while lines and instructions match without further conditions, up to the next place known
    /// from the trace. Stops before whatever needs a closer look.
    fn run_fast(&mut self) {
        let Some(mut next) = self.next else { return };
        let end = match self.points.get(self.point) {
            Some(point) => self.instructions.len().min(point.index as usize),
            None => self.instructions.len(),
        };
        let Some(instructions) = self.instructions.get_mut(self.index..end) else { return };
        let lines = &self.lines.lines[..];
        let mut matched = 0;
        let mut silent = 0;
        while let Some(instruction) = instructions.get_mut(matched)
            && let Some(line) = lines.get(next as usize)
        {
            let step = step(line.class, instruction.category_number());
            let follows = line.links[step as usize % 2];
            if step == Step::CloserLook || follows == UNKNOWN {
                break;
            }
            next = follows;
            if step == Step::Silent {
                silent += 1;
                if silent == MAX_SILENT_LINES {
                    break;
                }
                continue;
            }
            instruction.pc = line.pc;
            matched += 1;
        }
        self.next = Some(next);
        if matched > 0 {
            self.index += matched;
            (self.failures, self.silent) = (0, 0);
        }
    }

    pub(super) fn following(&mut self, chip: Chip, line: LineId) -> Option<LineId> {
        self.lines.following(line, chip.gfxip, self.source)
    }

    pub(super) fn target(&mut self, chip: Chip, line: LineId) -> Option<LineId> {
        self.lines.target(line, chip.gfxip, self.source)
    }

    fn at(&mut self, chip: Chip, pc: Pc) -> Option<LineId> {
        self.lines.at(pc, chip.gfxip, self.source)
    }

    /// Takes the places known up to the instruction at hand. An unknown place is skipped to the next known one.
    fn pass_points(&mut self, chip: Chip) -> Round {
        while let Some(&PcPoint { index, pc }) = self.points.get(self.point)
            && index as usize <= self.index
        {
            if index as usize == self.index {
                if self.at(chip, pc).is_some() {
                    self.instructions[self.index].pc = pc;
                } else if let Some(later) = self.points.get(self.point + 1) {
                    self.index = later.index as usize;
                    if self.index >= self.instructions.len() {
                        return Round::Ends(self.index);
                    }
                }
            }
            self.point += 1;
        }
        Round::On
    }

    #[inline]
    fn round(&mut self, chip: Chip) -> Round {
        let instruction = &self.instructions[self.index];
        if instruction.is(Category::Trap) {
            self.index += 1;
            return Round::On;
        }
        if instruction.pc.is_valid() {
            return self.begin_at_known_place(chip);
        }
        if chip.gfxip >= 12 && self.index == 0 {
            self.next = self.at(chip, Pc::INVALID);
            if self.next.is_none_or(|line| self.lines.details(line).traits.is_blank) {
                return Round::Ends(0);
            }
        }
        self.match_line(chip)
    }

    /// The instruction at hand has its place: the walk continues behind it.
    fn begin_at_known_place(&mut self, chip: Chip) -> Round {
        let at = self.index;
        self.index += 1;
        self.next = None;
        let Some(mut line) = self.at(chip, self.instructions[at].pc) else { return Round::Ends(0) };
        while self.lines.class(line) == Some(InstructionClass::Skip) && self.counts_silent() {
            let Some(next) = self.following(chip, line) else { return Round::On };
            line = next;
            self.instructions[at].pc = self.lines.get(line).pc;
        }
        let class = self.lines.class(line);
        if class == Some(InstructionClass::Barrier9) && self.index < self.instructions.len() {
            self.instructions[self.index].pc = self.instructions[at].pc;
            self.index += 1;
        }
        let jumps = class == Some(InstructionClass::Branch) && self.instructions[at].is(Category::Jump);
        self.next = if jumps { self.target(chip, line) } else { self.following(chip, line) };
        Round::On
    }

    /// One more line without a trace; false when there were too many in a row.
    fn counts_silent(&mut self) -> bool {
        self.silent += 1;
        self.silent < MAX_SILENT_LINES
    }

    /// Holds the next line against the instruction at hand.
    fn match_line(&mut self, chip: Chip) -> Round {
        let index = self.index;
        let Some(line) = self.next.take() else { return Round::Ends(index) };
        let facts = *self.lines.details(line);
        if facts.traits.is_blank || self.instructions[index].is(Category::Unfinished) {
            return Round::Ends(index);
        }
        self.next = self.following(chip, line);
        let class = self.lines.class(line);
        if matches!(class, Some(InstructionClass::Unknown | InstructionClass::Skip)) {
            return if self.counts_silent() { Round::On } else { Round::Ends(index) };
        }
        if chip.excludes_barrier_wait && self.excludes_barrier_wait(chip, line, self.next) {
            return if self.counts_silent() { Round::On } else { Round::Ends(index) };
        }
        match self.verdict(chip, line) {
            Verdict::Matched => {
                self.instructions[index].pc = self.lines.get(line).pc;
                self.index += 1;
                (self.failures, self.silent) = (0, 0);
                self.lines.set_seen(line);
            }
            Verdict::PassedOver => self.failures += 1,
            Verdict::Ends => return Round::Ends(index),
        }
        Round::On
    }

    fn verdict(&mut self, chip: Chip, line: LineId) -> Verdict {
        let category = self.instructions[self.index].category();
        let Some(class) = self.lines.class(line) else { return self.mismatch(chip, line) };
        if is_trivial(category, class) {
            return Verdict::Matched;
        }
        match (chip.gfxip, class, category) {
            (_, InstructionClass::Branch, Category::Jump) => {
                self.next = self.target(chip, line);
                Verdict::Matched
            }
            (_, InstructionClass::Branch, _) => Verdict::Ends,
            (12, InstructionClass::Mov64, Category::Valu) => {
                let instruction = &mut self.instructions[self.index];
                instruction.duration = instruction.duration.max(instruction.stall() as i32 + 2);
                Verdict::Matched
            }
            (9, InstructionClass::MfmaScale, Category::Valu) => {
                self.widen_scaled_matrix();
                Verdict::Matched
            }
            (9, InstructionClass::Barrier9, category) => {
                self.match_barrier9(category, self.lines.get(line).pc)
            }
            _ => self.mismatch(chip, line),
        }
    }

    /// The scale load of a scaled matrix instruction issues four cycles earlier than the trace shows.
    fn widen_scaled_matrix(&mut self) {
        const SCALE_LOAD: i64 = 4;
        let index = self.index;
        let free_from = if index > 0 { self.instructions[index - 1].end() } else { self.begin };
        let free_to = self.instructions.get(index + 1).map_or(self.end, |next| next.time);
        let matrix = &mut self.instructions[index];
        matrix.duration = matrix.duration.wrapping_add(SCALE_LOAD as i32);
        if matrix.time > free_from {
            matrix.time -= SCALE_LOAD;
            if matrix.end() < free_to {
                matrix.duration = matrix.duration.wrapping_add(SCALE_LOAD as i32);
            }
        } else if matrix.end() > free_to {
            matrix.duration = matrix.duration.wrapping_sub(SCALE_LOAD as i32);
        }
    }

    /// A gfx9 barrier shows as an immediate, or as a message on entry and an immediate on exit.
    fn match_barrier9(&mut self, category: Category, pc: Pc) -> Verdict {
        match category {
            Category::Msg => {
                // The caller steps over one instruction more: this one.
                self.index += 1;
                if let Some(exit) = self.instructions.get_mut(self.index)
                    && exit.is(Category::Immed)
                {
                    exit.pc = pc;
                }
                Verdict::Matched
            }
            Category::Immed => Verdict::Matched,
            _ => Verdict::PassedOver,
        }
    }

    /// The line is none that the instruction could be at first sight.
    fn mismatch(&mut self, chip: Chip, line: LineId) -> Verdict {
        let traits = self.lines.details(line).traits;
        let class = self.lines.class(line);
        if chip.gfxip == 9 && class.is_some_and(|class| self.is_swapped(class)) {
            self.instructions.swap(self.index, self.index + 1);
            self.next = Some(line);
            return Verdict::PassedOver;
        }
        let is_immediate = self.instructions[self.index].is(Category::Immed);
        if chip.gfxip != 9 && is_immediate && class.is_some_and(is_skippable) {
            self.spare += 1;
            return Verdict::Matched;
        }
        if traits.is_waitcnt && self.spare > 0 {
            self.spare -= 1;
            return Verdict::Matched;
        }
        // A wait or a load is never missing in a trace: the walk has lost its way.
        if (traits.is_waitcnt || traits.is_load) && !traits.is_scratch {
            return Verdict::Ends;
        }
        Verdict::PassedOver
    }

    /// Whether this instruction and the next are the next two lines the other way round (gfx9).
    fn is_swapped(&self, class: InstructionClass) -> bool {
        let (Some(second), Some(behind)) = (self.instructions.get(self.index + 1), self.next) else {
            return false;
        };
        category_of(class).is_some_and(|class| second.is(class))
            && self
                .lines
                .class(behind)
                .is_some_and(|behind| is_same(self.instructions[self.index].category(), behind))
    }
}
