//! Turns waves into totals, as far as counting was on while they ran.
//!
//! Placing a dispatch fixes the future of its waves, so they wait here until time has reached them. Every change of
//! what counts first brings the totals up to the present ([`Monitor::sync`]): between two syncs the switches are
//! constant.

use std::sync::Arc;

use wavescope_pm4::Generation;

use super::events::Quantity;
use super::totals::{Totals, XccTotals};
use super::walks::Walks;
use crate::DeviceConfig;
use crate::place::{Chip, Position, Wave};
use crate::walk::Timed;

/// Which sequencers count: one mask of units for each engine of each XCC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gates {
    masks: Vec<u32>,
    engines: usize,
}

impl Gates {
    /// The gates of a device, from a function of (XCC, engine) to a mask of units.
    pub(crate) fn new(config: &DeviceConfig, mask: impl Fn(u8, u8) -> u32) -> Self {
        let xccs = 0..config.xcc;
        let masks = xccs.flat_map(|xcc| (0..config.se_per_xcc).map(move |se| (xcc, se)));
        Self {
            masks: masks.map(|(xcc, se)| mask(xcc, se)).collect(),
            engines: usize::from(config.se_per_xcc),
        }
    }

    fn open(&self, position: Position) -> bool {
        let engine = usize::from(position.xcc) * self.engines + usize::from(position.se);
        self.masks[engine] >> (position.unit & 31) & 1 != 0
    }
}

/// A wave whose time has not fully passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) wave: Wave,
    /// Up to here it is in the totals.
    from: u64,
    launched: bool,
    /// Whether its queue takes part in counting (COMPUTE_PERFCOUNT_ENABLE).
    counted: bool,
}

/// Counting state of one XCC.
#[derive(Clone, Debug)]
struct Perfmon {
    counting: bool,
    /// RLC_PERFMON_CLK_CNTL on gfx9: without it the counters' clock is gated.
    clocked: bool,
    live: XccTotals,
    sampled: XccTotals,
}

/// All counting state of a device.
#[derive(Debug)]
pub(crate) struct Monitor {
    generation: Generation,
    arrays: usize,
    units: usize,
    xccs: Vec<Perfmon>,
    pending: Vec<Pending>,
    /// Walks of the pending waves.
    walks: Walks,
    /// Whether instructions are counted.
    instructions: bool,
    /// Dispatches still at work, as (up to here in the totals, end).
    dispatches: Vec<(u64, u64)>,
    synced: u64,
    busy: BusyUntil,
    sweep_at: usize,
}

/// Up to which cycle something has been counted as busy, so that overlapping waves count once.
#[derive(Debug)]
struct BusyUntil {
    gui: u64,
    xccs: Vec<u64>,
    /// `[xcc][engine]`, `[xcc][sequencer]`, by place.
    engines: Vec<Vec<u64>>,
    sequencers: Vec<Vec<u64>>,
    places: Vec<u64>,
}

/// Pending waves that are kept before time is brought forward just to drop the finished ones.
const SWEEP: usize = 4096;

impl Monitor {
    pub(crate) fn new(config: &DeviceConfig, chip: &Chip) -> Self {
        let generation = config.target.generation();
        let (engines, arrays) = (usize::from(config.se_per_xcc), usize::from(config.sa_per_se));
        let units = usize::from(config.cu_per_sa.div_ceil(2));
        let sequencers = match generation {
            Generation::Gfx9 | Generation::Gfx10 => engines,
            Generation::Gfx11 | Generation::Gfx12 => engines * arrays * units,
        };
        // gfx10 and later have no such clock switch among the registers that are written.
        let clocked = generation != Generation::Gfx9;
        let totals = XccTotals::new(engines, sequencers);
        let perfmon = Perfmon { counting: false, clocked, live: totals.clone(), sampled: totals };
        let xccs = chip.xccs();
        let busy = BusyUntil {
            gui: 0,
            xccs: vec![0; xccs],
            engines: vec![vec![0; engines]; xccs],
            sequencers: vec![vec![0; sequencers]; xccs],
            places: vec![0; chip.places()],
        };
        Self {
            generation,
            arrays,
            units,
            xccs: vec![perfmon; xccs],
            pending: Vec::new(),
            walks: Walks::default(),
            instructions: false,
            dispatches: Vec::new(),
            synced: 0,
            busy,
            sweep_at: SWEEP,
        }
    }

