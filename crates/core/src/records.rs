//! What the services deliver: counter values and pieces of thread trace.

use std::fmt;

use crate::{AgentId, CodeObjectId, Company, ContextId, Dispatch, DispatchId, DispatchTimes, LossReason};

/// A counter of one agent, hardware or derived; numbered by the counting service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterId(pub u32);

impl fmt::Display for CounterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "counter {}", self.0)
    }
}

/// Where in the agent a value was measured. A coordinate that a counter does not have is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Compute die.
    pub xcc: u16,
    /// I/O die quadrant.
    pub aid: u16,
    /// Shader engine within the XCC.
    pub shader_engine: u16,
    /// Shader array within the shader engine.
    pub shader_array: u16,
    /// Work-group processor within the shader array (gfx10 and later).
    pub wgp: u16,
    /// Instance of the block.
    pub instance: u16,
}

/// One value of one counter at one position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterRecord {
    /// Which counter.
    pub counter: CounterId,
    /// Where.
    pub position: Position,
    /// The value, in the counter's own unit (events or cycles, or what a derived expression says).
    pub value: f64,
}

/// All counter values of one dispatch.
#[derive(Clone, Debug, PartialEq)]
pub struct DispatchCounters {
    /// The context that asked.
    pub context: ContextId,
    /// The dispatch.
    pub dispatch: Dispatch,
    /// When the kernel ran, nanoseconds.
    pub times: DispatchTimes,
    /// The value that the dispatch callback attached.
    pub user_data: u64,
    /// The values; empty if the dispatch was lost.
    pub records: Vec<CounterRecord>,
    /// Why there are no values, where that is so.
    pub lost: Option<LossReason>,
    /// Kernels that may have run beside it, and be in the values.
    pub company: Company,
}

/// Facts about one piece of trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkFlags {
    /// The last piece of its shader engine in this delivery.
    pub end: bool,
    /// The GPU ran out of buffer: the trace is cut off behind these data.
    pub gpu_buffer_full: bool,
    /// The host was too slow: trace is missing behind these data.
    pub cpu_buffer_full: bool,
    /// The trace never retired and its data could not be read.
    pub lost: bool,
}

/// A piece of raw thread trace (SQTT) of one shader engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceChunk {
    /// The context that traces.
    pub context: ContextId,
    /// The traced agent.
    pub agent: AgentId,
    /// The traced dispatch; `None` for a trace of the whole device.
    pub dispatch: Option<DispatchId>,
    /// Shader engine, counted over all XCCs.
    pub shader_engine: u32,
    /// Position in the delivery, from 0: per dispatch, or per start of a device trace.
    pub index: u64,
    /// Offset of `data` in the shader engine's stream, bytes.
    pub read_offset: u64,
    /// The value that the dispatch callback attached.
    pub user_data: u64,
    /// End and losses.
    pub flags: ChunkFlags,
    /// The bytes as the GPU wrote them.
    pub data: Vec<u8>,
}

/// A code object loaded on an agent, as trace markers and PC lookup need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedCodeObject {
    /// Its id, also the marker id in the trace.
    pub id: CodeObjectId,
    /// The agent it is loaded on.
    pub agent: AgentId,
    /// Load address, bytes.
    pub base: u64,
    /// Loaded size, bytes.
    pub size: u64,
}
