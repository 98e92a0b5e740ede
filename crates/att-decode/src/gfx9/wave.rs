//! One wave of the target on gfx9.
//!
//! An instruction comes in two parts: ISSUE says that a wave issued something and opens an unfinished instruction,
//! INST says later what it was and finishes the oldest one that is open. INST comes late by a time that depends on
//! the unit and on a phase which all waves of the chunk share. Stalls are noted when they begin and go to the next
//! instruction that is finished.

use super::fifo::Fifo;
use super::state::StaleIssue;
use crate::record::{Category, Instruction, Pc, WaveState};
use crate::wave::WaveData;

/// Clocks of one issue cycle.
const CYCLE: i64 = 4;

/// INST codes of special meaning.
mod code {
    /// The program counter is written.
    pub(super) const PC: u8 = 7;
    /// A trap is entered.
    pub(super) const TRAP: u8 = 29;
}

/// Program-counter points that a trap looks back at. More cannot stand before one instruction of a real wave, and
/// looking through all would let a hostile stream use up time.
const RECENT_POINTS: usize = 64;

/// Instructions behind one that is taken back. Hardware keeps a few dozen in flight; more would let a hostile stream
/// use up time.
const MAX_IN_FLIGHT: usize = 256;

/// Kinds whose last instruction is remembered for a replay.
const REMEMBERED: usize = 17;

/// Where a wave is in a context switch or trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Status {
    /// The slot is empty.
    #[default]
    Absent,
    /// Runs.
    Normal,
    /// The shader engine asked for its context.
    SaveRequested,
    /// Saved.
    Standby,
    /// Restored, or in a trap: goes on when its program counter is written.
    WaitingForPc,
}

/// A wave with the flags of its state machine.
#[derive(Debug, Clone)]
pub(super) struct Gfx9Wave {
    pub(super) data: WaveData,
    pub(super) status: Status,
    /// Indices of unfinished instructions, the oldest first.
    open: Fifo<u32>,
    /// Times at which stalls began.
    stalls: Fifo<i64>,
    /// Index behind the last instruction of each kind, 0 for none.
    last_of_kind: [u32; REMEMBERED],
}

/// What an INST code says.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    /// An instruction of a category; the number shifts when INST is late.
    Is(Category, u8),
    /// The same, and it does more than issue.
    Particular(Category, u8),
    /// The instruction of this kind is replayed.
    Replays(u8),
    /// Nothing the decoder uses.
    Nothing,
}

/// By INST code, which has five bits.
static MEANINGS: [Meaning; 32] = {
    let mut meanings = [Meaning::Nothing; 32];
    meanings[0] = Meaning::Is(Category::Smem, 5);
    meanings[1] = Meaning::Is(Category::Salu, 5);
    meanings[2] = Meaning::Is(Category::Vmem, 0);
    meanings[3] = Meaning::Is(Category::Vmem, 0);
    meanings[4] = Meaning::Is(Category::Flat, 0);
    meanings[5] = Meaning::Is(Category::Valu, 2);
    meanings[6] = Meaning::Is(Category::Lds, 1);
    meanings[code::PC as usize] = Meaning::Particular(Category::Salu, 0);
    meanings[12] = Meaning::Is(Category::Jump, 1);
    meanings[13] = Meaning::Is(Category::Next, 1);
    meanings[14] = Meaning::Is(Category::Flat, 0);
    meanings[15] = Meaning::Is(Category::Msg, 1);
    meanings[16] = Meaning::Is(Category::Smem, 5);
    meanings[17] = Meaning::Is(Category::Salu, 5);
    meanings[18] = Meaning::Is(Category::Valu, 2);
    meanings[19] = Meaning::Replays(0);
    meanings[20] = Meaning::Replays(16);
    meanings[21] = Meaning::Replays(2);
    meanings[22] = Meaning::Replays(3);
    meanings[23] = Meaning::Replays(4);
    meanings[24] = Meaning::Replays(14);
    meanings[28] = Meaning::Is(Category::Valu, 2);
    meanings[code::TRAP as usize] = Meaning::Particular(Category::Trap, 0);
    meanings
};

impl Gfx9Wave {
    pub(super) fn new() -> Self {
        Gfx9Wave {
            data: WaveData::new(0),
            status: Status::Absent,
            open: Fifo::new(),
            stalls: Fifo::new(),
            last_of_kind: [0; REMEMBERED],
        }
    }

