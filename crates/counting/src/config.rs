//! What to count on an agent: a checked set of counters and its packet program.

use std::sync::Arc;

use wavescope_aql_profile::{AgentShape, CounterProgram, Event, Memory, PacketPrograms, dimensions};
use wavescope_core::{Agent, AgentId, CounterId, CounterRecord, GfxTarget, Position};
use wavescope_pm4::Block;

use crate::Error;
use crate::catalogue::{BaseCounter, Catalogue};
use crate::places::places;
use crate::pool::Pool;

/// A set of counters of one agent. Making one checks every limit; dispatches then only take an instance of its packet
/// program.
pub struct CounterConfig {
    agent: AgentId,
    shape: AgentShape,
    counters: Vec<CounterId>,
    program: Arc<dyn CounterProgram>,
    /// Counter and place of each sample of a read, in its order.
    places: Vec<(CounterId, Position)>,
    memory: Arc<dyn Memory>,
    pub(crate) pool: Pool,
}

/// How many program instances a configuration makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSize(
    /// Instances that exist at most while one queue counts, at least 1. Queues that come while others have them all get
    /// their share beyond it: `n` at once have at most this times `1 + 1/2 + ... + 1/n`, or one each.
    pub u32,
);

impl Default for PoolSize {
    /// Enough that a queue which is fed without pause waits for the host once in 64 dispatches.
    fn default() -> Self {
        Self(128)
    }
}

impl CounterConfig {
    /// Counts `names` on `agent`. The order of the names and names given twice do not matter.
    ///
    /// # Errors
    /// [`Error::NoCatalogue`], [`Error::UnknownCounter`], [`Error::Derived`], [`Error::OverCapacity`], [`Error::Empty`] or
    /// [`Error::Program`].
    pub fn new(
        agent: &Agent,
        names: &[&str],
        programs: &dyn PacketPrograms,
        memory: Arc<dyn Memory>,
        pool: PoolSize,
    ) -> Result<Arc<Self>, Error> {
        let catalogue = Catalogue::of(agent.target)
            .ok_or(Error::NoCatalogue { agent: agent.id, target: agent.target })?;
        let chosen = choose(catalogue, agent.target, names)?;
        let shape = shape_of(agent);
        let failed = |source| Error::Program { agent: agent.id, source };
        let chip = shape.chip().map_err(failed)?;
        let mut events = Vec::new();
        let mut owners = Vec::new();
        for (id, counter) in &chosen {
            // Every block of the catalogue is in the chip's table: a test of the catalogue holds it to that.
            let block = chip.target.block_named(counter.block).ok_or(Error::Empty)?;
            let instances = dimensions(&shape, block.id).map_err(failed)?.instances();
            for instance in 0..instances {
                events.push(event_of(counter, block, instance));
                owners.push(*id);
            }
        }
        check_capacity(&chosen, agent.target, |name| chip.target.block_named(name))?;
        let program = programs.counters(&shape, &events).map_err(failed)?;
        let places = places(&*program, &shape, &events, &owners).map_err(failed)?;
        let counters = chosen.iter().map(|(id, _)| *id).collect();
        let pool = Pool::new(pool.0);
        Ok(Arc::new(Self { agent: agent.id, shape, counters, program, places, memory, pool }))
    }

    /// The agent it counts on.
    pub fn agent(&self) -> AgentId {
        self.agent
    }

    /// The counters, by name.
    pub fn counters(&self) -> &[CounterId] {
        &self.counters
    }

    /// Counter and place of each value of a dispatch, in the order of its records.
    pub fn places(&self) -> &[(CounterId, Position)] {
        &self.places
    }

    pub(crate) fn program(&self) -> &dyn CounterProgram {
        &*self.program
    }

    pub(crate) fn memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }

    pub(crate) fn shape(&self) -> &AgentShape {
        &self.shape
    }

    /// The records of one read whose values are `values`, in the program's order.
    pub(crate) fn records(&self, values: impl Iterator<Item = u64>) -> Vec<CounterRecord> {
        let places = self.places.iter();
        places
            .zip(values)
            .map(|(&(counter, position), value)| CounterRecord { counter, position, value: value as f64 })
            .collect()
    }
}

impl std::fmt::Debug for CounterConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.counters.iter().filter_map(|id| Catalogue::name_of(*id)).collect();
        f.debug_struct("CounterConfig")
            .field("agent", &self.agent)
            .field("counters", &names)
            .finish_non_exhaustive()
    }
}

/// The agent as packet programs see it.
pub(crate) fn shape_of(agent: &Agent) -> AgentShape {
    let mut shape = AgentShape::new(
        &agent.target.to_string(),
        agent.xcc_count,
        agent.shader_engines,
        agent.compute_units,
        agent.arrays_per_engine,
    );
    (shape.domain, shape.location_id) = (agent.pci.domain, agent.pci.location_id);
    shape
}

/// The named counters, sorted by name, each once.
fn choose(
    catalogue: &'static Catalogue,
    target: GfxTarget,
    names: &[&str],
) -> Result<Vec<(CounterId, &'static BaseCounter)>, Error> {
    let mut chosen = Vec::with_capacity(names.len());
    for &name in names {
        match (catalogue.id(name), catalogue.base(name), catalogue.derived(name)) {
            (Some(id), Some(counter), _) => chosen.push((id, counter)),
            (_, None, Some(derived)) => {
                return Err(Error::Derived { target, name: derived.name, expression: derived.expression });
            }
            _ => {
                let closest = closest(catalogue, name);
                return Err(Error::UnknownCounter { target, name: name.to_owned(), closest });
            }
        }
    }
    chosen.sort_by_key(|(_, counter)| counter.name);
    chosen.dedup();
    if chosen.is_empty() { Err(Error::Empty) } else { Ok(chosen) }
}

/// A counter whose name begins alike, for a message.
fn closest(catalogue: &Catalogue, name: &str) -> Option<&'static str> {
    let upper = name.to_ascii_uppercase();
    let common =
        |other: &str| other.bytes().zip(upper.bytes()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    let best = catalogue.base_counters().iter().max_by_key(|counter| common(counter.name))?;
    (common(best.name) >= 3).then_some(best.name)
}

fn event_of(counter: &BaseCounter, block: &Block, instance: u32) -> Event {
    let (id, flags) = (counter.event as u32, (counter.event >> 32) as u32);
    Event::new(block.id, id).with_instance(instance).with_flags(flags)
}

/// Refuses more counters of a block than one instance of it has, naming them: later it would only be one event that does
/// not fit.
fn check_capacity(
    chosen: &[(CounterId, &'static BaseCounter)],
    target: GfxTarget,
    block: impl Fn(&str) -> Option<&'static Block>,
) -> Result<(), Error> {
    for (index, (_, first)) in chosen.iter().enumerate() {
        if chosen[..index].iter().any(|(_, other)| other.block == first.block) {
            continue;
        }
        let of_block = chosen.iter().filter(|(_, other)| other.block == first.block);
        let names: Vec<_> = of_block.map(|(_, counter)| counter.name).collect();
        let available = block(first.block).map_or(0, Block::usable_counters);
        if names.len() > available as usize {
            let asked = names.len() as u32;
            return Err(Error::OverCapacity { target, block: first.block, asked, available, names });
        }
    }
    Ok(())
}