    /// Takes the waves of a dispatch that lasts from `start` to `end`. Where nothing counts or traces (`watched`), those
    /// of a very large dispatch are not kept: counting that begins while it runs misses its rest.
    pub(crate) fn launch(
        &mut self,
        waves: &[Wave],
        walks: &[Arc<Timed>],
        (start, end): (u64, u64),
        counted: bool,
        watched: bool,
    ) {
        self.dispatches.push((start, end));
        if waves.len() > Self::UNWATCHED_WAVES && !watched && !self.xccs.iter().any(Perfmon::runs) {
            return;
        }
        let first = self.walks.add(walks);
        let pending = |&wave: &Wave| {
            let wave = Wave { walk: first + wave.walk, ..wave };
            Pending { wave, from: wave.start, launched: false, counted }
        };
        self.pending.extend(waves.iter().map(pending));
    }

    /// Waves of one dispatch that are kept although nobody looks.
    const UNWATCHED_WAVES: usize = 1 << 16;

    /// Whether so much has piled up that a [`sync`](Self::sync) pays.
    pub(crate) fn wants_sweep(&self) -> bool {
        self.pending.len() >= self.sweep_at || self.dispatches.len() >= self.sweep_at
    }

    /// Waves that are or will be resident after the last sync, and their walks.
    pub(crate) fn waves(&self) -> impl Iterator<Item = (&Wave, Option<&Arc<Timed>>)> {
        self.pending.iter().map(|pending| (&pending.wave, self.walks.get(pending.wave.walk)))
    }

    /// The index of a sequencer within its XCC.
    pub(crate) fn sequencer(&self, se: usize, sa: usize, unit: usize) -> usize {
        match self.generation {
            Generation::Gfx9 | Generation::Gfx10 => se,
            Generation::Gfx11 | Generation::Gfx12 => (se * self.arrays + sa) * self.units + unit,
        }
    }

    /// Whether this is the first event that needs instructions counted.
    pub(crate) const fn is_new(&self, quantity: Quantity) -> bool {
        !self.instructions && matches!(quantity, Quantity::Instructions(_) | Quantity::Requests(_))
    }

    /// Counts instructions from now on. The caller has synced.
    pub(crate) fn count_instructions(&mut self, chip: &Chip) {
        self.instructions = true;
        for (xcc, perfmon) in self.xccs.iter_mut().enumerate() {
            let units = chip.compute_units_of_xcc(xcc);
            perfmon.live.watch_instructions(units);
            perfmon.sampled.watch_instructions(units);
        }
    }

    /// Writes CP_PERFMON_CNTL's PERFMON_STATE on the XCCs of `mask`. The caller has synced.
    pub(crate) fn set_state(&mut self, mask: u8, state: u32) {
        for perfmon in self.selected(mask) {
            match state {
                0 => {
                    perfmon.counting = false;
                    perfmon.live.clear();
                    perfmon.sampled.clear();
                }
                1 => perfmon.counting = true,
                // 2 stops; the phantom states of the header are not used by compute.
                _ => perfmon.counting = false,
            }
        }
    }

    /// Makes the totals readable (PERFMON_SAMPLE_ENABLE). The caller has synced.
    pub(crate) fn sample(&mut self, mask: u8) {
        for perfmon in self.selected(mask) {
            perfmon.sampled.clone_from(&perfmon.live);
        }
    }

    /// Switches the counters' clock. The caller has synced.
    pub(crate) fn set_clock(&mut self, mask: u8, on: bool) {
        self.selected(mask).for_each(|perfmon| perfmon.clocked = on);
    }

    /// The sampled totals of an XCC.
    pub(crate) fn sampled(&self, xcc: usize) -> &XccTotals {
        &self.xccs[xcc].sampled
    }

    fn selected(&mut self, mask: u8) -> impl Iterator<Item = &mut Perfmon> {
        self.xccs.iter_mut().enumerate().filter(move |(xcc, _)| mask >> xcc & 1 != 0).map(|(_, p)| p)
    }

    /// Brings all totals up to cycle `now`. `gates` is asked only if there is something to let through.
    pub(crate) fn sync(&mut self, now: u64, chip: &Chip, gates: impl FnOnce() -> Gates) {
        if now <= self.synced {
            return;
        }
        if self.xccs.iter().any(Perfmon::runs) {
            self.count(now, chip, gates);
        }
        self.synced = now;
        self.forget(now);
        self.sweep_at = SWEEP.max(2 * self.pending.len()).max(2 * self.dispatches.len());
    }