    /// Starts anew, memory kept.
    pub(super) fn reset(&mut self, time: i64) {
        self.data.reset(time);
        self.status = Status::Normal;
        self.open.clear();
        self.stalls.clear();
        self.last_of_kind = [0; REMEMBERED];
    }

    /// A start token with a context-switch count.
    pub(super) fn switch_context(&mut self, time: i64) {
        match self.status {
            Status::SaveRequested => {
                self.data.contexts = self.data.contexts.saturating_add(1);
                self.status = Status::Standby;
                self.data.push(time, Category::Trap, CYCLE, 0);
                self.data.is_trapping = true;
            }
            Status::Standby => self.status = Status::WaitingForPc,
            Status::Absent | Status::Normal | Status::WaitingForPc => {}
        }
    }

    /// ISSUE: the wave was stalled (1), issued (2) or handled an immediate (3). Its status is normal.
    #[inline(always)]
    pub(super) fn issue(&mut self, what: u64, time: i64) {
        let state_before = self.data.state;
        match what {
            1 => {
                self.data.state = WaveState::Stall;
                if !self.data.is_cut {
                    self.stalls.push(time);
                }
            }
            2 => {
                self.data.state = WaveState::Exec;
                let index = self.data.instructions.len() as u32;
                self.data.push(time, Category::Unfinished, 0, 0);
                if !self.data.is_cut {
                    self.open.push(index);
                }
            }
            _ => self.immediate(time),
        }
        let begin = self.data.state_begin;
        if time > begin {
            self.data.add_time(state_before, time - begin);
            self.data.state_begin = time;
        }
    }

    fn immediate(&mut self, time: i64) {
        let mut begin = time;
        if let Some(last) = self.data.instructions.last_mut()
            && !last.is(Category::Unfinished)
        {
            clip(last, time);
            begin = last.end().min(time);
        }
        let cycles = CYCLE + (time - begin).max(0);
        self.data.push(begin, Category::Immed, cycles, cycles);
        if self.data.state_begin < begin {
            self.data.add_time(self.data.state, begin - self.data.state_begin);
        }
        self.data.add_entry(WaveState::Wait, cycles);
        self.data.state = WaveState::Exec;
        self.data.state_begin = begin + cycles;
    }

    /// INST: finishes the oldest unfinished instruction. The status is normal.
    #[inline(always)]
    pub(super) fn inst(&mut self, code: u8, simd: u8, time: i64, phase: &mut u32) -> Result<(), StaleIssue> {
        let Some(index) = self.open.pop() else { return Ok(()) };
        let list = &mut self.data.instructions[..];
        if let [.., last_but_one, _] = &*list
            && let Some(instruction) = list.get(index as usize)
            && instruction.time < last_but_one.end()
        {
            *phase += 1;
        }
        let len = list.len() as u32;
        let Some((before, [instruction, ..])) = list.split_at_mut_checked(index as usize) else {
            return Err(StaleIssue { index, len });
        };
        let mut begin = 0;
        if let Some(previous) = before.last_mut() {
            clip(previous, instruction.time);
            begin = previous.end();
        }
        let lateness = (*phase + u32::from(simd)) % 4;
        if let Some(last) = self.last_of_kind.get_mut(usize::from(code)) {
            *last = index + 1;
        }
        match MEANINGS[usize::from(code) % MEANINGS.len()] {
            Meaning::Is(category, shift) => {
                let late = CYCLE * i64::from((lateness + u32::from(shift)) / 4);
                finish_instruction(instruction, category, time - late, begin, &mut self.stalls);
                Ok(())
            }
            meaning => self.inst_of_particular_code(code, meaning, index, (time, begin, lateness)),
        }
    }

    #[inline(never)]
    fn inst_of_particular_code(
        &mut self,
        code: u8,
        meaning: Meaning,
        index: u32,
        (time, begin, lateness): (i64, i64, u32),
    ) -> Result<(), StaleIssue> {
        match meaning {
            Meaning::Is(category, shift) | Meaning::Particular(category, shift) => {
                self.begin_particular(index, code);
                if let Some(instruction) = self.data.instructions.get_mut(index as usize) {
                    let late = CYCLE * i64::from((lateness + u32::from(shift)) / 4);
                    finish_instruction(instruction, category, time - late, begin, &mut self.stalls);
                }
                Ok(())
            }
            Meaning::Replays(kind) => self.replay(index as usize, kind, time),
            Meaning::Nothing => self.take_back(index as usize),
        }
    }

