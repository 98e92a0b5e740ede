//! When the instructions of a path are issued.

use std::sync::Arc;

use wavescope_isa::Generation;

use super::counts::Counts;
use super::pace::Pace;
use super::path::{Flow, Path};
use super::work::{Unit, Wait, Work};
use crate::mix::mix;

/// What a wave's times depend on besides its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Crowd {
    /// Waves on its SIMD, itself included: they share the units.
    pub waves_of_simd: u32,
    /// Waves of its work-group: they meet at barriers.
    pub waves_of_group: u32,
    /// Cycles between the starts of two waves of the work-group, and between their releases from a barrier.
    pub stagger: u32,
    /// Seed of latencies and lost races for a unit.
    pub seed: u64,
}

/// Cycles of one step, relative to the start of the wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// From here on nothing but the unit, or what a wait waits for, holds it back.
    pub ready: u32,
    /// It is issued; an instruction that needs no unit is done.
    pub issue: u32,
}

/// A path with times.
#[derive(Clone, Debug)]
pub struct Timed {
    /// The path.
    pub path: Arc<Path>,
    /// Number of the path on its device; 0 elsewhere.
    pub path_number: u64,
    /// One for each step.
    pub times: Vec<Times>,
    /// What the path holds.
    pub counts: Counts,
    /// Cycles from the start to the end of the wave.
    pub cycles: u32,
}

impl Timed {
    /// Gives times to a path.
    pub fn new(generation: Generation, path: Arc<Path>, crowd: &Crowd) -> Self {
        let mut clock = Clock::new(Pace::of(generation), *crowd);
        let times: Vec<Times> = path.steps.iter().map(|step| clock.step(&step.work, step.flow)).collect();
        let counts = path.steps.iter().collect();
        Self { times, counts, cycles: clock.end(), path, path_number: 0 }
    }

    /// What is issued in the cycles `from..to`, relative to the start of the wave.
    pub fn counts_between(&self, from: u64, to: u64) -> Counts {
        if from == 0 && to >= u64::from(self.cycles) {
            return self.counts;
        }
        let place = |cycle: u64| self.times.partition_point(|times| u64::from(times.issue) < cycle);
        let (first, last) = (place(from), place(to));
        self.path.steps.get(first..last).unwrap_or(&[]).iter().collect()
    }
}

/// Operations that complete in order: the cycles at which they do.
#[derive(Debug, Default)]
struct Queue {
    done: Vec<u32>,
}

impl Queue {
    fn push(&mut self, done: u32) {
        self.done.push(self.last().max(done));
    }

    fn last(&self) -> u32 {
        self.done.last().copied().unwrap_or(0)
    }

    /// When at most `left` are out.
    fn settled(&self, left: u8) -> u32 {
        let waited = self.done.len().checked_sub(1 + usize::from(left));
        if left == Wait::ANY { 0 } else { waited.map_or(0, |index| self.done[index]) }
    }
}

/// Plays a wave through.
struct Clock {
    pace: Pace,
    crowd: Crowd,
    /// When the next instruction can be issued.
    now: u32,
    index: u64,
    before: Option<Unit>,
    loads: Queue,
    stores: Queue,
    lds: Queue,
    scalar: Queue,
}

/// A wave holds its slot for at least so many cycles.
const LEAST_CYCLES: u32 = 64;

impl Clock {
    fn new(pace: Pace, crowd: Crowd) -> Self {
        let [loads, stores, lds, scalar] = std::array::from_fn(|_| Queue::default());
        let now = pace.start;
        Self { pace, crowd, now, index: 0, before: None, loads, stores, lds, scalar }
    }

    fn step(&mut self, work: &Work, flow: Flow) -> Times {
        if work.unit == Unit::Skip {
            return Times { ready: self.now, issue: self.now };
        }
        self.index += 1;
        let ready = self.now + self.result(work.unit);
        let issue = self.issue(ready, work);
        self.start_memory(issue, work);
        self.now = issue + self.passes(work, flow);
        self.before = Some(work.unit);
        Times { ready, issue }
    }

    /// A number for this step and purpose below `below`.
    fn random(&self, purpose: u64, below: u32) -> u32 {
        (mix(self.crowd.seed ^ self.index << 8 ^ purpose << 56) % u64::from(below.max(1))) as u32
    }

    /// Cycles until what the instruction before made is there; a third of all ask for it.
    fn result(&self, unit: Unit) -> u32 {
        let memory = matches!(unit, Unit::Vmem | Unit::Flat | Unit::Lds);
        match (self.before, unit) {
            (Some(Unit::Valu), _) if memory => self.pace.address,
            (Some(Unit::Valu), Unit::Valu) if self.random(1, 3) == 0 => self.pace.valu_result,
            (Some(Unit::Salu), Unit::Salu) if self.random(1, 3) == 0 => self.pace.salu_result,
            _ => 0,
        }
    }

    /// When an instruction that is ready is issued: after what it waits for, or after others that share the unit.
    fn issue(&self, ready: u32, work: &Work) -> u32 {
        let grain = self.pace.grain;
        match work.unit {
            Unit::Immediate => ready.max(self.settled(&work.wait)).next_multiple_of(grain),
            Unit::Barrier | Unit::Barrier9 | Unit::BarrierWait | Unit::Message | Unit::End => ready,
            _ => ready + self.random(2, self.crowd.waves_of_simd) * grain,
        }
    }

    fn settled(&self, wait: &Wait) -> u32 {
        let queues = [
            (&self.loads, wait.loads),
            (&self.stores, wait.stores),
            (&self.lds, wait.lds),
            (&self.scalar, wait.scalar),
        ];
        queues.iter().map(|(queue, left)| queue.settled(*left)).max().unwrap_or(0)
    }

    fn start_memory(&mut self, issue: u32, work: &Work) {
        let pace = self.pace;
        let varied = |latency: u32| issue + latency + self.random(3, latency / 2);
        match work.unit {
            Unit::Smem if pace.scalars_are_lds => self.lds.push(varied(pace.scalar_load)),
            Unit::Smem => self.scalar.push(varied(pace.scalar_load)),
            Unit::Lds => self.lds.push(issue + pace.lds),
            Unit::Vmem | Unit::Flat | Unit::Bvh if !work.write => self.loads.push(varied(pace.load)),
            Unit::Vmem | Unit::Flat if pace.stores_are_loads => self.loads.push(issue + pace.store),
            Unit::Vmem | Unit::Flat => self.stores.push(issue + pace.store),
            _ => {}
        }
    }

    /// Cycles from an instruction's issue until the wave can issue the next one.
    fn passes(&self, work: &Work, flow: Flow) -> u32 {
        let pace = self.pace;
        let own = match work.unit {
            Unit::Valu => u32::from(work.cycles).min(4 * pace.grain),
            Unit::Salu => u32::from(work.cycles),
            Unit::Branch if flow == Flow::Next => pace.falls,
            Unit::Branch => pace.taken,
            Unit::Indirect => pace.far,
            Unit::Barrier | Unit::Barrier9 | Unit::BarrierWait => {
                pace.grain + (self.crowd.waves_of_group - 1) * self.crowd.stagger
            }
            _ => 0,
        };
        own.max(pace.grain).next_multiple_of(pace.grain)
    }

    /// The wave keeps its slot until its stores are out.
    fn end(&self) -> u32 {
        let out = self.loads.last().max(self.stores.last());
        (self.now + self.pace.grain).max(out).max(LEAST_CYCLES).next_multiple_of(self.pace.grain)
    }
}
