//! Chips: the packet and register generation, and the chip whose block table applies.

use crate::block::Block;
use crate::tables;

/// Graphics core generation: packet constants, register layout and field positions follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Generation {
    /// GCN5 and CDNA: gfx900 to gfx90a, gfx94x, gfx95x.
    Gfx9,
    /// RDNA1 and RDNA2.
    Gfx10,
    /// RDNA3.
    Gfx11,
    /// RDNA4.
    Gfx12,
}

/// A chip with a counter-block table of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// Vega 20 and, by its rules, gfx900 and gfx902.
    Gfx906,
    /// MI100.
    Gfx908,
    /// MI200 series.
    Gfx90a,
    /// MI300 series (every gfx94x).
    Gfx942,
    /// MI350 series (every gfx95x).
    Gfx950,
    /// Every gfx10.
    Gfx1030,
    /// Every gfx11.
    Gfx1100,
    /// Every gfx12 other than gfx1201.
    Gfx1200,
    /// Navi 48.
    Gfx1201,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 9] = [
        Self::Gfx906,
        Self::Gfx908,
        Self::Gfx90a,
        Self::Gfx942,
        Self::Gfx950,
        Self::Gfx1030,
        Self::Gfx1100,
        Self::Gfx1200,
        Self::Gfx1201,
    ];

    /// The target that upstream's library picks for a gfx name: by prefix, in this order. `None` for a chip
    /// that it does not implement.
    pub fn from_gfxip(name: &str) -> Option<Self> {
        const PREFIXES: [(&str, Target); 11] = [
            ("gfx908", Target::Gfx908),
            ("gfx90a", Target::Gfx90a),
            ("gfx900", Target::Gfx906),
            ("gfx902", Target::Gfx906),
            ("gfx906", Target::Gfx906),
            ("gfx94", Target::Gfx942),
            ("gfx95", Target::Gfx950),
            ("gfx10", Target::Gfx1030),
            ("gfx11", Target::Gfx1100),
            ("gfx1201", Target::Gfx1201),
            ("gfx12", Target::Gfx1200),
        ];
        PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|&(_, target)| target)
    }

    /// The chip's gfx name, as its table is called.
    pub const fn gfxip(self) -> &'static str {
        match self {
            Self::Gfx906 => "gfx906",
            Self::Gfx908 => "gfx908",
            Self::Gfx90a => "gfx90a",
            Self::Gfx942 => "gfx942",
            Self::Gfx950 => "gfx950",
            Self::Gfx1030 => "gfx1030",
            Self::Gfx1100 => "gfx1100",
            Self::Gfx1200 => "gfx1200",
            Self::Gfx1201 => "gfx1201",
        }
    }

    /// Its generation.
    pub const fn generation(self) -> Generation {
        match self {
            Self::Gfx906 | Self::Gfx908 | Self::Gfx90a | Self::Gfx942 | Self::Gfx950 => Generation::Gfx9,
            Self::Gfx1030 => Generation::Gfx10,
            Self::Gfx1100 => Generation::Gfx11,
            Self::Gfx1200 | Self::Gfx1201 => Generation::Gfx12,
        }
    }

    /// Its counter blocks, ascending by id.
    pub const fn blocks(self) -> &'static [Block] {
        tables::blocks(self)
    }

    /// The block with this id, if the chip has it.
    pub fn block(self, id: crate::BlockId) -> Option<&'static Block> {
        let blocks = self.blocks();
        blocks.binary_search_by_key(&id, |block| block.id).ok().map(|index| &blocks[index])
    }

    /// The block with this table name, if the chip has it.
    pub fn block_named(self, name: &str) -> Option<&'static Block> {
        self.blocks().iter().find(|block| block.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The prefix order of ROCm/rocm-systems projects/aqlprofile/src/core/pm4_factory.h.
    #[test]
    fn gfx_names_pick_targets_by_prefix() {
        assert_eq!(Target::from_gfxip("gfx90a:sramecc+:xnack-"), Some(Target::Gfx90a));
        assert_eq!(Target::from_gfxip("gfx900"), Some(Target::Gfx906));
        assert_eq!(Target::from_gfxip("gfx941"), Some(Target::Gfx942));
        assert_eq!(Target::from_gfxip("gfx1102"), Some(Target::Gfx1100));
        assert_eq!(Target::from_gfxip("gfx1201"), Some(Target::Gfx1201));
        assert_eq!(Target::from_gfxip("gfx803"), None);
        assert_eq!(Target::from_gfxip("gfx90c"), None);
    }

    #[test]
    fn every_target_is_found_by_its_own_name() {
        for target in Target::ALL {
            assert_eq!(Target::from_gfxip(target.gfxip()), Some(target));
        }
    }

    #[test]
    fn blocks_are_sorted_so_that_every_id_is_found() {
        for target in Target::ALL {
            for block in target.blocks() {
                assert_eq!(target.block(block.id).map(|found| found.name), Some(block.name));
            }
        }
    }
}
