//! The application's queues by their addresses, whichever technique made them.

use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use hsa_sys::{
    HSA_STATUS_ERROR, HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_SUCCESS, hsa_queue_t, hsa_status_t,
};
use wavescope_core::sync::Mutex;
use wavescope_hsa::Hsa;

use crate::Error;
use crate::device::{Device, SignalKind};
use crate::engine::QueueHandle;
use crate::front::registry::Registry;
use crate::front::{Block, Front, HardwareQueue, SILENT, SharedFront, Worker, entries};
use crate::hsa_device::HsaDevice;
use crate::runtime_queue::{Creation, RuntimeQueue};
use crate::technique::Technique;

/// Makes, finds and destroys intercepted queues.
pub(crate) struct ApplicationQueues {
    hsa: Hsa,
    device: Arc<HsaDevice>,
    /// `None` if queues are not intercepted.
    technique: Option<Technique>,
    /// Of the technique `runtime`.
    runtime: Mutex<HashMap<usize, Box<RuntimeQueue>>>,
    /// Of the technique `doorbell`.
    fronts: Arc<Registry>,
    worker: Arc<Worker>,
}

impl ApplicationQueues {
    pub(crate) fn new(hsa: &Hsa, device: &Arc<HsaDevice>, technique: Option<Technique>) -> Self {
        let fronts = Arc::new(Registry::new());
        Self {
            hsa: hsa.clone(),
            device: Arc::clone(device),
            technique,
            runtime: Mutex::new(HashMap::new()),
            worker: Worker::new(Arc::<HsaDevice>::clone(device), Arc::clone(&fronts)),
            fronts,
        }
    }

    pub(crate) fn technique(&self) -> Option<Technique> {
        self.technique
    }

    /// Makes the entries that answer for fronts look for them here.
    pub(crate) fn lead_entries_here(&self) {
        if self.technique == Some(Technique::Doorbell) {
            let (fronts, worker) = (Arc::clone(&self.fronts), Arc::clone(&self.worker));
            entries::lead_to(self.hsa.table().clone(), fronts, worker);
        }
    }

    /// Ends the worker if no front is left. Returns whether that is so.
    pub(crate) fn end_if_no_fronts(&self) -> bool {
        let none = self.fronts.fronts().is_empty();
        if none {
            self.worker.stop_if_idle();
        }
        none
    }

    /// Makes a queue as the application asked for it, with `handle` for its packets.
    ///
    /// # Safety
    /// The arguments are those of the application's call.
    ///
    /// # Errors
    /// The runtime's status, unchanged; nothing is left behind.
    pub(crate) unsafe fn create(
        &self,
        creation: &Creation,
        handle: &QueueHandle,
        queue: *mut *mut hsa_queue_t,
    ) -> Result<(), hsa_status_t> {
        let mut queue = NonNull::new(queue).ok_or(HSA_STATUS_ERROR_INVALID_ARGUMENT)?;
        let made = match self.technique {
            // SAFETY: by this function's contract.
            Some(Technique::Doorbell) => unsafe { self.create_front(creation, handle) }?,
            // SAFETY: likewise.
            _ => unsafe { self.create_runtime_queue(creation, handle) }?,
        };
        // SAFETY: the application's result, by this function's contract.
        *unsafe { queue.as_mut() } = made;
        Ok(())
    }

    /// Destroys a queue, ours or not; waits at most `timeout` for what is in flight on one of ours. Returns the runtime's
    /// answer, and the handle of a queue of ours that is gone.
    ///
    /// # Safety
    /// The argument is that of the application's call.
    pub(crate) unsafe fn destroy(
        &self,
        queue: *mut hsa_queue_t,
        timeout: Duration,
    ) -> (hsa_status_t, Option<QueueHandle>) {
        if let Some(front) = self.fronts.remove(queue.addr()) {
            // The worker lets go of it.
            self.worker.wake();
            wait_empty(front.handle(), timeout);
            front.close();
            return (front.hardware().destroy(), Some(front.handle().clone()));
        }
        let Some(destroy) = self.hsa.table().core.hsa_queue_destroy_fn else {
            return (HSA_STATUS_ERROR, None);
        };
        let ours = self.runtime.lock().remove(&queue.addr());
        if let Some(ours) = &ours {
            wait_empty(ours.handle(), timeout);
        }
        // SAFETY: by this function's contract; the queue's record, which hook and callback use, outlives the call.
        let status = unsafe { destroy(queue) };
        match ours {
            Some(ours) if status == HSA_STATUS_SUCCESS => (status, Some(ours.handle().clone())),
            Some(ours) => {
                self.runtime.lock().insert(ours.address(), ours);
                (status, None)
            }
            None => (status, None),
        }
    }

