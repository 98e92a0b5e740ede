//! Kinds of record, and sets of them.

use super::Record;

/// Kind of a record. Numbers up to `Marker` are those of the public C decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum RecordKind {
    /// Graphics IP version.
    Gfxip = 0,
    /// Starts and ends of waves.
    Occupancy = 1,
    /// Streamed performance counters.
    PerfEvent = 2,
    /// Waves with their instructions.
    Wave = 3,
    /// Warnings.
    Info = 4,
    /// Points in time.
    Event = 5,
    /// Words written by shaders.
    ShaderData = 6,
    /// Pairs of clocks.
    Realtime = 7,
    /// Real-time clock frequency.
    RtFrequency = 8,
    /// Instructions of other SIMDs.
    OtherSimd = 9,
    /// Dispatches.
    Dispatch = 10,
    /// Shader markers.
    Marker = 11,
    /// Places where data is missing. Not a record of the public decoder.
    Loss = 12,
}

impl Record<'_> {
    /// Kind of this record.
    pub const fn kind(&self) -> RecordKind {
        match self {
            Record::Gfxip(_) => RecordKind::Gfxip,
            Record::Occupancy(_) => RecordKind::Occupancy,
            Record::PerfEvents(_) => RecordKind::PerfEvent,
            Record::Wave(_) => RecordKind::Wave,
            Record::Info(_) => RecordKind::Info,
            Record::Event(_) => RecordKind::Event,
            Record::ShaderData(_) => RecordKind::ShaderData,
            Record::Realtime(_) => RecordKind::Realtime,
            Record::RtFrequency(_) => RecordKind::RtFrequency,
            Record::OtherSimd(_) => RecordKind::OtherSimd,
            Record::Dispatch(_) => RecordKind::Dispatch,
            Record::Markers(_) => RecordKind::Marker,
            Record::Loss(_) => RecordKind::Loss,
        }
    }
}

/// A set of record kinds.
///
/// ```
/// use wavescope_att_decode::{RecordKind, RecordSet};
/// let set = RecordSet::of(&[RecordKind::Occupancy, RecordKind::Info]);
/// assert!(set.contains(RecordKind::Info) && !set.contains(RecordKind::Wave));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSet(u16);

impl RecordSet {
    /// Nothing.
    pub const NONE: RecordSet = RecordSet(0);
    /// Everything.
    pub const ALL: RecordSet = RecordSet((1 << 13) - 1);
    /// The kinds that can be delivered one by one as they are made.
    pub const IMMEDIATE: RecordSet = RecordSet::of(&[
        RecordKind::Occupancy,
        RecordKind::ShaderData,
        RecordKind::Realtime,
        RecordKind::Marker,
    ]);

    /// The set of these kinds.
    pub const fn of(kinds: &[RecordKind]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < kinds.len() {
            bits |= 1 << kinds[at] as u16;
            at += 1;
        }
        RecordSet(bits)
    }

    /// Whether a kind belongs to the set.
    #[inline]
    pub const fn contains(self, kind: RecordKind) -> bool {
        self.0 >> kind as u16 & 1 == 1
    }

    /// Whether anything of it depends on what waves do.
    pub(crate) const fn needs_waves(self) -> bool {
        self.contains(RecordKind::Wave) || self.contains(RecordKind::Info)
    }

    /// Whether nothing of it depends on more than the starts and ends of waves.
    pub(crate) const fn needs_only_occupancy(self) -> bool {
        self.0 & !Self::of(&[RecordKind::Gfxip, RecordKind::Occupancy, RecordKind::RtFrequency]).0 == 0
    }

    /// This set and one kind more.
    pub const fn with(self, kind: RecordKind) -> Self {
        RecordSet(self.0 | 1 << kind as u16)
    }

    /// This set without one kind.
    pub const fn without(self, kind: RecordKind) -> Self {
        RecordSet(self.0 & !(1 << kind as u16))
    }
}
