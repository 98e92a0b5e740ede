//! What a counter set will not deliver, though upstream's library accepts it.

use wavescope_pm4::{Attributes, Generation};

use super::expand::Expanded;
use super::read::is_per_wgp;
use super::registers::DIE_CONTROLLED;
use crate::agent::Chip;
use crate::event::Event;

/// A defect of the hardware interface or of upstream's sequences that byte-identical commands share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Events of I/O-die blocks are mixed with others: their values are attributed wrongly. Collect them alone.
    MixedDieBlocks,
    /// The event's id never reaches the hardware, which counts event 0 (gfx9 SX and GDS).
    EventIgnored(Event),
    /// The block is never enabled, its values mean nothing (GUS).
    NeverEnabled(Event),
    /// Both arrays' values are array 0's (gfx12 GL1A).
    ArraysReadTwice(Event),
    /// The instance does not exist; the hardware sees its lower bits.
    NoSuchInstance(Event),
    /// Values have coordinates in common: the block is read once for each work-group processor, which its
    /// dimensions leave out.
    AmbiguousCoordinates(Event),
    /// The counter has 32 bits; its upper half is never written, so the output must be zero before each read.
    UpperHalfUnwritten(Event),
}

/// Collects the warnings of a set.
pub(super) fn warnings(chip: &Chip, set: &Expanded) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let on_die = |is: bool| set.counters.iter().any(|counter| counter.is(DIE_CONTROLLED) == is);
    if on_die(true) && on_die(false) {
        warnings.push(Warning::MixedDieBlocks);
    }
    let reported = set.requested.iter().zip(&set.counters).filter(|(entry, _)| !entry.internal);
    for (entry, counter) in reported {
        let (event, block) = (entry.event, counter.block);
        let newest = chip.generation == Generation::Gfx12;
        let mut warn = |applies: bool, warning| {
            if applies {
                warnings.push(warning);
            }
        };
        warn(block.select.event_mask == 0 && event.id != 0, Warning::EventIgnored(event));
        warn(counter.is(Attributes::GUS), Warning::NeverEnabled(event));
        let one_selection = newest && block.instances == 1 && !counter.is(Attributes::WGP);
        warn(one_selection && counter.is(Attributes::SA), Warning::ArraysReadTwice(event));
        warn(event.instance >= block.instances, Warning::NoSuchInstance(event));
        let hidden_wgp = is_per_wgp(chip.generation, block.attributes) && !counter.is(Attributes::SQ);
        warn(hidden_wgp, Warning::AmbiguousCoordinates(event));
        let half = chip.generation == Generation::Gfx11 && counter.is(Attributes::SQ);
        warn(half, Warning::UpperHalfUnwritten(event));
    }
    warnings
}
