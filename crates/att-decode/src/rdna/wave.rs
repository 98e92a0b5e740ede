//! One wave of the target on RDNA.
//!
//! A wave is idle until its first token. WAVE_READY makes it stalled ("ready, waiting to be issued"), an instruction
//! makes it execute, an immediate makes it wait for a moment. On gfx10 and gfx11 a barrier stays *open* until the
//! next token of its wave, which ends the wait. A trap *suspends*: states still change, instructions are not taken
//! until the return from the trap. On gfx1250 a replay *rewinds*: the wave is stalled again from before the
//! instruction that is replayed.

use super::codes::{PC_WRITE, TRAP_ENTRY, TRAP_RETURN};
use crate::record::{Category, Pc, WaveState};
use crate::wave::WaveData;

/// Earlier than any time of a chunk.
const BEFORE_TIME: i64 = -1;

/// No wave.
pub(crate) const NO_WAVE: u32 = u32::MAX;

/// A wave with the flags of its state machine.
#[derive(Debug, Clone)]
pub(crate) struct RdnaWave {
    pub(crate) data: WaveData,
    /// The wave below it on the stack of its slot.
    pub(crate) below: u32,
    /// What is out of the ordinary, [`flag`]s.
    flags: u8,
    /// When the last replayed instruction was issued.
    rewind_end: i64,
}

/// States of a wave that change what its tokens do. Most tokens find none.
mod flag {
    /// Its instructions are not taken.
    pub(super) const SUSPENDED: u8 = 1;
    /// A barrier stays open until its next token.
    pub(super) const BARRIER_OPEN: u8 = 2;
    /// A matrix scale load is merged with the next instruction.
    pub(super) const SCALE: u8 = 4;
    /// An instruction is replayed.
    pub(super) const REWIND: u8 = 8;
}

/// An INST token, looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Issue {
    pub(crate) code: u16,
    pub(crate) category: Category,
    pub(crate) cycles: i64,
    /// Whether a barrier stays open until the next token of the wave (header versions up to 3).
    pub(crate) opens_barrier: bool,
}

impl RdnaWave {
    pub(crate) fn new(time: i64) -> Self {
        RdnaWave { data: WaveData::new(time), below: NO_WAVE, flags: 0, rewind_end: BEFORE_TIME }
    }

    /// The same wave started anew, its memory kept.
    pub(crate) fn reset(&mut self, time: i64) {
        let mut data = std::mem::replace(&mut self.data, WaveData::new(time));
        data.reset(time);
        *self = RdnaWave { data, ..RdnaWave::new(time) };
    }

    const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// WAVE_READY.
    #[inline]
    pub(crate) fn ready(&mut self, time: i64) {
        self.close_barrier(time.wrapping_sub(1));
        if !self.has(flag::REWIND) && self.rewind_end < time {
            self.data.change_state(WaveState::Stall, time);
        }
    }

    /// A matrix scale load.
    pub(crate) fn scale(&mut self) {
        self.flags |= flag::SCALE;
    }

    /// INST of a code that issues an instruction and does nothing else.
    #[inline]
    pub(crate) fn plain_inst(&mut self, category: Category, cycles: i64, time: i64) {
        if self.flags != 0 {
            return self.inst(Issue { code: 0, category, cycles, opens_barrier: false }, time);
        }
        self.data.end = time;
        self.issue(category, cycles, time);
    }

    /// INST of any code.
    #[inline(never)]
    pub(crate) fn inst(&mut self, mut issue: Issue, mut time: i64) {
        if self.has(flag::SCALE) {
            self.flags &= !flag::SCALE;
            time -= 1;
            issue.cycles += 1;
        }
        self.close_barrier(time);
        if issue.code == TRAP_RETURN {
            return self.leave_trap(time);
        }
        if issue.code == TRAP_ENTRY {
            self.data.push(time, Category::Trap, 1, 0);
            self.flags |= flag::SUSPENDED;
        }
        if self.has(flag::SUSPENDED) {
            return;
        }
        self.data.end = time;
        match issue.category {
            Category::Immed => {
                self.immediate(time);
                if issue.opens_barrier {
                    self.flags |= flag::BARRIER_OPEN;
                }
            }
            Category::None => {}
            category => {
                self.issue_any(category, issue.cycles, time);
                if issue.code == PC_WRITE {
                    self.data.add_point(Pc::INVALID);
                }
            }
        }
    }

    /// VALU_INST.
    #[inline]
    pub(crate) fn valu(&mut self, time: i64) {
        if self.flags != 0 {
            return self.valu_in_state(time);
        }
        self.issue(Category::Valu, 1, time);
    }

    /// VALU_INST of a wave in an odd state.
    #[inline(never)]
    fn valu_in_state(&mut self, time: i64) {
        self.close_barrier(time);
        if !self.has(flag::SUSPENDED) {
            self.issue_any(Category::Valu, 1, time);
        }
    }

