//! The world around one device of the model: clock, events, page tables, and where a queue's error is reported.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wavescope_software_gpu::{Access, Host, QueueFault, QueueId};

use super::address_map::AddressMap;
use super::clock;
use super::watch::Watch;
use crate::abi::kfd::SaveAreaHeader;
use crate::events;

/// `EC_QUEUE_*` of `linux/kfd_ioctl.h`: why a queue stopped, numbered from 1.
mod exception {
    pub(super) const WAVE_TRAP: u32 = 2;
    pub(super) const WAVE_ILLEGAL_INSTRUCTION: u32 = 4;
    pub(super) const WAVE_APERTURE_VIOLATION: u32 = 6;
    pub(super) const DISPATCH_DIM_INVALID: u32 = 16;
    pub(super) const DISPATCH_GROUP_SEGMENT_SIZE_INVALID: u32 = 17;
    pub(super) const DISPATCH_CODE_INVALID: u32 = 18;
    pub(super) const PACKET_UNSUPPORTED: u32 = 20;
    pub(super) const DISPATCH_WORK_GROUP_SIZE_INVALID: u32 = 21;
    pub(super) const DISPATCH_REGISTER_INVALID: u32 = 22;
    pub(super) const PACKET_VENDOR_UNSUPPORTED: u32 = 23;
    pub(super) const PREEMPTION_ERROR: u32 = 31;
}

/// HSA status codes and the exception that ROCr turns into each (`AqlQueue::ExceptionHandler`).
const STATUS_EXCEPTIONS: [(u32, u32); 9] = [
    (0x100D, exception::DISPATCH_DIM_INVALID),
    (0x1003, exception::DISPATCH_GROUP_SEGMENT_SIZE_INVALID),
    (0x1010, exception::DISPATCH_CODE_INVALID),
    (0x1009, exception::PACKET_UNSUPPORTED),
    (0x1001, exception::DISPATCH_WORK_GROUP_SIZE_INVALID),
    (0x100F, exception::DISPATCH_REGISTER_INVALID),
    (0x1016, exception::WAVE_TRAP),
    (0x2A, exception::WAVE_ILLEGAL_INSTRUCTION),
    (0x29, exception::WAVE_APERTURE_VIOLATION),
];

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
    /// Head of the save area of each queue, through which the runtime hears of errors.
    save_areas: Mutex<HashMap<QueueId, u64>>,
}

impl GpuHost {
    pub(super) fn new(
        gpu: usize,
        gpu_id: u32,
        map: Arc<AddressMap>,
        watch: Arc<Watch>,
        doorbells: Range<u64>,
    ) -> Self {
        Self { gpu, gpu_id, map, watch, doorbells, save_areas: Mutex::default() }
    }

    /// What watches the doorbells of idle queues.
    pub(super) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// Says where errors of `queue` are reported.
    pub(super) fn set_save_area(&self, queue: QueueId, address: u64) {
        self.save_areas().insert(queue, address);
    }

    /// Forgets a queue that is gone.
    pub(super) fn forget(&self, queue: QueueId) {
        self.save_areas().remove(&queue);
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

    /// Reports an exception of a queue to the runtime (`kfd_send_exception_to_runtime`): a bit in the word that the
    /// head of its save area names, then the event that it names.
    fn exception(&self, queue: QueueId, code: u32) {
        let area = self.save_areas().get(&queue).copied();
        let Some(header) = area.and_then(|area| self.save_area_header(area)) else { return };
        let aligned = header.error_payload.is_multiple_of(8);
        if aligned && self.memory_is_valid(header.error_payload, 8, Access::Write) {
            // SAFETY: aligned and writable; the runtime keeps the word, a signal's value, as long as the queue.
            let payload = unsafe { AtomicU64::from_ptr(header.error_payload as *mut u64) };
            payload.fetch_or(1 << (code - 1), Ordering::AcqRel);
        }
        // An event that the runtime did not make: then it does not listen.
        let _ = events::set(header.error_event);
    }

    fn save_area_header(&self, area: u64) -> Option<SaveAreaHeader> {
        let bytes = size_of::<SaveAreaHeader>() as u64;
        if area == 0 || !self.memory_is_valid(area, bytes, Access::Read) {
            return None;
        }
        // SAFETY: readable for its whole length; the runtime writes it before it creates the queue and keeps it until
        // the queue is gone. `SaveAreaHeader` takes any bytes.
        Some(unsafe { (area as *const SaveAreaHeader).read_unaligned() })
    }

    fn save_areas(&self) -> MutexGuard<'_, HashMap<QueueId, u64>> {
        self.save_areas.lock().unwrap_or_else(PoisonError::into_inner)
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
            other => self.exception(queue, exception_code(other)),
        }
    }
}

/// The doorbell at an address inside the GPU's doorbells.
fn doorbell_at(address: u64) -> &'static AtomicU64 {
    // SAFETY: the driver mapped the doorbells and never unmaps them; words are aligned, and everybody writes them in
    // one piece.
    unsafe { AtomicU64::from_ptr((address & !7) as *mut u64) }
}

fn exception_code(fault: QueueFault) -> u32 {
    match fault {
        QueueFault::InvalidPacket { .. } => exception::PACKET_UNSUPPORTED,
        QueueFault::InvalidDispatch { .. } => exception::DISPATCH_WORK_GROUP_SIZE_INVALID,
        QueueFault::InvalidCommands { .. } => exception::PACKET_VENDOR_UNSUPPORTED,
        QueueFault::Injected(status) => STATUS_EXCEPTIONS
            .iter()
            .find(|(known, _)| *known == status)
            .map_or(exception::PREEMPTION_ERROR, |(_, code)| *code),
        _ => exception::PREEMPTION_ERROR,
    }
}

#[cfg(test)]
impl GpuHost {
    /// Surroundings in which nothing is mapped.
    pub(super) fn for_test() -> Self {
        Self::new(0, 2, Arc::new(AddressMap::new()), Arc::default(), 0..0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_error_sets_the_bit_and_the_event_that_the_save_area_names() {
        let payload = AtomicU64::new(0);
        let event = events::create(events::KIND_SIGNAL, true).unwrap();
        let header = SaveAreaHeader {
            error_payload: payload.as_ptr() as u64,
            error_event: event,
            ..SaveAreaHeader::default()
        };
        let host = GpuHost::for_test();
        host.set_save_area(QueueId(5), std::ptr::from_ref(&header) as u64);
        host.queue_error(QueueId(4), QueueFault::InvalidPacket { index: 0 });
        assert_eq!(payload.load(Ordering::Relaxed), 0);
        host.queue_error(QueueId(5), QueueFault::InvalidPacket { index: 0 });
        // `AqlQueue::ExceptionHandler` of ROCr reads code 20 as HSA_STATUS_ERROR_INVALID_PACKET_FORMAT.
        assert_eq!(payload.load(Ordering::Relaxed), 1 << 19);
        events::destroy(event).unwrap();
    }
}
