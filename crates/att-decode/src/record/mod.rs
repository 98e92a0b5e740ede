//! What the decoder delivers.
//!
//! [`Record`] is the whole vocabulary: one variant per kind, blocks as borrowed slices that are valid for the call
//! that delivers them. Layouts of the structures that come in bulk ([`Instruction`], [`Occupancy`], ...) equal those
//! of the public C decoder (`include/rocprof_trace_decoder/trace_decoder_types.h` in ROCm/rocm-systems), so that a C
//! interface can hand them on without a copy.

mod block;
mod event;
mod kind;
mod loss;
mod marker;
mod occupancy;
mod wave;

pub use block::{OtherSimd, PerfEvent, RealtimeSample, ShaderData};
pub use event::{Dispatch, DispatchFlags, Event, EventFlags, EventKind, Info};
pub use kind::{RecordKind, RecordSet};
pub use loss::{Loss, LossKind};
pub use marker::{Marker, MarkerFlags, MarkerKind, MarkerRecordKind};
pub use occupancy::Occupancy;
pub(crate) use occupancy::OccupancyTags;
pub use wave::{Category, Instruction, TimelineEntry, Wave, WaveState};

/// A program counter: an address inside a code object, or an absolute one where the id is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(C)]
pub struct Pc {
    /// Offset from the load address of the code object; the address itself where the id is 0.
    pub address: u64,
    /// Code object that the capture announced, 0 for none.
    pub code_object_id: u64,
}

impl Pc {
    /// No program counter at all.
    pub const INVALID: Pc = Pc { address: 0, code_object_id: 0 };

    /// Whether this names a place.
    pub const fn is_valid(self) -> bool {
        self.address != 0 || self.code_object_id != 0
    }

    /// The place `bytes` further on in the same code object.
    pub const fn offset(self, bytes: i64) -> Pc {
        Pc { address: self.address.wrapping_add_signed(bytes), code_object_id: self.code_object_id }
    }
}

/// One delivery of the decoder.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Record<'a> {
    /// Graphics IP version, once per session: 9, 10, 11 or 12.
    Gfxip(u32),
    /// Starts and ends of waves, in stream order.
    Occupancy(&'a [Occupancy]),
    /// Streamed performance counters (gfx9).
    PerfEvents(&'a [PerfEvent]),
    /// One wave of the traced SIMD with its instructions.
    Wave(Wave<'a>),
    /// Something the reader of the result must know.
    Info(Info),
    /// A point in time: flushes, stalls, losses, code objects.
    Event(Event),
    /// Words written by shaders.
    ShaderData(&'a [ShaderData]),
    /// Pairs of shader and real-time clock.
    Realtime(&'a [RealtimeSample]),
    /// Frequency of the real-time clock in Hz.
    RtFrequency(u64),
    /// Instructions of SIMDs that are not traced.
    OtherSimd(&'a [OtherSimd]),
    /// A dispatch begins.
    Dispatch(Dispatch),
    /// Function entries, exits and points marked by shaders.
    Markers(&'a [Marker<'a>]),
    /// Data that is missing, with its place in the stream.
    Loss(Loss),
}

/// Takes records as they are made.
///
/// Any closure over a [`Record`] is one.
pub trait RecordSink {
    /// Takes one record. What it borrows is valid during the call only.
    fn record(&mut self, record: Record<'_>);
}

impl<F: FnMut(Record<'_>)> RecordSink for F {
    fn record(&mut self, record: Record<'_>) {
        self(record);
    }
}
