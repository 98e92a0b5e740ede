//! From events to the counters that count them.
//!
//! Rules: ROCm/rocm-systems `projects/aqlprofile/src/core/counters.cpp` and `memorymanager.hpp`, 7.2.4.

use std::collections::BTreeMap;

use wavescope_pm4::{Attributes, Block, BlockId, Generation, Target};

use crate::agent::Chip;
use crate::error::Error;
use crate::event::Event;

/// Ids from here on are placeholders on SPI: they take output space but program nothing.
const SPI_PLACEHOLDERS: u32 = 0x100_0000;

/// An event of the expanded list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requested {
    pub(super) event: Event,
    /// Takes counter and output but is not reported.
    pub(super) internal: bool,
}

/// A counter that is programmed, or a placeholder for one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    pub(super) block: &'static Block,
    pub(super) instance: u32,
    /// Which counter of the instance.
    pub(super) index: u32,
    /// What is selected: the event's id, or the accumulate event.
    pub(super) select_id: u32,
    pub(super) placeholder: bool,
}

/// What a list of events becomes.
#[derive(Debug)]
pub(super) struct Expanded {
    /// One entry for each output place, in output order.
    pub(super) requested: Vec<Requested>,
    /// One entry for each requested event, then what the generation adds.
    pub(super) counters: Vec<Counter>,
}

impl Expanded {
    /// The attributes of all counters together.
    pub(super) fn attributes(&self) -> Attributes {
        let all = self.counters.iter().map(|counter| counter.block.attributes);
        all.fold(Attributes::default(), Attributes::union)
    }
}

/// Assigns counters to events.
pub(super) fn expand(chip: &Chip, events: &[Event]) -> Result<Expanded, Error> {
    let mut requested = with_internal_copies(events);
    let mut allocator = Allocator { chip, used: BTreeMap::new() };
    let mut counters = Vec::with_capacity(requested.len() + 1);
    for entry in &mut requested {
        let counter = allocator.counter(entry.event)?;
        entry.internal |= counter.placeholder;
        counters.push(counter);
    }
    let has_grbm = counters.iter().any(|counter: &Counter| counter.block.attributes.has(Attributes::GRBM));
    if chip.generation == Generation::Gfx10 && !has_grbm {
        counters.push(allocator.counter(Event::new(BlockId::GRBM, 0))?);
    }
    Ok(Expanded { requested, counters })
}

/// An accumulating counter sums what the counter before it shows: each flagged event gets a plain copy that
/// sorts directly before it, unless the list already has one. Without flags the caller's order is kept.
fn with_internal_copies(events: &[Event]) -> Vec<Requested> {
    let mut list: Vec<_> = events.iter().map(|&event| Requested { event, internal: false }).collect();
    if events.iter().all(|event| event.flags == 0) {
        return list;
    }
    let order = |entry: &Requested| (entry.event, !entry.internal);
    list.sort_by_key(order);
    let mut copies = Vec::new();
    for (at, entry) in list.iter().enumerate() {
        let plain = entry.event.with_flags(0);
        let before = at.checked_sub(1).map(|at| list[at].event);
        // Decided on the sorted list before any copy is in it, as upstream does.
        if entry.event.flags != 0 && before != Some(plain) {
            copies.push(Requested { event: plain, internal: true });
        }
    }
    list.append(&mut copies);
    list.sort_by_key(order);
    list
}

struct Allocator<'c> {
    chip: &'c Chip,
    /// Counters taken, by (counter group, instance).
    used: BTreeMap<(u32, u32), u32>,
}

impl Allocator<'_> {
    fn counter(&mut self, event: Event) -> Result<Counter, Error> {
        let target = self.chip.target;
        let gfxip = target.gfxip();
        let block = target.block(event.block).ok_or(Error::UnknownBlock { gfxip, block: event.block })?;
        let used = self.used.entry((block.counter_group, event.instance)).or_default();
        let index = *used;
        let mut counter =
            Counter { block, instance: event.instance, index, select_id: event.id, placeholder: false };
        if block.attributes.has(Attributes::SPI) && event.id >= SPI_PLACEHOLDERS {
            return Ok(Counter { placeholder: true, ..counter });
        }
        if index >= block.counters {
            return Err(Error::TooManyCounters { event, block: block.name, counters: block.counters });
        }
        counter.select_id = select_id(target, block, event)?;
        if block.counter(event.instance, index).is_none() {
            return Err(Error::NoCounterRegisters { event, block: block.name, counter: index });
        }
        check_die(self.chip, block)?;
        *used += 1;
        Ok(counter)
    }
}

