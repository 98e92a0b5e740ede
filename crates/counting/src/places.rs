//! Which engine, array and processor each value of a read comes from.
//!
//! The packets read the copies of a counter in a fixed order: for each XCC, for each event, engine by engine, array by
//! array, work-group processor by work-group processor. Upstream numbers the values of an event in that order too, but
//! its dimensions take the numbers apart with the work-group processor outermost, and have none for gfx12's TA, TCP and TD,
//! which are read for each: there its positions name other engines than those that were read, or the same for several
//! values. Places here are those that were read. Where there are no work-group processors, the two agree.

use wavescope_aql_profile::{
    AgentShape, Chip, CounterProgram, DimensionId, Dimensions, Error, Event, Sample, dimensions,
};
use wavescope_core::{CounterId, Position};
use wavescope_pm4::{Attributes, Block};

/// Shader arrays that are read of a block that each array has, whatever the chip's count.
const ARRAYS_READ: u64 = 2;

/// Counter and place of each value of a read, in its order. `asked` are the events that were asked for, each of the counter
/// at the same place in `owners`.
pub(crate) fn places(
    program: &dyn CounterProgram,
    shape: &AgentShape,
    asked: &[Event],
    owners: &[CounterId],
) -> Result<Vec<(CounterId, Position)>, Error> {
    let chip = shape.chip()?;
    let mut counts = vec![0; program.events().len()];
    program.samples().iter().for_each(|sample| counts[sample.event as usize] += 1);
    let place = |sample: &Sample| {
        let event = program.events()[sample.event as usize];
        // A program reports what it was asked for and nothing else.
        let owner = asked.iter().position(|other| *other == event).unwrap_or_default();
        let dimensions = dimensions(shape, event.block)?;
        let position = match chip.target.block(event.block) {
            Some(block) if !block.attributes.has(Attributes::AID) => {
                let copies = Copies::of(&chip, block, counts[sample.event as usize]);
                copies.position(&dimensions, sample.counter_id)
            }
            _ => upstream(&dimensions, sample.counter_id),
        };
        Ok((owners[owner], position))
    };
    program.samples().iter().map(place).collect()
}

/// The copies of one instance of a block that are read in one XCC.
struct Copies {
    /// All of them: engines, arrays in each, work-group processors in each.
    count: u64,
    arrays: u64,
    wgps: u64,
}

impl Copies {
    /// `values` is how many values one event has.
    fn of(chip: &Chip, block: &Block, values: u64) -> Self {
        let count = (values / u64::from(chip.xcc)).max(1);
        let engines = if block.attributes.has(Attributes::SE) { u64::from(chip.se_per_xcc()) } else { 1 };
        let arrays = if block.attributes.has(Attributes::SA) { ARRAYS_READ } else { 1 };
        Self { count, arrays, wgps: (count / (engines * arrays)).max(1) }
    }

    /// The place of the value with this number.
    fn position(&self, dimensions: &Dimensions, number: u64) -> Position {
        let instances = u64::from(dimensions.instances()).max(1);
        let (copy, number) = (number % self.count, number / self.count);
        let has = |id| dimensions.as_slice().iter().any(|dimension| dimension.id == id);
        let instance = if has(DimensionId::INSTANCE) { number % instances } else { 0 };
        Position {
            xcc: (number / instances) as u16,
            shader_engine: (copy / (self.arrays * self.wgps)) as u16,
            shader_array: (copy / self.wgps % self.arrays) as u16,
            wgp: (copy % self.wgps) as u16,
            instance: instance as u16,
            ..Position::default()
        }
    }
}

/// The place as upstream's dimensions have it.
fn upstream(dimensions: &Dimensions, number: u64) -> Position {
    let mut position = Position::default();
    for (dimension, &coordinate) in dimensions.as_slice().iter().zip(&dimensions.coordinates(number)) {
        let place = match dimension.id {
            DimensionId::XCD => &mut position.xcc,
            DimensionId::AID => &mut position.aid,
            DimensionId::SE => &mut position.shader_engine,
            DimensionId::SA => &mut position.shader_array,
            DimensionId::WGP => &mut position.wgp,
            _ => &mut position.instance,
        };
        *place = u16::from(coordinate);
    }
    position
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::HashSet;

    use wavescope_aql_profile::{Builtin, PacketPrograms};

    use super::*;
    use crate::catalogue::Catalogue;

    /// Target, XCCs, shader engines, compute units, arrays per engine: `software-gpu.md`, section 5.
    const AGENTS: [(&str, u32, u32, u32, u32); 5] = [
        ("gfx90a", 1, 8, 104, 1),
        ("gfx942", 8, 32, 304, 1),
        ("gfx950", 8, 32, 256, 1),
        ("gfx1100", 1, 6, 96, 2),
        ("gfx1201", 1, 4, 64, 2),
    ];

    // Where upstream's numbering is right, ours is the same; where it is not, ours tells all values apart.
    #[test]
    fn places_agree_with_upstreams_but_for_work_group_processors() {
        let mut told_apart = HashSet::new();
        for (target, xcc, engines, units, arrays) in AGENTS {
            let shape = AgentShape::new(target, xcc, engines, units, arrays);
            for counter in Catalogue::of(target.parse().unwrap()).unwrap().base_counters() {
                let block = shape.chip().unwrap().target.block_named(counter.block).unwrap().id;
                let dimensions = dimensions(&shape, block).unwrap();
                let (id, flags) = (counter.event as u32, (counter.event >> 32) as u32);
                let event = |instance| Event::new(block, id).with_instance(instance).with_flags(flags);
                let events: Vec<_> = (0..dimensions.instances()).map(event).collect();
                let program = Builtin.counters(&shape, &events).unwrap();
                let owners = vec![CounterId(0); events.len()];
                let ours = places(&*program, &shape, &events, &owners).unwrap();
                let theirs: Vec<_> = program
                    .samples()
                    .iter()
                    .map(|sample| (CounterId(0), upstream(&dimensions, sample.counter_id)))
                    .collect();
                let different: HashSet<_> = ours.iter().map(|(_, position)| *position).collect();
                if ours != theirs {
                    told_apart.insert((target, counter.block));
                    assert_eq!(different.len(), ours.len(), "{target} {counter:?}");
                }
            }
        }
        let mut told_apart: Vec<_> = told_apart.into_iter().collect();
        told_apart.sort_unstable();
        assert_eq!(told_apart, [("gfx1100", "SQ"), ("gfx1201", "SQ"), ("gfx1201", "TA")]);
    }
}
