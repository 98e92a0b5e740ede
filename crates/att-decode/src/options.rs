//! What to deliver, and what to do about damage and size.

use crate::record::{RecordKind, RecordSet};

/// How a chunk is decoded.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Kinds of record to deliver. Work for kinds that are left out is left out too.
    pub records: RecordSet,
    /// Kinds to deliver one by one as they are made, of those in [`RecordSet::IMMEDIATE`].
    pub immediate: RecordSet,
    /// What happens at damage that can be recognised.
    pub recovery: Recovery,
    /// How much may be kept in memory.
    pub limits: Limits,
}

impl Default for Options {
    /// Everything the public decoder delivers, in blocks, as it would.
    fn default() -> Self {
        Options::of(RecordSet::ALL.without(RecordKind::Loss))
    }
}

impl Options {
    /// These kinds, in blocks, as the public decoder would.
    pub const fn of(records: RecordSet) -> Self {
        Options {
            records,
            immediate: RecordSet::NONE,
            recovery: Recovery::AsPublicDecoder,
            limits: Limits::NONE,
        }
    }

    /// For streams of any length: records leave as soon as they can, losses are told, memory is bounded.
    pub fn streaming() -> Self {
        Options {
            records: RecordSet::ALL,
            immediate: RecordSet::IMMEDIATE,
            recovery: Recovery::AsPublicDecoder,
            limits: Limits::STREAMING,
        }
    }
}

/// What happens at damage that can be recognised: patterns that no token has, headers of another generation, clock
/// steps of days, wave slots that do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// What the public decoder does: read on as if nothing was wrong; end a gfx9 chunk with an error.
    #[default]
    AsPublicDecoder,
    /// Look for the next place from which the stream reads sensibly, go on there, and tell what was skipped.
    Resync,
}

/// How much may be kept in memory. What exceeds a limit is left out and told as a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Entries of each list of a wave: instructions, timeline, program counters.
    pub wave_entries: u32,
    /// Waves on one slot that have no end.
    pub open_waves: u32,
    /// Code objects loaded at a time.
    pub code_objects: u32,
    /// Tokens of one time held back for their order (gfx10, gfx11).
    pub held_tokens: u32,
    /// Counter samples held back (gfx9).
    pub counter_samples: u32,
    /// Bytes to read ahead for the time after a reset (gfx9).
    pub look_ahead: u32,
}

impl Limits {
    /// None: memory grows with the chunk.
    pub const NONE: Limits = Limits {
        wave_entries: u32::MAX,
        open_waves: u32::MAX,
        code_objects: u32::MAX,
        held_tokens: u32::MAX,
        counter_samples: u32::MAX,
        look_ahead: u32::MAX,
    };

    /// Far above what real traces need.
    pub const STREAMING: Limits = Limits {
        wave_entries: 1 << 18,
        open_waves: 4,
        code_objects: 1 << 12,
        held_tokens: 1 << 12,
        counter_samples: 1 << 16,
        look_ahead: 1 << 20,
    };
}
