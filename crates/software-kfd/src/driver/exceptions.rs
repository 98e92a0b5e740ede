//! How a queue's error reaches the runtime. There are two ways, and a runtime listens on one of them.
//!
//! The packet processor itself ors a code into the value of the signal that the queue's head names
//! (`queue_inactive_signal` of `amd_queue_t`), then rings that signal's event. Where the runtime debugs exceptions
//! (`AMDKFD_IOC_RUNTIME_ENABLE` on a node whose firmware supports it), the kernel ors a bit into the word that the head
//! of the queue's save area names and sets the event that stands beside it (`kfd_send_exception_to_runtime`). ROCr's
//! side of both: `AqlQueue::DynamicQueueEventsHandler` and `ExceptionHandler`.

use std::sync::atomic::{AtomicU64, Ordering};

use wavescope_software_gpu::{Access, Host, QueueFault};

use super::host::GpuHost;
use crate::abi::kfd::SaveAreaHeader;
use crate::events;

/// Why a queue stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exception {
    /// `EC_QUEUE_*` of `linux/kfd_ioctl.h`, counted from 1.
    kernel: u32,
    /// The packet processor's bit.
    processor: u32,
}

impl Exception {
    const WAVE_TRAP: Self = Self { kernel: 2, processor: 1 << 31 };
    const ILLEGAL_INSTRUCTION: Self = Self { kernel: 4, processor: 1 << 30 };
    const APERTURE_VIOLATION: Self = Self { kernel: 6, processor: 1 << 29 };
    const DISPATCH_DIM: Self = Self { kernel: 16, processor: 1 << 1 };
    const GROUP_SEGMENT_SIZE: Self = Self { kernel: 17, processor: 1 << 2 };
    const DISPATCH_CODE: Self = Self { kernel: 18, processor: 1 << 3 };
    const PACKET_UNSUPPORTED: Self = Self { kernel: 20, processor: 1 << 5 };
    const WORK_GROUP_SIZE: Self = Self { kernel: 21, processor: 1 << 6 };
    const REGISTERS: Self = Self { kernel: 22, processor: 1 << 7 };
    const VENDOR_UNSUPPORTED: Self = Self { kernel: 23, processor: 1 << 8 };
    /// Anything else: the runtime reports a general error.
    const PREEMPTION: Self = Self { kernel: 31, processor: 1 << 31 };
}

/// HSA status codes and the exception that ROCr turns into each.
const STATUSES: [(u32, Exception); 10] = [
    (0x1016, Exception::WAVE_TRAP),
    (0x2A, Exception::ILLEGAL_INSTRUCTION),
    (0x29, Exception::APERTURE_VIOLATION),
    (0x100D, Exception::DISPATCH_DIM),
    (0x1003, Exception::GROUP_SEGMENT_SIZE),
    (0x1010, Exception::DISPATCH_CODE),
    (0x1009, Exception::PACKET_UNSUPPORTED),
    (0x1001, Exception::WORK_GROUP_SIZE),
    (0x100F, Exception::REGISTERS),
    (0x2D, Exception::REGISTERS),
];

impl From<QueueFault> for Exception {
    fn from(fault: QueueFault) -> Self {
        match fault {
            QueueFault::InvalidPacket { .. } => Self::PACKET_UNSUPPORTED,
            QueueFault::InvalidDispatch { .. } => Self::WORK_GROUP_SIZE,
            QueueFault::InvalidCommands { .. } => Self::VENDOR_UNSUPPORTED,
            QueueFault::Injected(status) => {
                let known = STATUSES.iter().find(|(known, _)| *known == status);
                known.map_or(Self::PREEMPTION, |(_, exception)| *exception)
            }
            _ => Self::PREEMPTION,
        }
    }
}

/// Where a queue's errors are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// Head of the queue's save area; 0: none.
    pub(super) save_area: u64,
    /// Address of the queue's write index, from which its head is found.
    pub(super) write_index: u64,
}

/// From `write_dispatch_id` to `queue_inactive_signal` in `amd_queue_t` (`amd_hsa_queue.h`).
const INACTIVE_SIGNAL: u64 = 192 - 56;

/// Byte offsets in `amd_signal_t` (`amd_hsa_signal.h`).
mod signal {
    pub(super) const VALUE: u64 = 8;
    pub(super) const EVENT_MAILBOX: u64 = 16;
    pub(super) const EVENT_ID: u64 = 24;
}

