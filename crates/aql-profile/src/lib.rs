//! Packet programs: start, read and stop packets for counter sets and thread traces.
//!
//! A packet program turns a configuration (events to count, or trace parameters) into AQL packets for one agent,
//! lays out the memory that they use, and finds the values in it afterwards. [`PacketPrograms`] makes them; its
//! [`Builtin`] implementation writes the packets itself, byte for byte as aqlprofile 7.2.4 does; [`Native`] uses the
//! installed library. [`Choice`] picks one. Programs are made
//! once for each configuration and agent and *instanced* for each use; memory comes from the caller
//! ([`Memory`]).
//!
//! gfx900 and gfx902 follow gfx906's rules, gfx1101 and gfx1102 gfx1100's, other gfx10 and gfx12 chips gfx1030's and
//! gfx1200's: no golden packets exist for those (the counters of gfx900, gfx941, gfx1036 and gfx1102 are compared with the
//! library where a sysroot has it). None exist either for several trace buffers ([`TraceConfig::buffers`]), which are
//! built after the library's later sources.
//!
//! This crate must not know who submits packets, or what a metric is.
//!
//! ```
//! use wavescope_aql_profile::{AgentShape, Builtin, Event, PacketPrograms};
//! use wavescope_pm4::BlockId;
//!
//! let mi210 = AgentShape::new("gfx90a", 1, 8, 104, 1);
//! let program = Builtin.counters(&mi210, &[Event::new(BlockId::SQ, 4)])?;
//! assert_eq!(program.samples().len(), 8); // one for each shader engine
//! # Ok::<(), wavescope_aql_profile::Error>(())
//! ```

mod agent;
mod builtin;
mod choice;
mod commands;
mod counters;
mod dimensions;
mod error;
mod event;
mod ip_discovery;
mod memory;
mod native;
mod program;
mod queue;
mod status;
mod trace;

pub use agent::{AgentShape, Chip};
pub use builtin::Builtin;
pub use choice::{CHOICE_VARIABLE, Choice};
pub use commands::{Commands, Form, Relocation};
pub use counters::{BuiltinCounters, Sample, Warning};
pub use dimensions::{Dimension, DimensionId, Dimensions};
pub use error::Error;
pub use event::Event;
pub use memory::{AllocationRequest, Buffer, BufferFlags, Memory, MemoryHint};
pub use native::Native;
pub use program::{
    CounterInstance, CounterProgram, MarkerInstance, PacketPrograms, TraceInstance, TraceProgram, dimensions,
    validate,
};
pub use queue::{QueueCommand, QueuePacket, queue_commands};
pub use status::Status;
pub use trace::{
    BufferPackets, BufferStatus, BuiltinTrace, CodeObjectMarker, EngineData, EngineLayout, TraceConfig,
    TraceLayout, TraceParameter, TraceReadback, marker_commands, read_control,
};
