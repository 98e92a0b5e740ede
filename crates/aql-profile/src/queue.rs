//! The small packets that a new queue gets so that its work is counted at all.
//!
//! Upstream: `hsa_ven_amd_aqlprofile_get_info`, attributes 6, 7 and 8.

use std::sync::Arc;

use wavescope_core::AqlPacket;
use wavescope_pm4::RegisterName;

use crate::agent::AgentShape;
use crate::commands::{Commands, Emitter, carrier, upload};
use crate::error::Error;
use crate::memory::{Buffer, BufferFlags, Memory};

/// What a queue packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueCommand {
    /// Lets the work of the queue's pipe be counted.
    Enable,
    /// Keeps it from being counted.
    Disable,
    /// Waits until the queue's compute work is idle.
    WaitIdle,
}

/// The commands of a queue packet; they refer to no buffer.
///
/// # Errors
/// Those of [`AgentShape::chip`].
pub fn queue_commands(agent: &AgentShape, command: QueueCommand) -> Result<Commands, Error> {
    let chip = agent.chip()?;
    let mut emit = Emitter::new(&chip);
    match command {
        QueueCommand::Enable => emit.set_sh(RegisterName::ComputePerfcountEnable, 1),
        QueueCommand::Disable => emit.set_sh(RegisterName::ComputePerfcountEnable, 0),
        QueueCommand::WaitIdle => emit.idle(),
    }
    emit.finish()
}

/// A queue packet with its commands in memory.
#[derive(Debug)]
pub struct QueuePacket {
    /// The packet; header and completion signal are the caller's.
    pub packet: AqlPacket,
    /// Its commands.
    pub buffer: Buffer,
}

impl QueuePacket {
    /// Allocates and fills the commands.
    ///
    /// # Errors
    /// Those of [`AgentShape::chip`]; [`Error::Allocation`].
    pub fn new(agent: &AgentShape, command: QueueCommand, memory: &Arc<dyn Memory>) -> Result<Self, Error> {
        let commands = queue_commands(agent, command)?;
        let buffer = Buffer::allocate(memory, commands.bytes(), BufferFlags::COMMANDS)?;
        upload(memory, &commands, &[], buffer.address(), &mut Vec::new());
        let generation = agent.chip()?.generation;
        let packet = carrier(generation, buffer.address(), commands.dwords().len() as u32);
        Ok(Self { packet, buffer })
    }
}