impl Report {
    /// Tells the runtime of an exception, on both ways.
    pub(super) fn tell(&self, host: &GpuHost, exception: Exception) {
        // What cannot be accessed belongs to a queue whose runtime set up no such way.
        let _ = self.tell_by_signal(host, exception.processor);
        let _ = self.tell_by_event(host, exception.kernel);
    }

    fn tell_by_signal(&self, host: &GpuHost, bit: u32) -> Option<()> {
        let handle = load(host, self.write_index.checked_add(INACTIVE_SIGNAL)?)?;
        let at = |offset: u64| handle.checked_add(offset);
        let event = load(host, at(signal::EVENT_ID)?)? as u32;
        let mailbox = load(host, at(signal::EVENT_MAILBOX)?)?;
        word(host, at(signal::VALUE)?)?.fetch_or(u64::from(bit), Ordering::AcqRel);
        word(host, mailbox)?.store(u64::from(event), Ordering::Release);
        events::set(event).ok()
    }

    fn tell_by_event(&self, host: &GpuHost, code: u32) -> Option<()> {
        let header = self.save_area_header(host)?;
        word(host, header.error_payload)?.fetch_or(1 << (code - 1), Ordering::AcqRel);
        events::set(header.error_event).ok()
    }

    fn save_area_header(&self, host: &GpuHost) -> Option<SaveAreaHeader> {
        let bytes = size_of::<SaveAreaHeader>() as u64;
        if self.save_area == 0 || !host.memory_is_valid(self.save_area, bytes, Access::Read) {
            return None;
        }
        // SAFETY: readable for its whole length; the runtime writes it before it creates the queue and keeps it until
        // the queue is gone. `SaveAreaHeader` takes any bytes.
        Some(unsafe { (self.save_area as *const SaveAreaHeader).read_unaligned() })
    }
}

fn load(host: &GpuHost, address: u64) -> Option<u64> {
    let value = word(host, address)?.load(Ordering::Acquire);
    (value != 0).then_some(value)
}

/// A word of the runtime's.
fn word(host: &GpuHost, address: u64) -> Option<&AtomicU64> {
    let aligned = address != 0 && address.is_multiple_of(8);
    if !aligned || !host.memory_is_valid(address, 8, Access::Write) {
        return None;
    }
    // SAFETY: aligned, writable, and part of the queue or of a signal that it names, which the runtime keeps as long as
    // the queue; everybody accesses it in one piece.
    Some(unsafe { AtomicU64::from_ptr(address as *mut u64) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_arrives_on_the_way_that_the_save_area_names() {
        let payload = AtomicU64::new(0);
        let event = events::create(events::KIND_SIGNAL, true).unwrap();
        let header = SaveAreaHeader {
            error_payload: payload.as_ptr() as u64,
            error_event: event,
            ..SaveAreaHeader::default()
        };
        let report = Report { save_area: std::ptr::from_ref(&header) as u64, write_index: 0 };
        report.tell(&GpuHost::for_test(), QueueFault::InvalidPacket { index: 0 }.into());
        // `AqlQueue::ExceptionHandler` reads code 20 as HSA_STATUS_ERROR_INVALID_PACKET_FORMAT.
        assert_eq!(payload.load(Ordering::Relaxed), 1 << 19);
        events::destroy(event).unwrap();
    }

    #[test]
    fn error_arrives_in_the_signal_that_the_queue_names() {
        let mailbox = AtomicU64::new(0);
        let event = events::create(events::KIND_SIGNAL, true).unwrap();
        // kind, value, mailbox, event id.
        let signal = [1, 0, mailbox.as_ptr() as u64, u64::from(event), 0, 0, 0, 0].map(AtomicU64::new);
        let queue: [u64; 32] =
            std::array::from_fn(|index| if index == 24 { signal.as_ptr() as u64 } else { 0 });
        let report = Report { save_area: 0, write_index: (&raw const queue[7]) as u64 };
        report.tell(&GpuHost::for_test(), QueueFault::Injected(0x100D).into());
        // `AqlQueue::DynamicQueueEventsHandler` reads bit 1 as HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS.
        assert_eq!(signal[1].load(Ordering::Relaxed), 2);
        assert_eq!(mailbox.load(Ordering::Relaxed), u64::from(event));
        events::destroy(event).unwrap();
    }
}
