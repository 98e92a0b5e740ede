//! Dimensions of a block's values, and the coordinates of one value.

use wavescope_pm4::{Attributes, Block, Generation};

use crate::agent::Chip;

/// A dimension's id in the aqlprofile API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DimensionId(pub u32);

impl DimensionId {
    /// Compute dies.
    pub const XCD: Self = Self(0);
    /// I/O dies; announced by upstream's library, never produced.
    pub const AID: Self = Self(1);
    /// Shader engines of an XCC.
    pub const SE: Self = Self(2);
    /// Shader arrays of an engine.
    pub const SA: Self = Self(3);
    /// Work-group processors of an array.
    pub const WGP: Self = Self(4);
    /// Instances of the block.
    pub const INSTANCE: Self = Self(5);

    /// Every id, in the order in which upstream's library lists them.
    pub const ALL: [Self; 6] = [Self::INSTANCE, Self::WGP, Self::SE, Self::AID, Self::SA, Self::XCD];

    /// The dimension's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XCD => "XCD",
            Self::AID => "AID",
            Self::SE => "SE",
            Self::SA => "SA",
            Self::WGP => "WGP",
            Self::INSTANCE => "INSTANCE",
            _ => "?",
        }
    }
}

/// One dimension of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Which.
    pub id: DimensionId,
    /// Coordinates lie below it.
    pub extent: u32,
}

/// The dimensions of a block's values, outermost first: a counter id is a number in this mixed radix.
///
/// They are upstream's: gfx12 TA, TCP and TD are read once for each work-group processor but have no WGP
/// dimension, so ids beyond the product of the extents name the same coordinates again; gfx12 SQG is read
/// once for each engine but claims a WGP dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimensions {
    dimensions: Vec<Dimension>,
    instances: u32,
}

impl Dimensions {
    /// The dimensions of `block` on `chip`.
    pub fn of(chip: &Chip, block: &Block) -> Self {
        let instances = instance_extent(chip, block);
        let mut dimensions = Vec::with_capacity(4);
        let mut add = |id, extent| dimensions.push(Dimension { id, extent });
        if chip.xcc > 1 {
            add(DimensionId::XCD, chip.xcc);
        }
        let newest = matches!(chip.generation, Generation::Gfx11 | Generation::Gfx12);
        if newest && block.attributes.has(Attributes::SQ) {
            add(DimensionId::WGP, chip.wgps_per_array());
        } else {
            add(DimensionId::INSTANCE, instances);
        }
        if block.attributes.has(Attributes::SE) {
            add(DimensionId::SE, chip.se_per_xcc());
        }
        if block.attributes.has(Attributes::SA) {
            add(DimensionId::SA, chip.sa);
        }
        Self { dimensions, instances }
    }

    /// The dimensions, outermost first.
    pub fn as_slice(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The instance count that counter ids are computed with, also where INSTANCE is no dimension.
    pub const fn instances(&self) -> u32 {
        self.instances
    }

    /// Values that the dimensions tell apart.
    pub fn extent(&self) -> u64 {
        self.dimensions.iter().map(|dimension| u64::from(dimension.extent)).product()
    }

    /// The coordinates of a counter id, in the order of the dimensions; what exceeds them is dropped, and each
    /// is cut to 8 bits, as in upstream's library.
    pub fn coordinates(&self, counter_id: u64) -> Vec<u8> {
        let mut rest = counter_id;
        let mut coordinates = vec![0; self.dimensions.len()];
        for (coordinate, dimension) in coordinates.iter_mut().zip(&self.dimensions).rev() {
            let extent = u64::from(dimension.extent.max(1));
            *coordinate = (rest % extent) as u8;
            rest /= extent;
        }
        coordinates
    }
}

/// Instances as upstream's dimension code counts them: on gfx9, blocks that belong to a compute unit are cut to
/// the units that an array has, plus one.
fn instance_extent(chip: &Chip, block: &Block) -> u32 {
    let per_cu = block.attributes.has(Attributes::TC) && block.attributes.has(Attributes::SE);
    if chip.generation == Generation::Gfx9 && per_cu {
        block.instances.min(chip.cus_per_array() + 1)
    } else {
        block.instances
    }
}