    /// Drops what is over and moves the rest's beginning to `now`.
    fn forget(&mut self, now: u64) {
        self.pending.retain_mut(|pending| {
            pending.launched |= pending.wave.start < now;
            pending.from = pending.from.max(now);
            pending.wave.end > now
        });
        self.dispatches.retain_mut(|(from, end)| {
            *from = (*from).max(now);
            *end > now
        });
        self.walks.keep(&mut self.pending);
    }

    fn count(&mut self, now: u64, chip: &Chip, gates: impl FnOnce() -> Gates) {
        let elapsed = now - self.synced;
        for perfmon in self.xccs.iter_mut().filter(|perfmon| perfmon.runs()) {
            perfmon.live.cycles += elapsed;
            perfmon.live.levels.fill(0);
        }
        self.count_dispatches(now);
        // In order of time, so that a union of intervals needs only the end of what came before.
        self.pending.sort_unstable_by_key(|pending| pending.from);
        let started = self.pending.partition_point(|pending| pending.from < now);
        if started == 0 {
            return;
        }
        let gates = gates();
        for index in 0..started {
            let pending = self.pending[index];
            self.count_wave(&pending, now, chip, &gates);
        }
    }

    fn count_dispatches(&mut self, now: u64) {
        self.dispatches.sort_unstable();
        for index in 0..self.dispatches.len() {
            let (from, end) = self.dispatches[index];
            let new = extend(&mut self.busy.gui, from, end.min(now));
            for perfmon in self.xccs.iter_mut().filter(|perfmon| perfmon.runs()) {
                perfmon.live.gui_active += new;
            }
        }
    }

    fn count_wave(&mut self, pending: &Pending, now: u64, chip: &Chip, gates: &Gates) {
        let wave = &pending.wave;
        let position = chip.position(wave.place);
        let (xcc, se) = (usize::from(position.xcc), usize::from(position.se));
        let sequencer = self.sequencer(se, usize::from(position.sa), usize::from(position.unit));
        let (from, end) = (pending.from, wave.end.min(now));
        let perfmon = &mut self.xccs[xcc];
        let on_xcc = extend(&mut self.busy.xccs[xcc], from, end);
        let on_place = extend(&mut self.busy.places[usize::from(wave.place)], from, end);
        if !perfmon.runs() {
            return;
        }
        let live = &mut perfmon.live;
        live.spi_busy += on_xcc;
        if !pending.counted {
            return;
        }
        let busy = extend(&mut self.busy.engines[xcc][se], from, end);
        let share = Share { cycles: end - from, busy, on_place };
        pending.add_to(&mut live.engines[se], &share);
        let walk = self.walks.get(wave.walk).filter(|_| self.instructions);
        let executed = walk.map(|walk| walk.counts_between(from - wave.start, end - wave.start));
        if let Some(executed) = &executed {
            live.units[chip.compute_unit_in_xcc(wave.place, wave.simd)].add(executed);
        }
        if gates.open(position) {
            let busy = extend(&mut self.busy.sequencers[xcc][sequencer], from, end);
            pending.add_to(&mut live.sequencers[sequencer], &Share { busy, ..share });
            live.levels[sequencer] += u64::from(wave.end > now);
            if let Some(executed) = executed {
                *live.executed[sequencer].of_size(wave.size) += executed;
            }
        }
    }
}

/// What a stretch of a wave's life adds.
struct Share {
    cycles: u64,
    /// New cycles of engine or sequencer, of the place.
    busy: u64,
    on_place: u64,
}

impl Pending {
    fn add_to(&self, totals: &mut Totals, share: &Share) {
        if !self.launched {
            totals.launch(self.wave.lanes, self.wave.size, self.wave.first);
        }
        totals.wave_cycles += share.cycles;
        totals.busy_cycles += share.busy;
        totals.busy_unit_cycles += share.on_place;
    }
}

impl Perfmon {
    const fn runs(&self) -> bool {
        self.counting && self.clocked
    }
}

/// Adds `[from, end)` to what is busy up to `until`, and returns how much of it is new. Intervals come in order of
/// `from`.
fn extend(until: &mut u64, from: u64, end: u64) -> u64 {
    let new = end.saturating_sub(from.max(*until));
    *until = (*until).max(end);
    new
}
