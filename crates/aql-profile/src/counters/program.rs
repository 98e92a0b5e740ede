//! The built-in counter program: commands made once, instanced by patching addresses.

use std::sync::Arc;

use super::expand::{Expanded, expand};
use super::instance::BuiltinCounterInstance;
use super::read::{VALUE_BYTES, read};
use super::samples::{Sample, samples, samples_per_xcc};
use super::start::start;
use super::stop::stop;
use super::warning::{Warning, warnings};
use crate::agent::{AgentShape, Chip};
use crate::commands::{Commands, Emitter, Symbol};
use crate::error::Error;
use crate::event::Event;
use crate::memory::Memory;
use crate::program::{CounterInstance, CounterProgram};

/// Which buffer of a counter program is which.
pub(super) const OUTPUT: u8 = 0;

/// Upstream allots this much more than the values need, for gfx10's extra GRBM counter.
const SPARE_BYTES: u64 = 8;

/// A counter set on an agent, by our own packets.
#[derive(Clone, Debug)]
pub struct BuiltinCounters(pub(super) Arc<Plan>);

/// Everything that instances share.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) chip: Chip,
    pub(super) start: Commands,
    pub(super) read: Commands,
    pub(super) stop: Commands,
    pub(super) output_bytes: u64,
    /// Offsets of output dwords that the maker sets to zero.
    pub(super) zeroed: Vec<u64>,
    events: Vec<Event>,
    pub(super) samples: Vec<Sample>,
    warnings: Vec<Warning>,
}

impl BuiltinCounters {
    /// Makes the program.
    ///
    /// # Errors
    /// Those of [`PacketPrograms::counters`](crate::PacketPrograms::counters).
    pub fn new(agent: &AgentShape, events: &[Event]) -> Result<Self, Error> {
        let chip = agent.chip()?;
        let set = expand(&chip, events)?;
        if set.counters.is_empty() {
            return Err(Error::NoEvents);
        }
        let mut emit = Emitter::new(&chip);
        let reading = read(&mut emit, &set, Symbol::start(OUTPUT));
        let read = emit.finish()?;
        let mut emit = Emitter::new(&chip);
        start(&mut emit, &set);
        let start = emit.finish()?;
        let mut emit = Emitter::new(&chip);
        stop(&mut emit, &set);
        let stop = emit.finish()?;
        let plan = Plan {
            start,
            read,
            stop,
            output_bytes: output_bytes(&chip, &set),
            zeroed: reading.zeroed,
            events: reported_events(&set),
            samples: samples(&chip, &set),
            warnings: warnings(&chip, &set),
            chip,
        };
        Ok(Self(Arc::new(plan)))
    }

    /// The start commands; they refer to no buffer.
    pub fn start_commands(&self) -> &Commands {
        &self.0.start
    }

    /// The read commands; they refer to the output (buffer 0).
    pub fn read_commands(&self) -> &Commands {
        &self.0.read
    }

    /// The stop commands; they refer to no buffer.
    pub fn stop_commands(&self) -> &Commands {
        &self.0.stop
    }

    /// Sizes of the two allocations that an instance makes: output, commands.
    pub fn allocation_bytes(&self) -> [u64; 2] {
        let plan = &self.0;
        let commands = plan.read.padded_bytes() + plan.start.padded_bytes() + plan.stop.padded_bytes();
        [plan.output_bytes, commands]
    }
}

fn output_bytes(chip: &Chip, set: &Expanded) -> u64 {
    let requested = set.requested.iter().zip(&set.counters);
    let values = requested.map(|(_, counter)| u64::from(samples_per_xcc(chip, counter.block) * chip.xcc));
    SPARE_BYTES + values.sum::<u64>() * VALUE_BYTES
}

fn reported_events(set: &Expanded) -> Vec<Event> {
    set.requested.iter().filter(|entry| !entry.internal).map(|entry| entry.event).collect()
}

impl CounterProgram for BuiltinCounters {
    fn events(&self) -> &[Event] {
        &self.0.events
    }

    fn samples(&self) -> &[Sample] {
        &self.0.samples
    }

    fn warnings(&self) -> &[Warning] {
        &self.0.warnings
    }

    fn output_bytes(&self) -> u64 {
        self.0.output_bytes
    }

    fn instance(&self, memory: &Arc<dyn Memory>) -> Result<Box<dyn CounterInstance>, Error> {
        let instance = BuiltinCounterInstance::new(&self.0, memory)?;
        Ok(Box::new(instance))
    }
}
