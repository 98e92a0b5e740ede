//! The world around one device of the model: clock, events, page tables, and where a queue's error is reported.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wavescope_software_gpu::{Access, Host, QueueFault, QueueId};

use super::address_map::AddressMap;
use super::clock;
use super::exceptions::Report;
use super::watch::Watch;
use crate::events;

/// `KFD_MEM_ERR_NO_RAS` and the word of `kfd_memory_exception_failure.NotPresent`.
const NOT_PRESENT: u64 = 1;
/// Second dword of the same structure: write access to a read-only page.
const READ_ONLY: u64 = 1 << 32;
/// `KFD_HW_EXCEPTION_PER_ENGINE_RESET` with `KFD_HW_EXCEPTION_GPU_HANG`.
const ENGINE_RESET: u64 = 1;

/// One GPU's surroundings.
pub(super) struct GpuHost {
    gpu: usize,
    gpu_id: u32,
    map: Arc<AddressMap>,
    watch: Arc<Watch>,
    /// Where the driver sees the GPU's doorbells.
    doorbells: Range<u64>,
    /// Where each queue's errors are reported.
    reports: Mutex<HashMap<QueueId, Report>>,
}

impl GpuHost {
    pub(super) fn new(
        gpu: usize,
        gpu_id: u32,
        map: Arc<AddressMap>,
        watch: Arc<Watch>,
        doorbells: Range<u64>,
    ) -> Self {
        Self { gpu, gpu_id, map, watch, doorbells, reports: Mutex::default() }
    }

    /// What watches the doorbells of idle queues.
    pub(super) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// Says where errors of `queue` are reported.
    pub(super) fn set_report(&self, queue: QueueId, report: Report) {
        self.reports().insert(queue, report);
    }

    /// Forgets a queue that is gone.
    pub(super) fn forget(&self, queue: QueueId) {
        self.reports().remove(&queue);
    }

    /// Tells the runtime that an access went wrong, as after an interrupt of the memory hub
    /// (`kfd_signal_vm_fault_event`).
    pub(super) fn memory_fault(&self, address: u64, access: Access) {
        let present = access == Access::Write && self.memory_is_valid(address, 1, Access::Read);
        let failure = if present { READ_ONLY } else { NOT_PRESENT };
        events::raise(events::KIND_MEMORY, [failure, 0, address & !0xFFF, u64::from(self.gpu_id)]);
    }

    /// Tells the runtime that an engine was reset (`kfd_signal_reset_event`).
    pub(super) fn engine_reset(&self) {
        let lost = u64::from(self.gpu_id) << 32;
        events::raise(events::KIND_HW_EXCEPTION, [ENGINE_RESET, lost, 0, 0]);
    }

    fn reports(&self) -> MutexGuard<'_, HashMap<QueueId, Report>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: a range is valid if the runtime mapped it to this GPU and has not unmapped it, or if the kernel says just now
// that the process may access it. That it stays mapped while a packet of a queue names it is the application's promise
// to any GPU driver, which this trait lets an implementor hand on.
unsafe impl Host for GpuHost {
    fn clock(&self) -> u64 {
        Watch::busy();
        clock::gpu_ticks()
    }

    fn raise_event(&self, _signal: u64, event_id: u32) {
        // The runtime may have destroyed the event since; the kernel drops such an interrupt, too.
        let _ = events::set(event_id);
    }

    fn memory_is_valid(&self, address: u64, bytes: u64, access: Access) -> bool {
        if self.doorbells.contains(&address) {
            // A consumer that asks for nothing but this has nothing to do; here it may sleep.
            self.watch.look(doorbell_at(address));
            return true;
        }
        Watch::busy();
        self.map.is_valid(self.gpu, address, bytes, access)
    }

    fn queue_error(&self, queue: QueueId, fault: QueueFault) {
        match fault {
            QueueFault::Memory { address } => self.memory_fault(address, Access::Read),
            other => {
                let report = self.reports().get(&queue).copied();
                if let Some(report) = report {
                    report.tell(self, other.into());
                }
            }
        }
    }
}

/// The doorbell at an address inside the GPU's doorbells.
fn doorbell_at(address: u64) -> &'static AtomicU64 {
    // SAFETY: the driver mapped the doorbells and never unmaps them; words are aligned, and everybody writes them in
    // one piece.
    unsafe { AtomicU64::from_ptr((address & !7) as *mut u64) }
}

#[cfg(test)]
impl GpuHost {
    /// Surroundings in which nothing is mapped.
    pub(super) fn for_test() -> Self {
        Self::new(0, 2, Arc::new(AddressMap::new()), Arc::default(), 0..0)
    }
}