    /// Adds an instruction that issued at `time`; it began when the wave became ready.
    #[inline(always)]
    fn issue(&mut self, category: Category, cycles: i64, time: i64) {
        let begin = self.data.state_begin;
        let is_stalled = matches!(self.data.state, WaveState::Stall) && begin < time;
        let stall = if is_stalled { time.wrapping_sub(begin) } else { 0 };
        self.data.push(time.wrapping_sub(stall), category, cycles.wrapping_add(stall), stall);
        self.data.change_state(WaveState::Exec, time);
    }

    /// The same where it may be the end of a replay: when it was stalled until now.
    #[inline(never)]
    fn issue_any(&mut self, category: Category, cycles: i64, time: i64) {
        let is_stalled = matches!(self.data.state, WaveState::Stall) && self.data.state_begin < time;
        if is_stalled && self.has(flag::REWIND) {
            self.flags &= !flag::REWIND;
            self.rewind_end = time;
        }
        self.issue(category, cycles, time);
    }

    /// IMM_ONE, IMMEDIATE and the barrier form of INST.
    #[inline]
    pub(crate) fn immediate(&mut self, time: i64) {
        self.close_barrier(time);
        if self.has(flag::SUSPENDED) {
            return;
        }
        let begin = match self.data.instructions.last() {
            Some(last) => last.end().min(time),
            None => time,
        };
        let stall = time.wrapping_sub(begin);
        self.data.push(begin, Category::Immed, stall.wrapping_add(1), stall);
        self.data.change_state(WaveState::Wait, begin);
        self.data.change_state(WaveState::Exec, time.wrapping_add(1));
    }

    /// The token at `time` ends an open barrier.
    #[inline]
    fn close_barrier(&mut self, time: i64) {
        if self.has(flag::BARRIER_OPEN) {
            self.close_open_barrier(time);
        }
    }

    #[cold]
    fn close_open_barrier(&mut self, time: i64) {
        self.flags &= !flag::BARRIER_OPEN;
        let Some(last) = self.data.instructions.last_mut().filter(|last| last.is(Category::Immed)) else {
            return;
        };
        let end = last.end();
        last.duration = time.wrapping_sub(last.time).max(0) as i32;
        last.set_category(Category::Msg);
        self.data.change_state(WaveState::Wait, end);
        self.data.change_state(WaveState::Exec, time.wrapping_add(1));
    }

    /// WAVE_END.
    pub(crate) fn finish(&mut self, time: i64) {
        self.data.change_state(WaveState::Empty, time);
        self.data.end = time;
        self.data.is_complete = true;
        if let Some(last) = self.data.instructions.last() {
            let end = last.end();
            if end < time && !self.has(flag::SUSPENDED) {
                // s_endpgm has no token of its own.
                self.data.push(end, Category::Msg, time.wrapping_sub(end), 0);
            }
        }
    }

    /// NEW_PC.
    pub(crate) fn new_pc(&mut self, pc: Pc, time: i64) {
        self.close_barrier(time);
        if !self.has(flag::SUSPENDED) {
            self.data.new_pc(pc);
        }
    }

    /// A context save of the whole shader engine.
    pub(crate) fn suspend(&mut self) {
        self.flags |= flag::SUSPENDED;
    }

    /// Its context is saved.
    pub(crate) fn save(&mut self, time: i64) {
        self.flags |= flag::SUSPENDED;
        self.data.contexts = self.data.contexts.wrapping_add(1);
        self.data.push(time, Category::Trap, 1, 0);
    }

    /// Its context is restored; it goes on after the return from the trap.
    pub(crate) fn restore(&mut self, time: i64) {
        self.stretch_trap(time);
        self.flags |= flag::SUSPENDED;
        self.data.contexts = self.data.contexts.wrapping_add(1);
    }

    fn leave_trap(&mut self, time: i64) {
        self.data.add_point(Pc::INVALID);
        self.flags &= !flag::SUSPENDED;
        self.stretch_trap(time);
    }

    /// A trap lasts until it is left.
    fn stretch_trap(&mut self, time: i64) {
        if let Some(last) = self.data.instructions.last_mut()
            && last.is(Category::Trap)
        {
            last.duration = last.duration.max(time.wrapping_add(1).wrapping_sub(last.time) as i32);
        }
    }

    /// A replay: takes back what was issued, down to and including the instruction that is replayed.
    pub(crate) fn rewind(&mut self) {
        let data = &mut self.data;
        while data.instructions.last().is_some_and(|last| last.is(Category::Immed)) {
            data.instructions.pop();
        }
        if let Some(&last) = data.instructions.last() {
            rewind_timeline(data, last.time.wrapping_sub(1));
            if [Category::Vmem, Category::Lds, Category::Smem].into_iter().any(|category| last.is(category)) {
                data.instructions.pop();
            }
        }
        data.state = WaveState::Stall;
        self.flags |= flag::REWIND;
    }
}

/// Moves the begin of the current state back to `time`, shortening or dropping what came before.
fn rewind_timeline(data: &mut WaveData, time: i64) {
    while let Some(last) = data.timeline.last_mut() {
        data.state_begin = data.state_begin.wrapping_sub(i64::from(last.duration));
        if data.state_begin <= time {
            last.duration = time.wrapping_sub(data.state_begin) as i32;
            data.state_begin = time;
            return;
        }
        data.timeline.pop();
    }
}
