//! Places the waves of dispatches.

use super::chip::Chip;
use super::unit::{Limits, Seat, Unit};
use super::{GRAIN, Lifetimes, Wave};
use crate::DeviceConfig;
use crate::kernel::{Geometry, Needs, Registers, Workgroup};
use crate::mix::mix;
use wavescope_pm4::Generation;

/// What is to be placed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    /// Number on the device, part of the seed.
    pub(crate) dispatch: u64,
    pub(crate) geometry: Geometry,
    pub(crate) needs: Needs,
    /// First cycle at which a wave may start, rounded up to a multiple of [`GRAIN`].
    pub(crate) start: u64,
}

/// The extent of a placed dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// When its last wave started, and up to where places were looked at.
    pub(crate) launched: u64,
    pub(crate) workgroups: u64,
    pub(crate) waves: u64,
}

/// How the waves of one work-group are seated.
struct Terms<'a> {
    launch: &'a Launch,
    limits: &'a Limits,
    walk: u32,
    /// What each lives, if anyone knows.
    cycles: Option<u64>,
}

/// The state of all places.
#[derive(Debug)]
pub(crate) struct Placer {
    chip: Chip,
    units: Vec<Unit>,
    config: DeviceConfig,
    seed: u64,
    xccs: Vec<Xcc>,
    /// First cycle at which a place may have room for the present dispatch.
    blocked_until: Vec<u64>,
    seats: Vec<Seat>,
}

/// Where an XCC goes on.
#[derive(Clone, Debug)]
struct Xcc {
    now: u64,
    next_engine: usize,
    engines: Vec<Engine>,
}

#[derive(Clone, Debug, Default)]
struct Engine {
    /// First cycle at which the engine can launch another wave: one per [`GRAIN`].
    launch: u64,
    next_place: usize,
}

impl Placer {
    pub(crate) fn new(config: &DeviceConfig, seed: u64) -> Self {
        let chip = Chip::new(config);
        let limits = limits(config, config.wave_size);
        let engine = |_: &_| Engine::default();
        let xccs = (0..chip.xccs())
            .map(|xcc| Xcc {
                now: 0,
                next_engine: 0,
                engines: chip.engines(xcc).iter().map(engine).collect(),
            })
            .collect();
        let units = vec![Unit::new(&limits); chip.places()];
        let blocked_until = vec![0; chip.places()];
        Self { chip, units, config: config.clone(), seed, xccs, blocked_until, seats: Vec::new() }
    }

    pub(crate) fn chip(&self) -> &Chip {
        &self.chip
    }

    /// Places every wave of `launch` and appends them to `waves`, in order of start within each XCC. `None`, and
    /// nothing changed, if a work-group does not even fit an empty place.
    pub(crate) fn place(
        &mut self,
        launch: &Launch,
        lifetimes: &mut dyn Lifetimes,
        waves: &mut Vec<Wave>,
    ) -> Option<Placed> {
        let limits = limits(&self.config, launch.needs.wave_size);
        if !fits(launch, &limits) {
            return None;
        }
        let start = launch.start.next_multiple_of(GRAIN);
        self.blocked_until.fill(0);
        self.xccs.iter_mut().for_each(|xcc| xcc.now = start);
        let mut placed = Placed { start, end: start, launched: start, workgroups: 0, waves: 0 };
        let xccs = self.chip.xccs() as u64;
        for group in launch.geometry.workgroups() {
            let xcc = (group.number % xccs) as usize;
            let place = self.make_room(xcc, &group, launch, &limits);
            let count = waves.len();
            let seats = self.seats.len() as u32;
            let crowd = self.units[place].waves_of_simd(self.xccs[xcc].now, seats);
            let (walk, cycles) = lifetimes.of_group(group.number, seats, crowd);
            let terms = Terms { launch, limits: &limits, walk, cycles };
            placed.end = placed.end.max(self.seat_group(place, xcc, &group, &terms, waves));
            placed.launched = waves.last().map_or(start, |wave| wave.start).max(placed.launched);
            placed.workgroups += 1;
            placed.waves += (waves.len() - count) as u64;
        }
        Some(placed)
    }

