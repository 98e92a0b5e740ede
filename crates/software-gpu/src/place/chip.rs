//! The places of a chip and their coordinates.

use wavescope_pm4::Generation;

use crate::DeviceConfig;

/// Coordinates of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Position {
    pub(crate) xcc: u8,
    /// Within the XCC.
    pub(crate) se: u8,
    /// Within the engine.
    pub(crate) sa: u8,
    /// CU (gfx9) or WGP (gfx10 and later) within the array.
    pub(crate) unit: u8,
}

/// All active places, XCC by XCC, engine by engine.
#[derive(Clone, Debug)]
pub(crate) struct Chip {
    positions: Vec<Position>,
    /// Places of each XCC's engines: `[xcc][se]` as ranges of indices.
    engines: Vec<Vec<std::ops::Range<usize>>>,
    units_are_wgps: bool,
}

impl Chip {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let units_are_wgps = config.target.generation() != Generation::Gfx9;
        let mut chip = Self { positions: Vec::new(), engines: Vec::new(), units_are_wgps };
        let active = active_units(config, units_are_wgps);
        for xcc in 0..config.xcc {
            let mut engines = Vec::new();
            for se in 0..config.se_per_xcc {
                let first = chip.positions.len();
                let wanted = |position: &&Position| position.xcc == xcc && position.se == se;
                chip.positions.extend(active.iter().filter(wanted));
                engines.push(first..chip.positions.len());
            }
            chip.engines.push(engines);
        }
        chip
    }

    pub(crate) fn places(&self) -> usize {
        self.positions.len()
    }

    pub(crate) fn position(&self, place: u16) -> Position {
        self.positions[usize::from(place)]
    }

    /// Index ranges of the engines of an XCC.
    pub(crate) fn engines(&self, xcc: usize) -> &[std::ops::Range<usize>] {
        &self.engines[xcc]
    }

    /// Index range of an XCC's places.
    pub(crate) fn units_of_xcc(&self, xcc: usize) -> std::ops::Range<usize> {
        let engines = &self.engines[xcc];
        let ends = engines.first().zip(engines.last());
        ends.map_or(0..0, |(first, last)| first.start..last.end)
    }

    /// Compute units of an XCC: one for each place, two where places are WGPs.
    pub(crate) fn compute_units_of_xcc(&self, xcc: usize) -> usize {
        self.units_of_xcc(xcc).len() * self.compute_units_of_place()
    }

    const fn compute_units_of_place(&self) -> usize {
        if self.units_are_wgps { 2 } else { 1 }
    }

    /// Index of the compute unit of a wave, counted from the first of its XCC.
    pub(crate) fn compute_unit_in_xcc(&self, place: u16, simd: u8) -> usize {
        let first = self.units_of_xcc(usize::from(self.position(place).xcc)).start;
        let of_place = usize::from(self.compute_unit(place, simd)) % self.compute_units_of_place();
        (usize::from(place) - first) * self.compute_units_of_place() + of_place
    }

    /// The same of the compute unit at a position; its `unit` is the compute unit's number in its array.
    pub(crate) fn find_compute_unit(&self, at: Position) -> Option<usize> {
        let count = self.compute_units_of_place();
        let (place, of_place) = (usize::from(at.unit) / count, usize::from(at.unit) % count);
        let at = Position { unit: place as u8, ..at };
        let range = self.units_of_xcc(usize::from(at.xcc));
        let place = self.positions[range].iter().position(|known| *known == at)?;
        Some(place * count + of_place)
    }

    pub(crate) fn xccs(&self) -> usize {
        self.engines.len()
    }

    /// Whether work-groups can go to every XCC.
    pub(crate) fn every_xcc_works(&self) -> bool {
        self.engines.iter().all(|engines| engines.iter().any(|range| !range.is_empty()))
    }

    /// Compute unit of a wave: on WGPs the one whose SIMD pair it runs on.
    pub(crate) fn compute_unit(&self, place: u16, simd: u8) -> u8 {
        let unit = self.position(place).unit;
        if self.units_are_wgps { unit * 2 + simd / 2 } else { unit }
    }
}

/// The units that work: as many as the configuration says, spread evenly over XCCs, engines and arrays, the last
/// ones of an array missing first; then what the harvest list takes away.
fn active_units(config: &DeviceConfig, units_are_wgps: bool) -> Vec<Position> {
    let per_unit = if units_are_wgps { 2 } else { 1 };
    let wanted = config.compute_units.div_ceil(per_unit);
    let units = u32::from(config.cu_per_sa).div_ceil(per_unit);
    let arrays = config.shader_engines() * u32::from(config.sa_per_se);
    let mut positions = Vec::new();
    for array in 0..arrays {
        let sa = array % u32::from(config.sa_per_se);
        let engine = array / u32::from(config.sa_per_se);
        // Engines with a unit more or less alternate over the XCCs, so that every XCC has the same number.
        let (xcc, se) = (engine / u32::from(config.se_per_xcc), engine % u32::from(config.se_per_xcc));
        let order = (se * u32::from(config.sa_per_se) + sa) * u32::from(config.xcc) + xcc;
        let here = wanted / arrays + u32::from(order < wanted % arrays);
        positions.extend((0..here.min(units)).map(|unit| Position {
            xcc: xcc as u8,
            se: se as u8,
            sa: sa as u8,
            unit: unit as u8,
        }));
    }
    let gone = |p: &Position| {
        config.harvest.iter().any(|h| (h.xcc, h.se, h.sa, h.cu) == (p.xcc, p.se, p.sa, p.unit))
    };
    positions.retain(|position| !gone(position));
    positions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Harvest;

    #[test]
    fn mi300x_has_38_units_on_every_xcc() {
        let chip = Chip::new(&DeviceConfig::mi300x());
        assert_eq!(chip.places(), 304);
        for xcc in 0..8 {
            let counts: Vec<usize> = chip.engines(xcc).iter().map(|range| range.len()).collect();
            assert_eq!(counts, [10, 10, 9, 9]);
        }
    }

    #[test]
    fn harvested_units_leave_a_gap_in_the_numbers() {
        let mut config = DeviceConfig::mi300x();
        config.harvest.push(Harvest { xcc: 1, se: 2, sa: 0, cu: 4 });
        let chip = Chip::new(&config);
        let range = chip.engines(1)[2].clone();
        let units: Vec<u8> = range.map(|place| chip.position(place as u16).unit).collect();
        assert_eq!(units, [0, 1, 2, 3, 5, 6, 7, 8]);
    }
}