/// The id that is selected, which for accumulation is not the event's own.
fn select_id(target: Target, block: &'static Block, event: Event) -> Result<u32, Error> {
    if event.flags == 0 {
        return Ok(event.id);
    }
    let refused = Error::NoAccumulation { event, block: block.name, gfxip: target.gfxip() };
    if block.id != BlockId::SQ {
        return Err(refused);
    }
    match event.accumulation() {
        Event::LO_RES => accumulate_ids(target).map(|(low, _)| low).ok_or(refused),
        Event::HI_RES => accumulate_ids(target).map(|(_, high)| high).ok_or(refused),
        _ => Ok(event.id),
    }
}

/// Event ids that accumulate the preceding counter: every four cycles, every cycle.
const fn accumulate_ids(target: Target) -> Option<(u32, u32)> {
    match target {
        Target::Gfx908 => Some((1, 158)),
        Target::Gfx90a => Some((1, 185)),
        Target::Gfx942 => Some((1, 184)),
        Target::Gfx950 => Some((1, 200)),
        Target::Gfx1030 | Target::Gfx1100 => Some((1, 1)),
        Target::Gfx906 | Target::Gfx1200 | Target::Gfx1201 => None,
    }
}

/// I/O dies of a package with several XCCs.
pub(super) const DIES: u32 = 4;

fn check_die(chip: &Chip, block: &Block) -> Result<(), Error> {
    if block.attributes.has(Attributes::AID) && chip.xcc > 1 && block.instances < DIES {
        return Err(Error::UnknownDie { block: block.name, instances: block.instances, dies: DIES });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentShape;

    fn chip(gfxip: &str) -> Chip {
        AgentShape::new(gfxip, 1, 4, 64, 1).chip().unwrap()
    }

    fn sq(id: u32, flags: u32) -> Event {
        Event::new(BlockId::SQ, id).with_flags(flags)
    }

    // Both copies of one event that is accumulated in both ways, as recorded from the library on gfx942.
    #[test]
    fn low_and_high_resolution_of_one_event_get_a_copy_each() {
        let events = [sq(4, Event::LO_RES), sq(4, Event::HI_RES)];
        let expanded = expand(&chip("gfx942"), &events).unwrap();
        let listed: Vec<_> =
            expanded.requested.iter().map(|entry| (entry.event.flags, entry.internal)).collect();
        assert_eq!(listed, [(0, true), (0, true), (1, false), (2, false)]);
        let ids: Vec<_> = expanded.counters.iter().map(|counter| counter.select_id).collect();
        assert_eq!(ids, [4, 4, 1, 184]);
    }

    #[test]
    fn sq_and_its_compute_view_share_counters_on_gfx9() {
        let mut events: Vec<_> = (0..8).map(|id| sq(id, 0)).collect();
        events.push(Event::new(BlockId::SQ_CS, 4));
        let error = expand(&chip("gfx942"), &events).unwrap_err();
        assert!(matches!(error, Error::TooManyCounters { .. }), "{error}");
    }

    #[test]
    fn the_ninth_gfx12_sq_counter_is_refused_before_it_aborts() {
        let events: Vec<_> = (0..9).map(|id| sq(id, 0)).collect();
        let error = expand(&chip("gfx1201"), &events).unwrap_err();
        assert!(matches!(error, Error::NoCounterRegisters { counter: 8, .. }), "{error}");
    }

    #[test]
    fn gfx10_adds_a_grbm_counter_once() {
        let expanded = expand(&chip("gfx1030"), &[sq(4, 0)]).unwrap();
        assert_eq!(expanded.requested.len(), 1);
        assert_eq!(expanded.counters[1].block.id, BlockId::GRBM);
        let with_grbm = expand(&chip("gfx1030"), &[Event::new(BlockId::GRBM, 2)]).unwrap();
        assert_eq!(with_grbm.counters.len(), 1);
    }

    #[test]
    fn an_io_die_block_that_cannot_be_dealt_out_is_refused() {
        let chip = AgentShape::new("gfx90a", 2, 8, 104, 1).chip().unwrap();
        let error = expand(&chip, &[Event::new(BlockId(24), 1)]).unwrap_err();
        assert!(matches!(error, Error::UnknownDie { dies: 4, .. }), "{error}");
    }
}