    /// Finds the place for a work-group, moving the XCC's time on until one has room. Leaves the seats in
    /// `self.seats`.
    fn make_room(&mut self, xcc: usize, group: &Workgroup, launch: &Launch, limits: &Limits) -> usize {
        let waves = group.items.div_ceil(u32::from(launch.needs.wave_size));
        loop {
            let engines = self.chip.engines(xcc).len();
            for step in 0..engines {
                let engine = (self.xccs[xcc].next_engine + step) % engines;
                if let Some(place) = self.try_engine(xcc, engine, waves, launch, limits) {
                    self.xccs[xcc].next_engine = (engine + 1) % engines;
                    return place;
                }
            }
            self.xccs[xcc].now = self.next_room(xcc);
        }
    }

    /// Tries the engine's places in turn, from where it last stopped.
    fn try_engine(
        &mut self,
        xcc: usize,
        engine: usize,
        waves: u32,
        launch: &Launch,
        limits: &Limits,
    ) -> Option<usize> {
        let range = self.chip.engines(xcc)[engine].clone();
        let now = self.xccs[xcc].now;
        let first = self.xccs[xcc].engines[engine].next_place;
        for step in 0..range.len() {
            let index = (first + step) % range.len();
            let place = range.start + index;
            if self.blocked_until[place] > now {
                continue;
            }
            if self.units[place].find(now, waves, &launch.needs, limits, &mut self.seats) {
                self.xccs[xcc].engines[engine].next_place = index + 1;
                return Some(place);
            }
            self.blocked_until[place] = self.units[place].next_change(now);
        }
        None
    }

    /// The first cycle at which a place of the XCC gets something back. Every place is blocked and holds something
    /// (an empty one would have had room), so there is one.
    fn next_room(&self, xcc: usize) -> u64 {
        let engines = self.chip.engines(xcc).iter().cloned();
        engines.flatten().map(|place| self.blocked_until[place]).min().unwrap_or(u64::MAX)
    }

    /// Starts the work-group's waves, one after the other, and returns the cycle at which the last one ends.
    fn seat_group(
        &mut self,
        place: usize,
        xcc: usize,
        group: &Workgroup,
        terms: &Terms<'_>,
        waves: &mut Vec<Wave>,
    ) -> u64 {
        let &Terms { launch, limits, walk, cycles } = terms;
        let se = usize::from(self.chip.position(place as u16).se);
        let size = u32::from(launch.needs.wave_size);
        let mut group_end = 0;
        for index in 0..self.seats.len() {
            let seat = self.seats[index];
            let index = index as u32;
            let engine = &mut self.xccs[xcc].engines[se];
            let start = engine.launch.max(self.xccs[xcc].now);
            self.xccs[xcc].engines[se].launch = start + GRAIN;
            let unknown = || lifetime(self.seed, launch.dispatch, group.number, index);
            let end = start + cycles.unwrap_or_else(unknown).next_multiple_of(GRAIN);
            let lanes = (group.items - index * size).min(size) as u8;
            self.units[place].occupy(seat, end, &launch.needs, limits);
            let (place, Seat { simd, slot }) = (place as u16, seat);
            let first = index == 0;
            let (workgroup, size) = (group.number, launch.needs.wave_size);
            waves.push(Wave { workgroup, start, end, place, simd, slot, lanes, size, first, walk });
            group_end = group_end.max(end);
        }
        let count = group.items.div_ceil(size);
        self.units[place].hold_group(group_end, count, &launch.needs);
        group_end
    }
}

/// Whether the largest work-group fits an empty place.
fn fits(launch: &Launch, limits: &Limits) -> bool {
    let items = launch.geometry.workgroups().next().map_or(0, |group| group.items);
    let waves = items.div_ceil(u32::from(launch.needs.wave_size));
    limits.holds(waves, &launch.needs)
}

/// Limits of a place for waves of one size.
fn limits(config: &DeviceConfig, wave_size: u8) -> Limits {
    let (units, simds) = match config.target.generation() {
        Generation::Gfx9 => (1, config.simd_per_cu),
        Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12 => (2, config.simd_per_cu * 2),
    };
    Limits {
        simds,
        slots: config.waves_per_simd,
        vgprs: Registers::of(config.target, wave_size).total,
        lds_bytes: config.lds_bytes * units,
        barriers: 16 * units as usize,
    }
}

/// Cycles that a wave lives whose program cannot be walked to its end: 400 to about 1,400, fixed by the seed.
fn lifetime(seed: u64, dispatch: u64, workgroup: u64, wave: u32) -> u64 {
    let key = seed ^ dispatch.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (workgroup << 5 | u64::from(wave));
    (100 + mix(key) % 251) * GRAIN
}
