//! A counter event: what a block instance shall count.

use std::fmt;

use wavescope_pm4::BlockId;

/// One event of a counter set (`aqlprofile_pmc_event_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event {
    /// The counter block.
    pub block: BlockId,
    /// Which instance of it.
    pub instance: u32,
    /// The event's number in the block.
    pub id: u32,
    /// Accumulation in bits 2:0 ([`Event::LO_RES`], [`Event::HI_RES`]); 0 for a plain count.
    pub flags: u32,
}

impl Event {
    /// Accumulate the value of the event every four cycles.
    pub const LO_RES: u32 = 1;
    /// Accumulate the value of the event every cycle.
    pub const HI_RES: u32 = 2;

    /// A plain event of instance 0.
    pub const fn new(block: BlockId, id: u32) -> Self {
        Self { block, instance: 0, id, flags: 0 }
    }

    /// The same event of another instance.
    pub const fn with_instance(self, instance: u32) -> Self {
        Self { instance, ..self }
    }

    /// The same event, accumulated.
    pub const fn with_flags(self, flags: u32) -> Self {
        Self { flags, ..self }
    }

    /// The accumulation asked for: flag bits 2:0.
    pub const fn accumulation(self) -> u32 {
        self.flags & 7
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {} of {}[{}]", self.id, self.block, self.instance)?;
        if self.flags != 0 { write!(f, " (flags {:#x})", self.flags) } else { Ok(()) }
    }
}