    /// # Safety
    /// As for [`create`](Self::create).
    unsafe fn create_runtime_queue(
        &self,
        creation: &Creation,
        handle: &QueueHandle,
    ) -> Result<*mut hsa_queue_t, hsa_status_t> {
        // SAFETY: by this function's contract.
        let created = unsafe { RuntimeQueue::create(&self.hsa, creation, handle.clone()) }?;
        let pointer = created.pointer();
        self.runtime.lock().insert(created.address(), created);
        Ok(pointer)
    }

    /// Creates a front. Where only we lack something for it, the application gets a plain queue.
    ///
    /// # Safety
    /// As for [`create`](Self::create).
    unsafe fn create_front(
        &self,
        creation: &Creation,
        handle: &QueueHandle,
    ) -> Result<*mut hsa_queue_t, hsa_status_t> {
        // SAFETY: by this function's contract.
        let hardware = unsafe { HardwareQueue::create(&self.hsa, creation, handle) }?;
        match self.front_around(hardware, creation.size, handle) {
            Ok(front) => Ok(front.pointer().as_ptr()),
            Err(error) => {
                tracing::error!(%error, queue = %handle.id(), "a queue is not intercepted");
                let mut plain = std::ptr::null_mut();
                // SAFETY: by this function's contract.
                match unsafe { creation.plain(&self.hsa, &raw mut plain) } {
                    HSA_STATUS_SUCCESS => Ok(plain),
                    status => Err(status),
                }
            }
        }
    }

    /// Puts a front before a hardware queue; destroys the queue if that fails.
    fn front_around(
        &self,
        hardware: HardwareQueue,
        packets: u32,
        handle: &QueueHandle,
    ) -> Result<SharedFront, Error> {
        let made = self.worker.start().and_then(|()| {
            let doorbell = self.device.create_signal(SILENT, SignalKind::Interrupt)?;
            let (agent, queue) = (handle.agent(), hardware.pointer());
            // SAFETY: the runtime's queue: an `amd_queue_v2_t` with the runtime's pointer behind it.
            let block = unsafe { Block::new(&self.hsa, agent, queue, packets, doorbell) };
            let block = block.inspect_err(|_| self.device.destroy_signal(doorbell))?;
            Ok((block, doorbell))
        });
        let (block, doorbell) = made.inspect_err(|_| discard(&hardware))?;
        hardware.set_front(block.pointer());
        let device: Arc<HsaDevice> = Arc::clone(&self.device);
        let front = Arc::new(Front::new(block, hardware, handle.clone(), doorbell, device));
        let (weak, worker) = (Arc::downgrade(&front), Arc::clone(&self.worker));
        handle.set_nudge(move || {
            let Some(front) = weak.upgrade() else { return false };
            let Some(stalled) = front.request_mark() else { return false };
            if stalled {
                worker.wake();
            }
            true
        });
        if !self.fronts.add(&front) {
            discard(front.hardware());
            return Err(Error::TooManyQueues);
        }
        self.worker.wake();
        Ok(front)
    }
}

fn discard(hardware: &HardwareQueue) {
    let status = hardware.destroy();
    tracing::debug!(?status, "hardware queue without a front destroyed");
}

fn wait_empty(queue: &QueueHandle, timeout: Duration) {
    if !queue.wait_empty(timeout) {
        tracing::error!(queue = %queue.id(), "destroyed with instrumented dispatches in flight");
    }
}

impl std::fmt::Debug for ApplicationQueues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApplicationQueues").field("technique", &self.technique).finish_non_exhaustive()
    }
}
