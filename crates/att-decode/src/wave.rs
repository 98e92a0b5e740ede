//! A wave under construction, as both families keep it.

use crate::record::{Category, Instruction, Pc, TimelineEntry, WaveState};

/// Where the program counter of a wave is known: before the instruction of this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PcPoint {
    pub(crate) index: u32,
    pub(crate) pc: Pc,
}

/// Times, timeline and instructions of a wave.
#[derive(Debug, Clone)]
pub(crate) struct WaveData {
    pub(crate) begin: i64,
    /// End, or the last sign of life while the wave runs; 0 before there is any.
    pub(crate) end: i64,
    pub(crate) state: WaveState,
    pub(crate) state_begin: i64,
    pub(crate) timeline: Vec<TimelineEntry>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) points: Vec<PcPoint>,
    pub(crate) is_complete: bool,
    /// Seen entering or saving for a trap: a missing end is no surprise then (gfx9 only).
    pub(crate) is_trapping: bool,
    pub(crate) cu: u8,
    pub(crate) simd: u8,
    pub(crate) contexts: u8,
    pub(crate) dispatcher: u8,
    pub(crate) workgroup: u8,
    pub(crate) cluster: u8,
}

impl WaveData {
    /// A wave that starts at `time`; its state is idle until a token says otherwise.
    pub(crate) fn new(time: i64) -> Self {
        WaveData {
            begin: time,
            end: 0,
            state: WaveState::Idle,
            state_begin: time,
            timeline: Vec::new(),
            instructions: Vec::new(),
            points: Vec::new(),
            is_complete: false,
            is_trapping: false,
            cu: 0,
            simd: 0,
            contexts: 0,
            dispatcher: 0,
            workgroup: 0,
            cluster: 0,
        }
    }

    /// The same wave started anew, its memory kept.
    pub(crate) fn reset(&mut self, time: i64) {
        let (mut timeline, mut instructions, mut points) = (
            std::mem::take(&mut self.timeline),
            std::mem::take(&mut self.instructions),
            std::mem::take(&mut self.points),
        );
        timeline.clear();
        instructions.clear();
        points.clear();
        *self = WaveData { timeline, instructions, points, ..WaveData::new(time) };
    }

    /// Sets the queue that launched it.
    pub(crate) fn set_dispatcher(&mut self, me: u8, pipe: u8) {
        self.dispatcher = (me & 7) << 4 | pipe & 15;
    }

    /// Marks the program counter before the next instruction.
    #[inline]
    pub(crate) fn add_point(&mut self, pc: Pc) {
        self.points.push(PcPoint { index: self.instructions.len() as u32, pc });
    }

    /// Fills the first of the trailing points that wait for a program counter; opens a new one if none waits. A wave
    /// that never had a point takes none.
    pub(crate) fn new_pc(&mut self, pc: Pc) {
        let Some(last) = self.points.last() else { return };
        if last.pc.is_valid() {
            return self.add_point(pc);
        }
        let waiting = self.points.iter().rev().take_while(|point| !point.pc.is_valid()).count();
        let first = self.points.len() - waiting;
        self.points[first].pc = pc;
    }

    /// Adds to the timeline, to the last entry if that is of the same state. Durations wrap at 32 bits.
    #[inline]
    pub(crate) fn add_time(&mut self, state: WaveState, duration: i64) {
        match self.timeline.last_mut() {
            Some(last) if last.state as i32 == state as i32 => {
                last.duration = last.duration.wrapping_add(duration as i32);
            }
            _ => self.timeline.push(TimelineEntry { state, duration: duration as i32 }),
        }
    }

    /// Ends the current state at `time` and begins another.
    #[inline]
    pub(crate) fn change_state(&mut self, state: WaveState, time: i64) {
        if time > self.state_begin {
            self.add_time(self.state, time.wrapping_sub(self.state_begin));
            self.state_begin = time;
        }
        self.state = state;
    }

    #[inline]
    pub(crate) fn push(&mut self, time: i64, category: Category, duration: i64, stall: i64) {
        self.instructions.push(Instruction::new(time, category, duration as i32, stall));
    }

    /// A wave without end lasts as long as anything is known of it.
    pub(crate) fn stretch_incomplete(&mut self) {
        /// What the public decoder allows for the last instruction.
        const MARGIN: i64 = 4;
        for instruction in &self.instructions {
            self.end = self.end.max(instruction.end().wrapping_add(MARGIN));
        }
    }
}
