//! A trace device that counts what its owner asks of it: the demonstration that all contexts share one set.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use wavescope_att_resources::{BufferId, Completion, Device, DeviceError, HsaDevice};
use wavescope_core::AqlPacket;

use super::results::Shared;

/// The device with a meter in front.
pub(super) struct Metered {
    device: HsaDevice,
    usage: Arc<Usage>,
}

/// What was created so far.
#[derive(Debug, Default)]
pub(super) struct Usage {
    queues: AtomicUsize,
    slots: AtomicUsize,
    slot_bytes: AtomicU64,
}

impl Metered {
    pub(super) fn new(device: HsaDevice) -> (Self, Arc<Usage>) {
        let usage = Arc::new(Usage::default());
        (Self { device, usage: Arc::clone(&usage) }, usage)
    }
}

impl Usage {
    /// The numbers for `contexts` contexts.
    pub(super) fn shared(&self, contexts: u32) -> Shared {
        Shared {
            contexts,
            submission_queues: self.queues.load(Ordering::Relaxed),
            output_slots: self.slots.load(Ordering::Relaxed),
            output_bytes: self.slot_bytes.load(Ordering::Relaxed),
        }
    }
}

impl Device for Metered {
    fn create_queue(&mut self, packets: usize) -> Result<(), DeviceError> {
        self.device.create_queue(packets)?;
        self.usage.queues.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn destroy_queue(&mut self) {
        self.device.destroy_queue();
    }

    fn allocate(&mut self, buffer: BufferId, bytes: u64) -> Result<u64, DeviceError> {
        let address = self.device.allocate(buffer, bytes)?;
        if matches!(buffer, BufferId::Output(_)) {
            self.usage.slots.fetch_add(1, Ordering::Relaxed);
            self.usage.slot_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(address)
    }

    fn free(&mut self, buffer: BufferId, address: u64) {
        self.device.free(buffer, address);
    }

    fn leak(&mut self, buffer: BufferId, address: u64) {
        self.device.leak(buffer, address);
    }

    fn submit(&mut self, packets: &[AqlPacket], done: Completion) -> Result<(), DeviceError> {
        self.device.submit(packets, done)
    }
}
