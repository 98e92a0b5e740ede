//! The seam: packet programs and their instances, whoever makes them.
//!
//! A *program* is what a configuration means on an agent; making one checks every limit and allocates nothing
//! on the GPU. An *instance* of it owns memory that packets refer to and may be in flight once at a time.

use std::ops::ControlFlow;
use std::sync::Arc;

use wavescope_core::AqlPacket;
use wavescope_pm4::BlockId;

use crate::agent::AgentShape;
use crate::counters::{Sample, Warning};
use crate::dimensions::Dimensions;
use crate::error::Error;
use crate::event::Event;
use crate::memory::{Buffer, Memory};
use crate::status::Status;
use crate::trace::{BufferPackets, BufferStatus, CodeObjectMarker, TraceConfig, TraceLayout, TraceReadback};

/// A maker of packet programs: [`Builtin`](crate::Builtin) or [`Native`](crate::Native). Both write the same
/// bytes and refuse the same requests.
///
/// Packets come with header and completion signal 0: the caller sets the header (type vendor-specific, barrier,
/// fences) and the signal. Start needs no barrier; read and stop wait for the kernel and want one.
pub trait PacketPrograms: Send + Sync {
    /// Who makes them, for messages.
    fn origin(&self) -> String;

    /// A program that counts `events` on `agent`.
    ///
    /// # Errors
    /// An unsupported agent; an unknown block; more events than counters; flags without accumulation; an empty
    /// set. Instances are not checked here, see [`validate`].
    fn counters(&self, agent: &AgentShape, events: &[Event]) -> Result<Arc<dyn CounterProgram>, Error>;

    /// A program that takes a thread trace on `agent`.
    ///
    /// # Errors
    /// An unsupported agent; an unknown or impossible parameter; a trace buffer outside the limits.
    fn trace(&self, agent: &AgentShape, config: &TraceConfig) -> Result<Arc<dyn TraceProgram>, Error>;

    /// A packet that puts a code object's load or unload into the trace running on its agent.
    ///
    /// # Errors
    /// An unsupported agent; the allocator's refusal.
    fn marker(
        &self,
        agent: &AgentShape,
        marker: &CodeObjectMarker,
        memory: &Arc<dyn Memory>,
    ) -> Result<Box<dyn MarkerInstance>, Error>;
}

/// Checks what upstream's `aqlprofile_validate_pmc_event` checks: that the agent has the block and the instance.
///
/// # Errors
/// [`Error::UnknownBlock`], [`Error::UnknownInstance`], and those of [`AgentShape::chip`].
pub fn validate(agent: &AgentShape, event: Event) -> Result<(), Error> {
    let chip = agent.chip()?;
    let gfxip = chip.target.gfxip();
    let block = chip.target.block(event.block).ok_or(Error::UnknownBlock { gfxip, block: event.block })?;
    if event.instance < block.instances {
        Ok(())
    } else {
        Err(Error::UnknownInstance { event, block: block.name, instances: block.instances })
    }
}

/// The dimensions of a block's values on an agent.
///
/// # Errors
/// [`Error::UnknownBlock`] and those of [`AgentShape::chip`].
pub fn dimensions(agent: &AgentShape, block: BlockId) -> Result<Dimensions, Error> {
    let chip = agent.chip()?;
    let gfxip = chip.target.gfxip();
    let found = chip.target.block(block).ok_or(Error::UnknownBlock { gfxip, block })?;
    Ok(Dimensions::of(&chip, found))
}

/// What a set of events means on an agent.
pub trait CounterProgram: Send + Sync {
    /// The events that are reported. With accumulation they are sorted; internal ones are left out.
    fn events(&self) -> &[Event];

    /// Every value of a read, in the order in which it is reported.
    fn samples(&self) -> &[Sample];

    /// What will not count as one would think.
    fn warnings(&self) -> &[Warning];

    /// Size of the output buffer.
    fn output_bytes(&self) -> u64;

    /// Allocates an instance: output, then commands.
    ///
    /// # Errors
    /// [`Error::Allocation`]; what was allocated before it is freed.
    fn instance(&self, memory: &Arc<dyn Memory>) -> Result<Box<dyn CounterInstance>, Error>;
}

/// One counter program with memory of its own. Dropping it frees the memory, output first.
pub trait CounterInstance: Send {
    /// The packet that selects and starts the counters.
    fn start(&self) -> AqlPacket;

    /// The packet that samples them into the output buffer; they count on.
    fn read(&self) -> AqlPacket;

    /// The packet that stops them.
    fn stop(&self) -> AqlPacket;

    /// Address and size of the output buffer.
    fn output(&self) -> (u64, u64);

    /// Sets the output to zero. Upper halves of 32-bit counters are never written: do this before reuse.
    fn clear(&self);

    /// Calls `each` with the samples and their values in order, until it breaks.
    ///
    /// # Errors
    /// [`Error::Callback`] when `each` breaks with a status other than success or break.
    fn iterate(&self, each: &mut dyn FnMut(&Sample, u64) -> ControlFlow<Status>) -> Result<(), Error>;

    /// Makes another instance in the same memory: own output and read commands, while start and stop commands
    /// are shared where the implementation can.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    fn sibling(&self) -> Result<Box<dyn CounterInstance>, Error>;
}

/// What a trace configuration means on an agent.
pub trait TraceProgram: Send + Sync {
    /// Where each engine's data go and how large everything is.
    fn layout(&self) -> &TraceLayout;

    /// Allocates an instance: control, data (and further data buffers), then commands.
    ///
    /// # Errors
    /// [`Error::Allocation`]; [`Error::MisalignedTraceBuffer`].
    fn instance(&self, memory: &Arc<dyn Memory>) -> Result<Box<dyn TraceInstance>, Error>;
}

/// One trace program with memory of its own. Dropping it frees the memory: control, data, commands.
pub trait TraceInstance: Send {
    /// The packet that begins the trace.
    fn start(&self) -> AqlPacket;

    /// The packet that ends it and records how much was written.
    fn stop(&self) -> AqlPacket;

    /// Address and size of the control buffer. It must be zero before each start.
    fn control(&self) -> (u64, u64);

    /// Address and size of each data buffer; the first is the one that start uses.
    fn data(&self) -> Vec<(u64, u64)>;

    /// Reads the control buffer after the stop packet has completed: which bytes each engine wrote.
    fn readback(&self) -> TraceReadback;

    /// Copies each engine's data out and passes them on, with the generation's header in front where it has one.
    /// Returns the status of the trace as a whole; an error in it stops nothing. With several buffers, the data are
    /// those of the last one, and counting of swaps begins anew.
    fn iterate(&self, each: &mut dyn FnMut(u32, &[u8])) -> Status;

    /// With several buffers: the packets that poll and swap those of an engine. Their commands live as long as
    /// the instance.
    ///
    /// # Errors
    /// [`Error::NoBufferRing`] where the engine has one buffer; [`Error::Allocation`].
    fn buffer_packets(&mut self, se: u32) -> Result<BufferPackets, Error>;

    /// With several buffers: what the last poll packet found, counting a swap when one is due.
    ///
    /// # Errors
    /// [`Error::NoBufferRing`].
    fn buffer_status(&mut self, se: u32) -> Result<BufferStatus, Error>;
}

/// A code-object marker with the memory of its commands.
pub trait MarkerInstance: Send {
    /// The packet.
    fn packet(&self) -> AqlPacket;

    /// The memory that the packet refers to; `None` where a library owns it.
    fn buffer(&self) -> Option<&Buffer>;
}
