//! Running totals.

use super::events::Quantity;
use super::instructions::Executed;
use super::requests::Requests;

/// Totals of one sequencer: a shader engine's on gfx9 and gfx10, a WGP's on gfx11 and gfx12.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) waves: u64,
    /// Waves with fewer than 16, 32, 48, 64 lanes.
    pub(crate) below: [u64; 4],
    pub(crate) full: u64,
    pub(crate) items: u64,
    pub(crate) groups: u64,
    pub(crate) wave_cycles: u64,
    pub(crate) busy_cycles: u64,
    pub(crate) busy_unit_cycles: u64,
}

/// Totals of an XCC.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct XccTotals {
    pub(crate) cycles: u64,
    pub(crate) gui_active: u64,
    pub(crate) spi_busy: u64,
    /// By shader engine, not subject to the sequencers' own switches.
    pub(crate) engines: Vec<Totals>,
    /// By sequencer.
    pub(crate) sequencers: Vec<Totals>,
    /// Instructions by sequencer, and memory requests by compute unit of the XCC, from its first. Both empty as long as nobody
    /// has asked for such an event: they are large, and totals are copied at every sample.
    pub(crate) executed: Vec<Executed>,
    pub(crate) units: Vec<Requests>,
    /// Waves resident, by sequencer, at the last look.
    pub(crate) levels: Vec<u64>,
}

impl Totals {
    const BOUNDS: [u8; 4] = [16, 32, 48, 64];

    /// A wave was launched.
    pub(crate) fn launch(&mut self, lanes: u8, wave_size: u8, first_of_group: bool) {
        self.waves += 1;
        self.items += u64::from(lanes);
        self.groups += u64::from(first_of_group);
        self.full += u64::from(lanes == wave_size);
        for (count, bound) in self.below.iter_mut().zip(Self::BOUNDS) {
            *count += u64::from(lanes < bound);
        }
    }
}

impl Clone for XccTotals {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        copy.clone_from(self);
        copy
    }

    // Totals are copied at every sample: into what the last sample left, without allocating.
    fn clone_from(&mut self, from: &Self) {
        (self.cycles, self.gui_active, self.spi_busy) = (from.cycles, from.gui_active, from.spi_busy);
        self.engines.clone_from(&from.engines);
        self.sequencers.clone_from(&from.sequencers);
        self.executed.clone_from(&from.executed);
        self.units.clone_from(&from.units);
        self.levels.clone_from(&from.levels);
    }
}

impl XccTotals {
    pub(crate) fn new(engines: usize, sequencers: usize) -> Self {
        Self {
            engines: vec![Totals::default(); engines],
            sequencers: vec![Totals::default(); sequencers],
            levels: vec![0; sequencers],
            ..Self::default()
        }
    }

    /// Counts instructions and memory requests from now on.
    pub(crate) fn watch_instructions(&mut self, units: usize) {
        self.executed.resize(self.sequencers.len(), Executed::default());
        self.units.resize(units, Requests::default());
    }

    pub(crate) fn clear(&mut self) {
        (self.cycles, self.gui_active, self.spi_busy) = (0, 0, 0);
        self.engines.fill(Totals::default());
        self.sequencers.fill(Totals::default());
        self.executed.fill(Executed::default());
        self.units.fill(Requests::default());
        self.levels.fill(0);
    }

    /// A quantity of the XCC, of an engine, of a sequencer or of a unit, whichever it belongs to.
    pub(crate) fn value(
        &self,
        quantity: Quantity,
        engine: usize,
        sequencer: usize,
        unit: Option<usize>,
    ) -> u64 {
        let spi = self.engines.get(engine).copied().unwrap_or_default();
        let sq = self.sequencers.get(sequencer).copied().unwrap_or_default();
        match quantity {
            Quantity::Cycles => self.cycles,
            Quantity::GuiActive => self.gui_active,
            Quantity::SpiBusy => self.spi_busy,
            Quantity::Waves => sq.waves,
            Quantity::WavesBelow(bound) => {
                let index = Totals::BOUNDS.iter().position(|&known| known == bound);
                index.map_or(0, |index| sq.below[index])
            }
            Quantity::FullWaves => sq.full,
            Quantity::Items => sq.items,
            Quantity::WaveCycles(unit) => sq.wave_cycles / unit,
            Quantity::BusyCycles => sq.busy_cycles,
            Quantity::BusyUnitCycles => sq.busy_unit_cycles / 4,
            Quantity::SpiWaves => spi.waves,
            Quantity::SpiGroups => spi.groups,
            Quantity::SpiBusyCycles => spi.busy_cycles,
            Quantity::Requests(request) => {
                unit.and_then(|unit| self.units.get(unit)).map_or(0, |unit| unit.count(request))
            }
            Quantity::Instructions(kind) => {
                self.executed.get(sequencer).map_or(0, |executed| executed.count(kind))
            }
            Quantity::Level => self.levels.get(sequencer).copied().unwrap_or_default(),
        }
    }
}
