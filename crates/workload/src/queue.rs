//! A queue of the application.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hsa_sys::{HSA_QUEUE_TYPE_MULTI, HSA_STATUS_SUCCESS, hsa_queue_t, hsa_status_t};
use wavescope_core::AqlPacket;

use crate::api::{call, entry};
use crate::application::Reference;
use crate::{Batch, Error, Gpu, Submission};

/// How long a submission waits for room in the ring.
const ROOM_TIMEOUT: Duration = Duration::from_secs(60);

/// A queue, destroyed when dropped: submissions to it are waited for first.
#[derive(Debug)]
pub struct Queue {
    reference: Arc<Reference>,
    gpu: Gpu,
    queue: *mut hsa_queue_t,
    packets: u32,
    failure: Box<AtomicU32>,
}

// SAFETY: HSA queues of type MULTI may be used from any thread; the handle is only passed to the runtime.
unsafe impl Send for Queue {}
// SAFETY: as for `Send`; slots are reserved by an atomic addition.
unsafe impl Sync for Queue {}

unsafe extern "C-unwind" fn on_error(status: hsa_status_t, _queue: *mut hsa_queue_t, failure: *mut c_void) {
    // SAFETY: `failure` is the queue's own atomic, which outlives the queue in the runtime.
    unsafe { &*failure.cast::<AtomicU32>() }.store(status.0, Ordering::Release);
}

impl Queue {
    pub(crate) fn create(reference: &Arc<Reference>, gpu: &Gpu, packets: u32) -> Result<Self, Error> {
        let failure = Box::new(AtomicU32::new(HSA_STATUS_SUCCESS.0));
        let mut queue = std::ptr::null_mut();
        let data = std::ptr::from_ref(&*failure).cast_mut().cast();
        call!(
            reference.api,
            core_.hsa_queue_create_fn(
                gpu.agent(),
                packets,
                HSA_QUEUE_TYPE_MULTI.0,
                Some(on_error),
                data,
                u32::MAX,
                u32::MAX,
                &raw mut queue,
            )
        )?;
        let created = Self { reference: Arc::clone(reference), gpu: gpu.clone(), queue, packets, failure };
        call!(reference.api, amd_ext_.hsa_amd_profiling_set_profiler_enabled_fn(queue, 1))?;
        Ok(created)
    }

    /// Packets that the ring holds.
    pub fn capacity(&self) -> u32 {
        self.packets
    }

    /// The handle, for calls that this crate does not make.
    pub fn raw(&self) -> *mut hsa_queue_t {
        self.queue
    }

    /// The GPU that consumes it.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// What the runtime reported about the queue, if it failed.
    ///
    /// # Errors
    /// [`Error::QueueFailed`].
    pub fn health(&self) -> Result<(), Error> {
        match hsa_status_t(self.failure.load(Ordering::Acquire)) {
            HSA_STATUS_SUCCESS => Ok(()),
            status => Err(Error::QueueFailed { status }),
        }
    }

    /// Writes a batch and rings the doorbell once. Waits while the ring is full.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`], [`Error::Call`]; [`Error::TimedOut`] or [`Error::QueueFailed`] when the queue does
    /// not move.
    pub fn submit(&self, batch: &Batch) -> Result<Submission, Error> {
        if batch.len() > self.packets as usize {
            return Err(Error::BatchTooLarge { packets: batch.len(), capacity: self.packets });
        }
        let (submission, packets) = Submission::prepare(&self.reference, &self.gpu, batch)?;
        self.write(&packets)?;
        Ok(submission)
    }

    /// Reserves places, fills them, makes them valid in order and rings.
    fn write(&self, packets: &[AqlPacket]) -> Result<(), Error> {
        let Some(last) = (packets.len() as u64).checked_sub(1) else { return Ok(()) };
        let add = entry!(self.reference.api, core_.hsa_queue_add_write_index_scacq_screl_fn)?;
        // SAFETY: the queue lives as long as `self`.
        let first = unsafe { add(self.queue, packets.len() as u64) };
        self.wait_for_room(first + last)?;
        for (index, packet) in (first..).zip(packets) {
            self.slot(index).write(packet);
        }
        let signal_store = entry!(self.reference.api, core_.hsa_signal_store_screlease_fn)?;
        // SAFETY: the queue lives as long as `self`.
        let doorbell = unsafe { (*self.queue).doorbell_signal };
        // SAFETY: the doorbell lives as long as its queue.
        unsafe { signal_store(doorbell, (first + last).cast_signed()) };
        Ok(())
    }

    fn wait_for_room(&self, last: u64) -> Result<(), Error> {
        let load = entry!(self.reference.api, core_.hsa_queue_load_read_index_scacquire_fn)?;
        let start = Instant::now();
        // SAFETY: the queue lives as long as `self`.
        while last >= unsafe { load(self.queue) } + u64::from(self.packets) {
            self.health()?;
            if start.elapsed() > ROOM_TIMEOUT {
                return Err(Error::TimedOut { what: "the queue is full".to_owned(), after: ROOM_TIMEOUT });
            }
            thread::yield_now();
        }
        Ok(())
    }

    fn slot(&self, index: u64) -> Slot<'_> {
        // SAFETY: the queue lives as long as `self`.
        let base = unsafe { (*self.queue).base_address };
        let offset = (index % u64::from(self.packets)) as usize * size_of::<AqlPacket>();
        let dwords = base.wrapping_byte_add(offset).cast::<[AtomicU32; 16]>();
        // SAFETY: inside the ring, aligned to 64 bytes, alive as long as `self`; atomics may be shared with the
        // packet processor.
        Slot(unsafe { &*dwords })
    }
}

/// A reserved place of the ring.
struct Slot<'a>(&'a [AtomicU32; 16]);

impl Slot<'_> {
    /// Fills the place and makes the packet valid with its header.
    fn write(&self, packet: &AqlPacket) {
        for (place, &dword) in self.0.iter().zip(&packet.0).skip(1) {
            place.store(dword, Ordering::Relaxed);
        }
        self.0[0].store(packet.0[0], Ordering::Release);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if let Err(error) = call!(self.reference.api, core_.hsa_queue_destroy_fn(self.queue)) {
            tracing::warn!(%error, "queue not destroyed");
        }
    }
}