    /// INST of a wave whose context is away, or that is in a trap.
    pub(super) fn inst_in_switch(&mut self, code: u8, time: i64) {
        if self.status == Status::WaitingForPc && code == code::PC {
            self.leave_trap(time);
        }
    }

    fn begin_particular(&mut self, index: u32, code: u8) {
        match code {
            code::PC => self.data.add_point_at(index + 1, Pc::INVALID),
            _ => self.enter_trap(),
        }
    }

    /// Removes an instruction.
    ///
    /// As in the public decoder, indices of unfinished instructions behind it are not corrected.
    fn take_back(&mut self, at: usize) -> Result<(), StaleIssue> {
        let list = &mut self.data.instructions;
        if list.len() - at > MAX_IN_FLIGHT {
            return Err(StaleIssue { index: at as u32, len: list.len() as u32 });
        }
        list.remove(at);
        Ok(())
    }

    fn enter_trap(&mut self) {
        self.status = Status::WaitingForPc;
        self.data.is_trapping = true;
        let last = (self.data.instructions.len() as u32).wrapping_sub(1);
        let recent = self.data.points.iter_mut().rev().take(RECENT_POINTS);
        for point in recent.filter(|point| point.index == last) {
            point.index += 1;
        }
    }

    fn leave_trap(&mut self, time: i64) {
        self.data.add_point(Pc::INVALID);
        self.status = Status::Normal;
        if let Some(last) = self.data.instructions.last_mut()
            && last.is(Category::Trap)
        {
            last.duration = (time + CYCLE - last.time) as i32;
        }
    }

    /// The last instruction of a kind took until now; the issue of its replay is no instruction of its own.
    fn replay(&mut self, at: usize, kind: u8, time: i64) -> Result<(), StaleIssue> {
        let place = std::mem::take(&mut self.last_of_kind[usize::from(kind)]) as usize;
        let list = &mut self.data.instructions;
        if place > 0 && place < list.len() && place < at {
            let replayed = &mut list[place - 1];
            let duration = i64::from(replayed.duration).max(time + CYCLE - replayed.time);
            let longer = duration - i64::from(replayed.duration);
            replayed.duration = duration as i32;
            replayed.set_stall(i64::from(replayed.stall()) + longer);
        }
        self.take_back(at)
    }

    /// WAVE_END.
    pub(super) fn finish(&mut self, time: i64) {
        let end = time + CYCLE;
        let data = &mut self.data;
        if !data.instructions.is_empty() && !data.timeline.is_empty() && end > data.state_begin {
            data.add_entry(data.state, end - data.state_begin);
        }
        data.state = WaveState::Empty;
        data.state_begin = end;
        data.end = end;
        data.is_complete = true;
    }

    /// INST_PC.
    pub(super) fn new_pc(&mut self, pc: Pc) {
        if self.status == Status::Normal {
            self.data.new_pc(pc);
        }
    }
}

/// Ends an instruction at `time` if it lasts longer.
#[inline(always)]
fn clip(instruction: &mut Instruction, time: i64) {
    if time < instruction.end() {
        instruction.duration = (time - instruction.time).max(CYCLE) as i32;
        instruction.set_stall(i64::from(instruction.stall()).min(i64::from(instruction.duration)));
    }
}

/// Fills an instruction in that was done at `time`, no earlier than the end of the one before it.
#[inline(always)]
fn finish_instruction(
    instruction: &mut Instruction,
    category: Category,
    time: i64,
    before: i64,
    stalls: &mut Fifo<i64>,
) {
    instruction.set_category(category);
    instruction.duration = (CYCLE + (time - instruction.time).max(0)) as i32;
    while let Some(stall) = stalls.first()
        && stall < instruction.time
    {
        stalls.pop();
        let begin = stall.max(before);
        let (issued, end) = (instruction.time, instruction.end());
        instruction.set_stall((issued - begin).max(0));
        instruction.duration = (end - begin).max(CYCLE) as i32;
        instruction.time = begin;
    }
}
