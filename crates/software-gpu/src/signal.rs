//! HSA signals as the packet processor sees them: `amd_signal_t` of `amd_hsa_signal.h`.

use crate::Host;
use crate::memory::{Memory, MemoryFault};

/// Byte offsets in `amd_signal_t` (64 bytes); a signal's handle is its address.
mod offset {
    pub(super) const VALUE: u64 = 8;
    pub(super) const EVENT_MAILBOX_PTR: u64 = 16;
    pub(super) const EVENT_ID: u64 = 24;
    pub(super) const START_TS: u64 = 32;
    pub(super) const END_TS: u64 = 40;
}

/// When a packet ran, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Loads a signal's value.
pub(crate) fn value(memory: &Memory, signal: u64) -> Result<i64, MemoryFault> {
    memory.load_u64(signal.wrapping_add(offset::VALUE)).map(u64::cast_signed)
}

/// Completes a packet on its signal: time stamps, then the value, then mailbox and event.
///
/// The event fields are read before the value falls: whoever sees it fall may free the signal.
pub(crate) fn complete(memory: &Memory, host: &dyn Host, signal: u64, span: Span) -> Result<(), MemoryFault> {
    if signal == 0 {
        return Ok(());
    }
    let at = |offset: u64| signal.wrapping_add(offset);
    let mailbox = memory.load_u64(at(offset::EVENT_MAILBOX_PTR))?;
    let event = memory.load_u32(at(offset::EVENT_ID))?;
    memory.store_u64(at(offset::START_TS), span.start)?;
    memory.store_u64(at(offset::END_TS), span.end)?;
    memory.decrement(at(offset::VALUE))?;
    host.signal_changed(signal);
    if mailbox != 0 {
        memory.store_u64(mailbox, u64::from(event))?;
        host.raise_event(signal, event);
    }
    Ok(())
}
