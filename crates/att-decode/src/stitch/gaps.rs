//! Puts `s_barrier_wait` instructions back into waves whose capture leaves them out (gfx12).

use crate::record::{Category, Instruction, Pc, TimelineEntry, WaveState};
use crate::wave::WaveData;

/// Inserts an immediate before each index of `gaps`; a gap before the first instruction, or not behind the gap before
/// it, is dropped.
pub(crate) fn insert_gaps(wave: &mut WaveData, gaps: &[(usize, Pc)]) {
    if wave.instructions.is_empty() || gaps.is_empty() {
        return;
    }
    let mut instructions = Vec::with_capacity(wave.instructions.len() + gaps.len());
    let mut timeline = TimelineCopy::new(wave, gaps.len());
    let mut copied = 0;
    for &(index, pc) in gaps {
        if index <= copied {
            continue;
        }
        let Some([previous, current]) = wave.instructions.get_mut(index - 1..index + 1) else { continue };
        let time = previous.end();
        if current.time == time && current.duration > 1 {
            current.time += 1;
            current.duration -= 1;
        }
        let until = current.time;
        let mut wait = Instruction::new(time, Category::Immed, until.wrapping_sub(time) as i32, 0);
        wait.pc = pc;
        timeline.wait(&wave.timeline, time, until, wait.duration);
        instructions.extend_from_slice(&wave.instructions[copied..index]);
        instructions.push(wait);
        copied = index;
    }
    instructions.extend_from_slice(&wave.instructions[copied..]);
    wave.timeline = timeline.finish(&wave.timeline);
    wave.instructions = instructions;
}

/// Copies a timeline and cuts waits into it.
struct TimelineCopy {
    entries: Vec<TimelineEntry>,
    taken: usize,
    clock: i64,
}

impl TimelineCopy {
    fn new(wave: &WaveData, gaps: usize) -> Self {
        let entries = Vec::with_capacity(wave.timeline.len() + 2 * gaps);
        TimelineCopy { entries, taken: 0, clock: wave.begin }
    }

    /// Cuts a wait of `duration` in at `time`, if the state at hand covers all of it up to `until`.
    fn wait(&mut self, timeline: &[TimelineEntry], time: i64, until: i64, duration: i32) {
        while self.clock <= time
            && let Some(entry) = timeline.get(self.taken)
        {
            self.clock = self.clock.wrapping_add(i64::from(entry.duration));
            self.entries.push(*entry);
            self.taken += 1;
        }
        let behind = self.clock.wrapping_sub(time);
        let Some(last) = self.entries.last_mut() else { return };
        if i64::from(last.duration) < behind || self.clock < until {
            return;
        }
        last.duration = last.duration.wrapping_sub(clamp(behind));
        let state = last.state;
        self.entries.push(TimelineEntry { state: WaveState::Wait, duration });
        let rest = clamp(behind.wrapping_sub(i64::from(duration)));
        self.entries.push(TimelineEntry { state, duration: rest });
    }

    fn finish(mut self, timeline: &[TimelineEntry]) -> Vec<TimelineEntry> {
        self.entries.extend_from_slice(&timeline[self.taken..]);
        self.entries
    }
}

fn clamp(clocks: i64) -> i32 {
    clocks.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}
