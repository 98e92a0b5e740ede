//! The built-in trace program.

use std::sync::Arc;

use super::config::{Settings, TraceConfig};
use super::instance::BuiltinTraceInstance;
use super::layout::TraceLayout;
use super::{start, stop};
use crate::agent::{AgentShape, Chip};
use crate::commands::{Commands, Emitter};
use crate::error::Error;
use crate::memory::Memory;
use crate::program::{TraceInstance, TraceProgram};

/// The control buffer.
pub(super) const CONTROL: u8 = 0;
/// The first data buffer.
pub(super) const DATA: u8 = 1;

/// The buffer that stands `at` places after the start in the ring: the extra ones, then the first.
pub(super) fn ring_buffer(layout: &TraceLayout, at: u32) -> u8 {
    let place = at % layout.buffers;
    if place + 1 == layout.buffers { DATA } else { DATA + 1 + place as u8 }
}

/// A trace on an agent, by our own packets.
#[derive(Clone, Debug)]
pub struct BuiltinTrace(pub(super) Arc<Plan>);

/// Everything that instances share.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) chip: Chip,
    pub(super) layout: TraceLayout,
    pub(super) start: Commands,
    pub(super) stop: Commands,
}

/// More data buffers than any streaming needs, and few enough for a byte to number them.
const MOST_BUFFERS: u32 = 128;

impl BuiltinTrace {
    /// Makes the program.
    ///
    /// # Errors
    /// Those of [`PacketPrograms::trace`](crate::PacketPrograms::trace).
    pub fn new(agent: &AgentShape, config: &TraceConfig) -> Result<Self, Error> {
        let chip = agent.chip()?;
        let settings = Settings::new(&chip, config)?;
        if settings.buffers > MOST_BUFFERS {
            return Err(Error::TraceBuffers { buffers: settings.buffers, mask: settings.se_mask });
        }
        let layout = TraceLayout::new(&chip, &settings)?;
        let mut emit = Emitter::new(&chip);
        start::start(&mut emit, &settings, &layout);
        let start = emit.finish()?;
        let mut emit = Emitter::new(&chip);
        stop::stop(&mut emit, &settings, &layout);
        let stop = emit.finish()?;
        Ok(Self(Arc::new(Plan { chip, layout, start, stop })))
    }

    /// The start commands; buffer 0 is the control buffer, 1 the data buffer, the further ones follow.
    pub fn start_commands(&self) -> &Commands {
        &self.0.start
    }

    /// The stop commands, with the same buffers.
    pub fn stop_commands(&self) -> &Commands {
        &self.0.stop
    }

    /// Size of the allocation for commands.
    pub fn command_bytes(&self) -> u64 {
        self.0.start.padded_bytes() + self.0.stop.padded_bytes()
    }
}

impl TraceProgram for BuiltinTrace {
    fn layout(&self) -> &TraceLayout {
        &self.0.layout
    }

    fn instance(&self, memory: &Arc<dyn Memory>) -> Result<Box<dyn TraceInstance>, Error> {
        let instance = BuiltinTraceInstance::new(&self.0, memory)?;
        Ok(Box::new(instance))
    }
}
