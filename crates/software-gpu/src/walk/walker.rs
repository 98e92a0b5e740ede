//! Follows a program from its entry to the end of a wave.

use super::outcome::{Branch, Outcome, Outcomes};
use super::path::{End, Flow, Path, Step, Stop};
use super::program::{Code, Line, LineId, Program};
use super::scalar::Scalars;
use super::work::Unit;

/// Walks `program` from `entry`, at most `limit` instructions. Code is read where the program has not been yet.
pub fn walk(
    program: &mut Program,
    code: &dyn Code,
    entry: u64,
    outcomes: &mut dyn Outcomes,
    limit: u32,
) -> Path {
    let mut walker =
        Walker { program, code, outcomes, asked: 0, calls: Vec::new(), scalars: Scalars::default() };
    let mut steps = Vec::new();
    let end = walker.run(entry, limit, &mut steps);
    Path { steps, end, asked: walker.asked }
}

struct Walker<'a> {
    program: &'a mut Program,
    code: &'a dyn Code,
    outcomes: &'a mut dyn Outcomes,
    asked: u32,
    /// Return addresses of calls.
    calls: Vec<u64>,
    scalars: Scalars,
}

/// Where to go on.
enum Way {
    /// The following instruction.
    Next,
    /// The target of a relative branch.
    Jump,
    /// An address.
    To(u64),
}

impl Walker<'_> {
    fn run(&mut self, entry: u64, limit: u32, steps: &mut Vec<Step>) -> End {
        let mut at = match self.program.line(entry, self.code) {
            Ok(at) => at,
            Err(stop) => return End::Stopped { pc: entry, stop },
        };
        loop {
            let line = self.program[at];
            if steps.len() >= limit as usize {
                return End::Stopped { pc: line.pc, stop: Stop::Limit };
            }
            if line.work.unit == Unit::End {
                steps.push(Step { pc: line.pc, work: line.work, flow: Flow::Next });
                return End::Program;
            }
            let Some(way) = self.way(&line) else {
                return End::Stopped { pc: line.pc, stop: Stop::UnknownTarget };
            };
            let (flow, pc) = match way {
                Way::Next => (Flow::Next, line.next_pc()),
                Way::Jump => (Flow::Jump, line.target_pc()),
                Way::To(pc) => (Flow::Far, pc),
            };
            steps.push(Step { pc: line.pc, work: line.work, flow });
            at = match self.follow(at, &line, flow, pc) {
                Ok(next) => next,
                Err(stop) => return End::Stopped { pc, stop },
            };
        }
    }

    /// The line at `pc`, through the line's own links where they are known.
    fn follow(&mut self, at: LineId, line: &Line, flow: Flow, pc: u64) -> Result<LineId, Stop> {
        let known = match flow {
            Flow::Next => line.next,
            Flow::Jump => line.target,
            Flow::Far => None,
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let found = self.program.line(pc, self.code)?;
        match flow {
            Flow::Next => self.program.link_next(at, found),
            Flow::Jump => self.program.link_target(at, found),
            Flow::Far => {}
        }
        Ok(found)
    }

    /// What the instruction does to the program counter; `None` if nobody knows. Does what it does to registers.
    fn way(&mut self, line: &Line) -> Option<Way> {
        let instruction = line.instruction;
        if let Some(operation) = line.scalar {
            self.scalars.execute(operation, line.next_pc(), self.code);
        }
        if instruction.is_indirect() || instruction.is_call() && instruction.branch_offset().is_none() {
            return self.indirect(line);
        }
        if instruction.is_call() {
            self.calls.push(line.next_pc());
            return Some(Way::To(line.target_pc()));
        }
        if instruction.branch_offset().is_none() {
            return Some(Way::Next);
        }
        if !instruction.falls_through() {
            return Some(Way::Jump);
        }
        self.ask(line.pc, Some(line.target_pc()))
    }

    /// A jump to a register: to what is in it if that is known, else back to where the last call came from.
    fn indirect(&mut self, line: &Line) -> Option<Way> {
        let known = self.scalars.jump_target();
        if line.instruction.is_call() {
            self.calls.push(line.next_pc());
        }
        if let Some(target) = known {
            if self.calls.last() == Some(&target) {
                self.calls.pop();
            }
            return Some(Way::To(target));
        }
        if !line.instruction.is_call()
            && let Some(back) = self.calls.pop()
        {
            return Some(Way::To(back));
        }
        self.ask(line.pc, None)
    }

    fn ask(&mut self, pc: u64, target: Option<u64>) -> Option<Way> {
        self.asked += 1;
        match self.outcomes.outcome(&Branch { pc, target }) {
            Outcome::Falls => Some(Way::Next),
            Outcome::Taken => target.map(|_| Way::Jump),
            Outcome::To(address) if Some(address) == target => Some(Way::Jump),
            Outcome::To(address) => Some(Way::To(address)),
            Outcome::Unknown => None,
        }
    }
}
