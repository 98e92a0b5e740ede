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
    /// Index of the first of the trailing points that wait for a program counter.
    first_waiting: usize,
    /// Entries that each list may have.
    limit: u32,
    /// A list was full: the wave is not all there.
    pub(crate) is_cut: bool,
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
            first_waiting: 0,
            limit: u32::MAX,
            is_cut: false,
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

    /// Bounds each list of the wave.
    pub(crate) fn set_limit(&mut self, entries: u32) {
        self.limit = entries;
    }

    /// Sets the queue that launched it.
    pub(crate) fn set_dispatcher(&mut self, me: u8, pipe: u8) {
        self.dispatcher = (me & 7) << 4 | pipe & 15;
    }

    /// Marks the program counter before the next instruction.
    #[inline]
    pub(crate) fn add_point(&mut self, pc: Pc) {
        self.add_point_at(self.instructions.len() as u32, pc);
    }

    /// Marks the program counter before the instruction of an index.
    pub(crate) fn add_point_at(&mut self, index: u32, pc: Pc) {
        if has_room(&mut self.points, self.limit, &mut self.is_cut) {
            self.points.push(PcPoint { index, pc });
            if pc.is_valid() {
                self.first_waiting = self.points.len();
            }
        }
    }

    /// Fills the first of the trailing points that wait for a program counter; opens a new one if none waits. A wave
    /// that never had a point takes none.
    pub(crate) fn new_pc(&mut self, pc: Pc) {
        if self.points.is_empty() {
            return;
        }
        match self.points.get_mut(self.first_waiting) {
            Some(waiting) => {
                waiting.pc = pc;
                self.first_waiting += usize::from(pc.is_valid());
            }
            None => self.add_point(pc),
        }
    }

    /// Adds to the timeline, to the last entry if that is of the same state. Durations wrap at 32 bits.
    #[inline]
    pub(crate) fn add_time(&mut self, state: WaveState, duration: i64) {
        match self.timeline.last_mut() {
            Some(last) if last.state as i32 == state as i32 => {
                last.duration = last.duration.wrapping_add(duration as i32);
            }
            _ => self.add_entry(state, duration),
        }
    }

    /// Adds a timeline entry of its own.
    #[inline]
    pub(crate) fn add_entry(&mut self, state: WaveState, duration: i64) {
        if has_room(&mut self.timeline, self.limit, &mut self.is_cut) {
            self.timeline.push(TimelineEntry { state, duration: duration as i32 });
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

    /// Adds an instruction.
    #[inline]
    pub(crate) fn push(&mut self, time: i64, category: Category, duration: i64, stall: i64) {
        if has_room(&mut self.instructions, self.limit, &mut self.is_cut) {
            self.instructions.push(Instruction::new(time, category, duration as i32, stall));
        }
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

/// Whether a list takes one more entry.
#[inline(always)]
fn has_room<T>(list: &mut Vec<T>, limit: u32, is_cut: &mut bool) -> bool {
    list.len() < list.capacity() || make_room(list, limit, is_cut)
}

/// Grows a full list: a short one twofold, a long one by half, so that the memory of many waves stays below twice what
/// they hold.
#[cold]
fn make_room<T>(list: &mut Vec<T>, limit: u32, is_cut: &mut bool) -> bool {
    const FIRST: usize = 16;
    const LONG: usize = 4096;
    let len = list.len();
    let more = if len < LONG { len.max(FIRST) } else { len / 2 };
    let more = more.min((limit as usize).saturating_sub(len));
    *is_cut |= more == 0;
    list.reserve_exact(more);
    more > 0
}
