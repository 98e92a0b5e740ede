//! The world around one device: the runtime's clock, events, memory and queue errors.

use std::sync::{Arc, OnceLock, Weak};

use super::address_map::{AddressMap, GpuSet};
use super::clock::Clock;
use super::event_slots::EventId;
use super::signal;
use crate::{Access, Host, QueueFault, QueueId};

/// Who hears of queue errors.
pub(super) trait QueueErrors: Send + Sync {
    /// Queue `queue` of the GPU with index `gpu` stopped.
    fn queue_error(&self, gpu: usize, queue: QueueId, fault: QueueFault);
}

/// The host of one GPU.
pub(super) struct GpuHost {
    gpu: usize,
    clock: Arc<Clock>,
    map: Arc<AddressMap>,
    /// Filled once the runtime exists; a device cannot fail before it has a queue.
    errors: OnceLock<Weak<dyn QueueErrors>>,
}

impl GpuHost {
    pub(super) fn new(gpu: usize, clock: Arc<Clock>, map: Arc<AddressMap>) -> Self {
        Self { gpu, clock, map, errors: OnceLock::new() }
    }

    /// Says who hears of queue errors. Only the first call counts.
    pub(super) fn report_errors_to(&self, errors: Weak<dyn QueueErrors>) {
        let _ = self.errors.set(errors);
    }
}

// SAFETY: `memory_is_valid` is true for ranges in the address map and for signals and their mailboxes. A range is in
// the map from after it is mapped until before it is unmapped; an application that frees memory which a queue still
// names breaks HSA's rules, and takes that promise over from us. Signals and mailboxes are never unmapped. Locked
// host memory is the application's own and mapped for as long as it keeps it locked.
unsafe impl Host for GpuHost {
    fn clock(&self) -> u64 {
        self.clock.ticks()
    }

    fn skip_to(&self, ticks: u64) -> bool {
        self.clock.skip_to(ticks)
    }

    fn raise_event(&self, _signal: u64, event_id: u32) {
        if let Some(event) = EventId::from_raw(event_id) {
            event.raise();
        }
    }

    fn memory_is_valid(&self, address: u64, bytes: u64, _access: Access) -> bool {
        let (gpu, signals) = (GpuSet::one(self.gpu), signal::memory());
        // First what the thread remembers of either map: misses cost a search each.
        self.map.recalls(gpu, address, bytes)
            || signals.recalls(gpu, address, bytes)
            || self.map.allows(gpu, address, bytes)
            || signals.allows(gpu, address, bytes)
    }

    fn queue_error(&self, queue: QueueId, fault: QueueFault) {
        if let Some(errors) = self.errors.get().and_then(Weak::upgrade) {
            errors.queue_error(self.gpu, queue, fault);
        }
    }
}
