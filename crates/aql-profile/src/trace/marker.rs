//! Code-object markers: a load or unload written into the running trace.

use std::sync::Arc;

use wavescope_core::AqlPacket;
use wavescope_pm4::RegisterName;

use super::userdata::CODE_OBJECT;
use crate::agent::AgentShape;
use crate::commands::{Commands, Emitter, carrier};
use crate::error::Error;
use crate::memory::{Buffer, BufferFlags, Memory};
use crate::program::MarkerInstance;

/// A code object that was loaded, or is about to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeObjectMarker {
    /// The id that decoded addresses will name.
    pub id: u64,
    /// Where it is loaded.
    pub address: u64,
    /// Its size in memory.
    pub bytes: u64,
    /// Whether it goes instead of coming.
    pub unload: bool,
    /// Whether it was there before the trace began.
    pub from_start: bool,
}

/// Ids below this fit the last marker; larger ones take two of their own.
const SHORT_IDS: u64 = 1 << 30;

const TAIL: u32 = 0;
const SIZE_LOW: u32 = 1;
const ADDRESS_LOW: u32 = 2;
const ADDRESS_HIGH: u32 = 3;
const SIZE_HIGH: u32 = 4;
const ID_LOW: u32 = 5;
const ID_HIGH: u32 = 6;

/// The commands that write a marker; they refer to no buffer.
///
/// # Errors
/// Those of [`AgentShape::chip`].
pub fn marker_commands(agent: &AgentShape, marker: &CodeObjectMarker) -> Result<Commands, Error> {
    let chip = agent.chip()?;
    let mut emit = Emitter::new(&chip);
    let mut put = |kind: u32, payload: u32| {
        emit.select_all();
        emit.set(RegisterName::SqThreadTraceUserdata2, CODE_OBJECT | kind << 8);
        emit.set(RegisterName::SqThreadTraceUserdata2, payload);
    };
    if !marker.unload {
        put(ADDRESS_LOW, marker.address as u32);
        put(ADDRESS_HIGH, (marker.address >> 32) as u32);
        put(SIZE_LOW, marker.bytes as u32);
        put(SIZE_HIGH, (marker.bytes >> 32) as u32);
    }
    let short_id = if marker.id < SHORT_IDS {
        marker.id as u32
    } else {
        put(ID_LOW, marker.id as u32);
        put(ID_HIGH, (marker.id >> 32) as u32);
        0
    };
    put(TAIL, u32::from(marker.unload) | u32::from(marker.from_start) << 1 | short_id << 2);
    emit.finish()
}

/// A marker with its commands in memory.
pub(crate) struct BuiltinMarker {
    packet: AqlPacket,
    buffer: Buffer,
}

impl BuiltinMarker {
    /// Allocates exactly the commands' size and fills it from the host.
    pub(crate) fn new(
        agent: &AgentShape,
        marker: &CodeObjectMarker,
        memory: &Arc<dyn Memory>,
    ) -> Result<Self, Error> {
        let commands = marker_commands(agent, marker)?;
        let buffer = Buffer::allocate(memory, commands.bytes(), BufferFlags::MARKER)?;
        let mut bytes = Vec::new();
        commands.resolve(&[], &mut bytes);
        memory.store(buffer.address(), &bytes);
        let generation = agent.chip()?.generation;
        let packet = carrier(generation, buffer.address(), commands.dwords().len() as u32);
        Ok(Self { packet, buffer })
    }
}

impl MarkerInstance for BuiltinMarker {
    fn packet(&self) -> AqlPacket {
        self.packet
    }

    fn buffer(&self) -> Option<&Buffer> {
        Some(&self.buffer)
    }
}
