//! The kernels that a device has seen: their programs, ways through them, and times.
//!
//! Ways are shared: the work-groups of a kernel take one of [`VARIANTS`] ways, in one of [`PHASES`] sets of times for
//! each crowd. So a dispatch of a million waves walks a few paths, and a kernel that was walked is only compared with
//! memory when it is dispatched again.

use std::collections::HashMap;
use std::sync::Arc;

use wavescope_isa::{Generation, Target};

use super::outcome::{Outcomes, Seeded};
use super::path::{End, Path, Stop};
use super::program::{Code, Program};
use super::timed::{Crowd, Timed};
use super::walker::walk;
use crate::mix::mix;

/// Ways through one kernel.
const VARIANTS: u64 = 4;
/// Sets of times for one way and crowd.
const PHASES: u64 = 4;
/// Longest way.
const LIMIT: u32 = 1 << 16;
/// Kernels that are kept.
const KEPT: usize = 256;

/// Hands in what branches do, for every work-group of a device.
pub trait GroupOutcomes: Send + Sync {
    /// Outcomes for the waves of a work-group of the kernel whose first instruction is at `entry`.
    fn of_group(&self, entry: u64, workgroup: u64) -> Box<dyn Outcomes>;
}

/// See the module.
pub(crate) struct Kernels {
    target: Target,
    seed: u64,
    outcomes: Option<Arc<dyn GroupOutcomes>>,
    kernels: HashMap<u64, Kernel>,
    numbered: Numbered,
}

/// Numbers paths.
#[derive(Default)]
struct Numbered {
    last: u64,
    /// Those that nobody has taken yet.
    new: Vec<(u64, Arc<Path>)>,
}

impl Numbered {
    fn add(&mut self, path: Path) -> Known {
        self.last += 1;
        let path = Arc::new(path);
        if !path.steps.is_empty() {
            self.new.push((self.last, Arc::clone(&path)));
        }
        Known { number: self.last, path }
    }
}

/// A numbered path.
#[derive(Clone)]
struct Known {
    number: u64,
    path: Arc<Path>,
}

struct Kernel {
    program: Program,
    paths: [Option<Known>; VARIANTS as usize],
    timed: HashMap<Key, Arc<Timed>>,
}

/// What tells two timed paths of a kernel apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    variant: u8,
    phase: u8,
    waves_of_simd: u8,
    waves_of_group: u16,
}

impl Kernels {
    pub(crate) fn new(target: Target, seed: u64, outcomes: Option<Arc<dyn GroupOutcomes>>) -> Self {
        Self { target, seed, outcomes, kernels: HashMap::new(), numbered: Numbered::default() }
    }

    /// Begins a dispatch of the kernel at `entry`.
    pub(crate) fn dispatch<'a>(&'a mut self, entry: u64, stagger: u32, code: &'a dyn Code) -> Dispatch<'a> {
        if self.kernels.len() >= KEPT && !self.kernels.contains_key(&entry) {
            self.kernels.clear();
        }
        let kernel = self.kernels.entry(entry).or_insert_with(|| Kernel::new(self.target));
        if !kernel.is_in(code) {
            *kernel = Kernel::new(self.target);
        }
        let outcomes = self.outcomes.as_deref();
        let generation = self.target.generation();
        let common = Common { entry, stagger, generation, seed: self.seed, code, outcomes };
        let numbered = &mut self.numbered;
        numbered.new.clear();
        Dispatch { common, kernel, numbered, places: Vec::new(), timed: Vec::new() }
    }

    /// Paths with their numbers that the last dispatch was the first to take.
    pub(crate) fn take_new_paths(&mut self) -> Vec<(u64, Arc<Path>)> {
        std::mem::take(&mut self.numbered.new)
    }
}

impl Kernel {
    fn new(target: Target) -> Self {
        Self { program: Program::new(target), paths: Default::default(), timed: HashMap::new() }
    }

