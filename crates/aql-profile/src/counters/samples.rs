//! Which value belongs to which event.

use wavescope_pm4::{Attributes, Block};

use super::expand::Expanded;
use super::read::{ARRAYS_READ, is_per_wgp};
use crate::agent::Chip;
use crate::dimensions::Dimensions;

/// One value of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Index into the program's events.
    pub event: u32,
    /// Which 8-byte slot of the output holds it.
    pub slot: u32,
    /// Its number among the event's values: a number in the mixed radix of [`Dimensions`].
    pub counter_id: u64,
}

/// Values that one counter of the block has in one XCC.
pub(super) fn samples_per_xcc(chip: &Chip, block: &Block) -> u32 {
    let engines = if block.attributes.has(Attributes::SE) { chip.se_per_xcc() } else { 1 };
    let arrays = if block.attributes.has(Attributes::SA) { ARRAYS_READ } else { 1 };
    let wgps = if is_per_wgp(chip.generation, block.attributes) { chip.wgps_read() } else { 1 };
    engines * arrays * wgps
}

/// Every reported value, in the order of upstream's read-back: XCC by XCC, event by event. Events of I/O-die
/// blocks are counted like the others there though their values come first and once, so in a mixed set values
/// go to the wrong events (`Warning::MixedDieBlocks`).
pub(super) fn samples(chip: &Chip, set: &Expanded) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut slot = 0;
    for xcc in 0..u64::from(chip.xcc) {
        let mut reported = 0;
        for (entry, counter) in set.requested.iter().zip(&set.counters) {
            let count = samples_per_xcc(chip, counter.block);
            if entry.internal {
                slot += count;
                continue;
            }
            let per_instance = u64::from(count);
            let instances = u64::from(Dimensions::of(chip, counter.block).instances());
            let first = instances * per_instance * xcc + u64::from(counter.instance) * per_instance;
            for sample in 0..per_instance {
                samples.push(Sample { event: reported, slot, counter_id: first + sample });
                slot += 1;
            }
            reported += 1;
        }
    }
    samples
}
