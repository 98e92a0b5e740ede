//! Events, dispatches and warnings.

use super::Pc;

/// What happened at an [`Event`]. Numbers are those of the public C decoder, which never sends 4 and 14.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum EventKind {
    /// All waves of a pipe are drained.
    CsPartialFlush = 1,
    /// Bottom-of-pipe time stamp.
    BottomOfPipeTs = 2,
    /// Waves save their context.
    SaveContext = 3,
    /// Caches are flushed.
    CacheFlush = 5,
    /// The trace lost packets.
    PacketLoss = 6,
    /// A code object was loaded.
    CodeObjectLoad = 7,
    /// A code object was unloaded.
    CodeObjectUnload = 8,
    /// The trace starts to stall the shader engine.
    TtStallBegin = 9,
    /// The trace stops stalling it.
    TtStallEnd = 10,
    /// The trace is flushed.
    TtFlush = 11,
    /// Power throttling starts.
    DidtStallBegin = 12,
    /// Power throttling ends.
    DidtStallEnd = 13,
    /// Graphics clock rinse.
    GcRinse = 16,
    /// Streaming performance monitor sample.
    SpmSample = 17,
}

/// How to read an [`Event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventFlags(pub u16);

impl EventFlags {
    /// ME and pipe are meaningful.
    pub const PER_PIPE: EventFlags = EventFlags(1);
    /// Bottom of pipe.
    pub const BOP: EventFlags = EventFlags(2);
}

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Shader clock; 0 from the quick scan.
    pub time: i64,
    /// What happened.
    pub kind: EventKind,
    /// Micro-engine.
    pub me_id: u8,
    /// Pipe.
    pub pipe_id: u8,
    /// How to read it.
    pub flags: EventFlags,
    /// Low half of the code object's id for loads and unloads, else 0.
    pub payload: u64,
    /// Offset of the token in the chunk, filled by the quick scan only.
    pub byte_offset: u64,
}

impl Event {
    /// An event of the whole shader engine.
    pub(crate) const fn global(kind: EventKind, time: i64) -> Self {
        Event { time, kind, me_id: 0, pipe_id: 0, flags: EventFlags(0), payload: 0, byte_offset: 0 }
    }

    /// An event of one pipe.
    pub(crate) const fn of_pipe(kind: EventKind, time: i64, me: u8, pipe: u8, flags: EventFlags) -> Self {
        Event { time, kind, me_id: me & 1, pipe_id: pipe, flags, payload: 0, byte_offset: 0 }
    }
}

/// How a dispatch was set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DispatchFlags(pub i32);

impl DispatchFlags {
    /// The scalar cache is invalidated first.
    pub const SCALAR_CACHE_INVALIDATE: DispatchFlags = DispatchFlags(1);
    /// The vector cache is invalidated first.
    pub const VECTOR_CACHE_INVALIDATE: DispatchFlags = DispatchFlags(2);
    /// It restores saved waves.
    pub const CONTEXT_RESTORE: DispatchFlags = DispatchFlags(4);
    /// It uses scratch memory.
    pub const SCRATCH_ENABLED: DispatchFlags = DispatchFlags(8);
}

/// A dispatch as its registers describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dispatch {
    /// Shader clock; 0 from the quick scan.
    pub time: i64,
    /// Micro-engine.
    pub me_id: u8,
    /// Pipe.
    pub pipe_id: u8,
    /// Scalar registers filled by the launcher.
    pub user_sgprs: u16,
    /// How it was set up.
    pub flags: DispatchFlags,
    /// Vector registers per lane.
    pub vgprs: u32,
    /// Scalar registers per wave.
    pub sgprs: u32,
    /// Local data share per work group in bytes.
    pub lds_size: u32,
    /// Thread-dimension registers as written.
    pub thread_dim: [u32; 3],
    /// Address of the dispatch packet, filled by the quick scan only where the stream has it.
    pub dispatch_pkt_addr: u64,
    /// Offset of the token in the chunk, filled by the quick scan only.
    pub byte_offset: u64,
    /// Kernel entry.
    pub entry_point: Pc,
}

/// What the reader of a result must know. Numbers are those of the public C decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Info {
    /// The hardware dropped packets.
    DataLost = 1,
    /// Not every instruction of a wave was found in its program.
    StitchIncomplete = 2,
    /// A wave has no end.
    WaveIncomplete = 3,
}