    /// Whether memory still holds what was walked, and what stopped a wave still stops it.
    fn is_in(&mut self, code: &dyn Code) -> bool {
        let program = &mut self.program;
        let mut paths = self.paths.iter().flatten();
        paths.all(|known| match known.path.end {
            End::Stopped { pc, stop } if ended_outside(stop) => program.line(pc, code) == Err(stop),
            _ => true,
        }) && program.is_in(code)
    }
}

/// Whether a wave stopped at something that is no part of its program, and may be written yet.
const fn ended_outside(stop: Stop) -> bool {
    matches!(stop, Stop::Blank | Stop::Unmapped | Stop::Unsized)
}

/// What all work-groups of a dispatch share.
struct Common<'a> {
    entry: u64,
    stagger: u32,
    generation: Generation,
    seed: u64,
    code: &'a dyn Code,
    outcomes: Option<&'a dyn GroupOutcomes>,
}

/// One dispatch: finds the timed path of each work-group.
pub(crate) struct Dispatch<'a> {
    common: Common<'a>,
    kernel: &'a mut Kernel,
    numbered: &'a mut Numbered,
    /// Numbers by key: few, so that looking through is quick.
    places: Vec<(Key, u32)>,
    timed: Vec<Arc<Timed>>,
}

impl Dispatch<'_> {
    /// Number of the timed path of a work-group of `waves` waves, and the path.
    pub(crate) fn group(&mut self, workgroup: u64, waves: u32, waves_of_simd: u32) -> (u32, &Timed) {
        let random = mix(self.common.seed ^ workgroup.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let key = Key {
            variant: (random % VARIANTS) as u8,
            phase: (random >> 8 & (PHASES - 1)) as u8,
            // Powers of two, so that few differ.
            waves_of_simd: waves_of_simd.next_power_of_two().min(32) as u8,
            waves_of_group: waves as u16,
        };
        let known = self.places.iter().find(|(known, _)| *known == key).map(|(_, place)| *place);
        let place = match (self.common.outcomes, known) {
            (None, Some(known)) => known,
            (None, None) => {
                let timed = self.kernel.timed(&self.common, self.numbered, key);
                let place = self.add(timed);
                self.places.push((key, place));
                place
            }
            (Some(outcomes), _) => {
                let mut outcomes = outcomes.of_group(self.common.entry, workgroup);
                let path = self.numbered.add(self.kernel.walk(&self.common, &mut *outcomes));
                self.add(Arc::new(self.common.time(&path, key)))
            }
        };
        (place, &self.timed[place as usize])
    }

    /// The timed paths by number.
    pub(crate) fn finish(self) -> Vec<Arc<Timed>> {
        self.timed
    }

    fn add(&mut self, timed: Arc<Timed>) -> u32 {
        self.timed.push(timed);
        self.timed.len() as u32 - 1
    }
}

impl Kernel {
    fn timed(&mut self, common: &Common<'_>, numbered: &mut Numbered, key: Key) -> Arc<Timed> {
        if let Some(known) = self.timed.get(&key) {
            return Arc::clone(known);
        }
        let variant = usize::from(key.variant);
        let path = match &self.paths[variant] {
            Some(known) => known.clone(),
            None => {
                let seed = mix(common.seed ^ u64::from(key.variant) << 32);
                numbered.add(self.walk(common, &mut Seeded::new(seed, common.entry)))
            }
        };
        self.paths[variant] = Some(path.clone());
        let timed = Arc::new(common.time(&path, key));
        self.timed.insert(key, Arc::clone(&timed));
        timed
    }

    fn walk(&mut self, common: &Common<'_>, outcomes: &mut dyn Outcomes) -> Path {
        walk(&mut self.program, common.code, common.entry, outcomes, LIMIT)
    }
}

impl Common<'_> {
    fn time(&self, known: &Known, key: Key) -> Timed {
        let crowd = Crowd {
            waves_of_simd: key.waves_of_simd.into(),
            waves_of_group: key.waves_of_group.into(),
            stagger: self.stagger,
            seed: mix(self.seed ^ u64::from(key.phase) << 40),
        };
        Timed { path_number: known.number, ..Timed::new(self.generation, Arc::clone(&known.path), &crowd) }
    }
}
