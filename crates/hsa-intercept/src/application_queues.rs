//! The application's queues by their addresses, whichever technique made them.

use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::Arc;

use hsa_sys::{
    HSA_STATUS_ERROR, HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_QUEUE, HSA_STATUS_SUCCESS,
    hsa_queue_t, hsa_status_t,
};
use wavescope_core::sync::{Deadline, Mutex};
use wavescope_hsa::Hsa;

use crate::Error;
use crate::blind::Others;
use crate::device::{Device, SignalKind};
use crate::engine::QueueHandle;
use crate::front::registry::{Ending, Registry};
use crate::front::{Block, Front, HardwareQueue, SILENT, SharedFront, Worker, entries};
use crate::hsa_device::HsaDevice;
use crate::reaper::LastLook;
use crate::runtime_queue::{Creation, RuntimeQueue};
use crate::runtime_thread::Recognition;
use crate::technique::Technique;

/// Makes, finds and destroys intercepted queues.
pub(crate) struct ApplicationQueues {
    hsa: Hsa,
    device: Arc<HsaDevice>,
    /// `None` if queues are not intercepted.
    technique: Option<Technique>,
    /// Of the technique `runtime`.
    runtime: Mutex<HashMap<usize, Box<RuntimeQueue>>>,
    event_thread: Recognition,
    /// Of the technique `doorbell`, with those of other interceptors.
    fronts: &'static Registry,
    worker: Arc<Worker>,
}

/// What an application got.
pub(crate) enum Made {
    /// A queue that is intercepted.
    Intercepted,
    /// One that is not: we lacked something.
    Plain(*mut hsa_queue_t),
}

impl ApplicationQueues {
    pub(crate) fn new(hsa: &Hsa, device: &Arc<HsaDevice>, technique: Option<Technique>) -> Self {
        let fronts = Registry::of_process();
        Self {
            hsa: hsa.clone(),
            device: Arc::clone(device),
            technique,
            runtime: Mutex::new(HashMap::new()),
            event_thread: Recognition::default(),
            worker: Worker::new(Arc::<HsaDevice>::clone(device), fronts),
            fronts,
        }
    }

    pub(crate) fn technique(&self) -> Option<Technique> {
        self.technique
    }

    /// Makes the entries that answer for queues look for them here.
    pub(crate) fn lead_entries_here(&self, others: &'static Others) {
        if self.technique.is_some() {
            entries::lead_to(self.hsa.table().clone(), self.fronts, others);
        }
    }

    /// Whether one of them has this address.
    pub(crate) fn have(&self, queue: *const hsa_queue_t) -> bool {
        let front = self.fronts.by_queue(queue.addr());
        front.is_some_and(|front| self.worker.serves(front))
            || self.runtime.lock().contains_key(&queue.addr())
    }

    /// Ends the worker, and what is kept of its fronts, if none is left. Returns whether that is so.
    ///
    /// # Errors
    /// [`Error::ThreadBusy`].
    pub(crate) fn end_if_no_fronts(&self, deadline: Deadline) -> Result<bool, Error> {
        let is_idle = self.worker.stop_if_idle(deadline)?;
        if is_idle {
            self.fronts.forget(&self.worker, deadline);
        }
        Ok(is_idle)
    }

    /// Frees what is kept of queues that are gone, if none is left. Returns whether that is so.
    pub(crate) fn let_go(&self, deadline: Deadline) -> bool {
        let none_left = !self.fronts.fronts().iter().any(|front| self.worker.serves(front))
            && self.runtime.lock().is_empty();
        if none_left {
            self.fronts.forget(&self.worker, deadline);
            self.event_thread.let_go(&self.hsa);
        }
        none_left
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
    ) -> Result<Made, hsa_status_t> {
        let mut queue = NonNull::new(queue).ok_or(HSA_STATUS_ERROR_INVALID_ARGUMENT)?;
        let made = match self.technique {
            // SAFETY: by this function's contract.
            Some(Technique::Doorbell) => unsafe { self.create_front(creation, handle) }?,
            // SAFETY: likewise.
            _ => Some(unsafe { self.create_runtime_queue(creation, handle) }?),
        };
        let (pointer, made) = match made {
            Some(pointer) => (pointer, Made::Intercepted),
            None => {
                let mut plain = std::ptr::null_mut();
                // SAFETY: by this function's contract.
                match unsafe { creation.plain(&self.hsa, &raw mut plain) } {
                    HSA_STATUS_SUCCESS => (plain, Made::Plain(plain)),
                    status => return Err(status),
                }
            }
        };
        // SAFETY: the application's result, by this function's contract.
        *unsafe { queue.as_mut() } = pointer;
        Ok(made)
    }

