//! The shared buffers: what was registered, and what of it exists.

use crate::{BufferId, SlotSizes};

/// Alignment of an address that is handed out.
const PAGE: u64 = 4096;
/// Allocated beyond the registered size: up to a page is lost to alignment, and one page stays free behind the
/// buffer, so that the cache flushes at a trace's end reach no neighbour.
const SPARE_BYTES: u64 = 2 * PAGE;

/// The buffers of an agent. A buffer is allocated on first use, once, with the size registered by then.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pub(super) sizes: SlotSizes,
    /// Buffer, raw address.
    allocated: Vec<(BufferId, u64)>,
}

impl Slots {
    /// Bytes to allocate for `buffer`, `None` if it was not registered.
    pub(super) fn allocation(&self, buffer: BufferId) -> Option<u64> {
        self.sizes.size(buffer).map(|bytes| bytes + SPARE_BYTES)
    }

    /// The address handed out for `buffer`, if it exists.
    pub(super) fn address(&self, buffer: BufferId) -> Option<u64> {
        let raw = self.allocated.iter().find(|(allocated, _)| *allocated == buffer)?.1;
        Some(raw.next_multiple_of(PAGE))
    }

    pub(super) fn insert(&mut self, buffer: BufferId, raw: u64) {
        self.allocated.push((buffer, raw));
    }

    /// Empties the table: the caller frees or leaks each.
    pub(super) fn take(&mut self) -> Vec<(BufferId, u64)> {
        std::mem::take(&mut self.allocated)
    }
}