    /// Destroys a queue, ours or not; waits at most until `deadline` for what is in flight on one of ours. Returns the
    /// runtime's answer, and the handle of a queue of ours that is gone.
    ///
    /// # Safety
    /// The argument is that of the application's call.
    pub(crate) unsafe fn destroy(
        &self,
        queue: *mut hsa_queue_t,
        deadline: Deadline,
    ) -> (hsa_status_t, Option<QueueHandle>) {
        match self.fronts.begin_end(queue.addr()) {
            Ending::Yours(front) => return self.destroy_front(&front, deadline),
            Ending::Already => return (HSA_STATUS_ERROR_INVALID_QUEUE, None),
            Ending::NoFront => {}
        }
        let ours = self.runtime.lock().remove(&queue.addr());
        if let Some(ours) = &ours {
            wait_empty(ours.handle(), deadline);
        }
        // SAFETY: by this function's contract; the queue's record, which hook and callback use, outlives the call.
        let status = unsafe { self.destroy_plain(queue) };
        match ours {
            Some(ours) if status == HSA_STATUS_SUCCESS => (status, Some(ours.handle().clone())),
            Some(ours) => {
                self.runtime.lock().insert(ours.address(), ours);
                (status, None)
            }
            None => (status, None),
        }
    }

    /// The front is found and goes on until nothing of ours is in flight: what did not fit the hardware ring so far has to
    /// go there first.
    fn destroy_front(&self, front: &SharedFront, deadline: Deadline) -> (hsa_status_t, Option<QueueHandle>) {
        self.worker.wake();
        wait_empty(front.handle(), deadline);
        self.fronts.remove(front);
        // The worker lets go of it.
        self.worker.wake();
        if front.close(deadline) {
            return (front.hardware().destroy(), Some(front.handle().clone()));
        }
        // Whoever is in there still needs the hardware queue: it stays, and the application hears no more of it.
        tracing::error!(queue = %front.handle().id(), "a callback does not return: its hardware queue is kept");
        front.hardware().silence();
        self.fronts.keep(front);
        (HSA_STATUS_SUCCESS, None)
    }

    /// # Safety
    /// The argument is that of the application's call.
    pub(crate) unsafe fn destroy_plain(&self, queue: *mut hsa_queue_t) -> hsa_status_t {
        let Some(destroy) = self.hsa.table().core.hsa_queue_destroy_fn else { return HSA_STATUS_ERROR };
        // SAFETY: by this function's contract.
        unsafe { destroy(queue) }
    }

    /// # Safety
    /// As for [`create`](Self::create).
    unsafe fn create_runtime_queue(
        &self,
        creation: &Creation,
        handle: &QueueHandle,
    ) -> Result<*mut hsa_queue_t, hsa_status_t> {
        self.event_thread.begin(&self.hsa);
        // SAFETY: by this function's contract.
        let created = unsafe { RuntimeQueue::create(&self.hsa, creation, handle.clone()) }?;
        let pointer = created.pointer();
        self.runtime.lock().insert(created.address(), created);
        Ok(pointer)
    }

    /// Creates a front. `None` where only we lack something for it.
    ///
    /// # Safety
    /// As for [`create`](Self::create).
    unsafe fn create_front(
        &self,
        creation: &Creation,
        handle: &QueueHandle,
    ) -> Result<Option<*mut hsa_queue_t>, hsa_status_t> {
        // SAFETY: by this function's contract.
        let hardware = unsafe { HardwareQueue::create(&self.hsa, creation, handle) }?;
        let front = self.front_around(hardware, creation.size, handle);
        let front = front.inspect_err(|error| {
            tracing::error!(%error, queue = %handle.id(), "a queue is not intercepted");
        });
        Ok(front.ok().map(|front| front.pointer().as_ptr()))
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
        let worker = Arc::clone(&self.worker);
        let front = Arc::new(Front::new(block, hardware, handle.clone(), doorbell, device, worker));
        let weak = Arc::downgrade(&front);
        handle.set_nudge(move || weak.upgrade().is_some_and(|front| front.request_mark()));
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

fn wait_empty(queue: &QueueHandle, deadline: Deadline) {
    if !queue.wait_empty_until(deadline, &LastLook::default()) {
        tracing::error!(queue = %queue.id(), "destroyed with instrumented dispatches in flight");
    }
}

impl std::fmt::Debug for ApplicationQueues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApplicationQueues").field("technique", &self.technique).finish_non_exhaustive()
    }
}
