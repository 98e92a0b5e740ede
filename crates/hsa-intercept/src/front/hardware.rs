//! The plain queue behind a front. Only the front's reader writes to it.

use std::ffi::c_void;
use std::ptr::NonNull;
// The packet processor takes part in these words.
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use hsa_sys::{
    HSA_STATUS_ERROR, HSA_STATUS_ERROR_OUT_OF_RESOURCES, HSA_STATUS_SUCCESS, hsa_queue_t, hsa_status_t,
};
use wavescope_core::AqlPacket;
use wavescope_core::sync::Mutex;
use wavescope_hsa::Hsa;

use crate::engine::QueueHandle;
use crate::runtime_queue::{Creation, ErrorCallback, enable_times};

/// A rewritten batch is longer than the application's: the ring behind a front holds this many times its packets.
const FACTOR: u32 = 4;
/// But not more than this, to bound its memory (64 bytes a packet).
const MOST: u32 = 1 << 16;

/// The queue, its ring, and how far it was written.
pub(crate) struct HardwareQueue {
    hsa: Hsa,
    queue: NonNull<hsa_queue_t>,
    ring: NonNull<AqlPacket>,
    size: u64,
    position: Mutex<Position>,
    /// Data of the error callback: boxed, so that it stays where it is.
    link: Box<Link>,
}

// SAFETY: the pointers are the queue's; slots are only written under `position`.
unsafe impl Send for HardwareQueue {}
// SAFETY: as above.
unsafe impl Sync for HardwareQueue {}

/// Where the writer is.
#[derive(Debug, Default)]
struct Position {
    written: u64,
    /// The packet processor's index when it was last asked.
    consumed: u64,
}

/// What the runtime's error callback needs.
struct Link {
    handle: QueueHandle,
    /// The queue that the application knows; set before it does.
    front: AtomicPtr<hsa_queue_t>,
    silent: AtomicBool,
    callback: ErrorCallback,
    data: *mut c_void,
}

impl HardwareQueue {
    /// Creates the queue with the application's arguments but for its size.
    ///
    /// # Safety
    /// The arguments are those of the application's call.
    ///
    /// # Errors
    /// The runtime's status, unchanged; nothing is left behind.
    pub(crate) unsafe fn create(
        hsa: &Hsa,
        creation: &Creation,
        handle: &QueueHandle,
    ) -> Result<Self, hsa_status_t> {
        let front = AtomicPtr::new(std::ptr::null_mut());
        let (callback, data) = (creation.callback, creation.data);
        let silent = AtomicBool::new(false);
        let link = Box::new(Link { handle: handle.clone(), front, silent, callback, data });
        let link_data = (&raw const *link).cast_mut().cast::<c_void>();
        let roomy = creation.size.saturating_mul(FACTOR).min(MOST.max(creation.size));
        let ours = |size| Creation { size, callback: Some(on_error), data: link_data, ..*creation };
        let mut queue = std::ptr::null_mut();
        // SAFETY: the application's arguments, but for the callback, whose data is the link above.
        let mut status = unsafe { ours(roomy).plain(hsa, &raw mut queue) };
        if status != HSA_STATUS_SUCCESS {
            // Perhaps only the size was refused; what the runtime says to the application's own is the answer.
            // SAFETY: likewise.
            status = unsafe { ours(creation.size).plain(hsa, &raw mut queue) };
        }
        if status != HSA_STATUS_SUCCESS {
            return Err(status);
        }
        let queue = NonNull::new(queue).ok_or(HSA_STATUS_ERROR_OUT_OF_RESOURCES)?;
        // SAFETY: the queue is new and only we know it.
        unsafe { enable_times(hsa, queue.as_ptr()) };
        // SAFETY: the runtime created the queue.
        let header = unsafe { queue.as_ref() };
        let ring = NonNull::new(header.base_address.cast()).ok_or(HSA_STATUS_ERROR)?;
        let size = u64::from(header.size);
        Ok(Self { hsa: hsa.clone(), queue, ring, size, position: Mutex::new(Position::default()), link })
    }

    /// From now on errors name `front`.
    pub(crate) fn set_front(&self, front: NonNull<hsa_queue_t>) {
        self.link.front.store(front.as_ptr(), Ordering::Release);
    }

    /// The runtime's queue.
    pub(crate) fn pointer(&self) -> NonNull<hsa_queue_t> {
        self.queue
    }

    /// Writes as many of `packets` as there is room for and rings the doorbell. Returns how many.
    pub(crate) fn write(&self, packets: &[AqlPacket]) -> usize {
        let mut position = self.position.lock();
        let room = self.room(&mut position, packets.len());
        let count = packets.len().min(room);
        let Some(last) = count.checked_sub(1) else { return 0 };
        let first = position.written;
        for (index, packet) in (first..).zip(&packets[..count]) {
            self.write_slot(index, packet);
        }
        position.written += count as u64;
        let core = &self.hsa.table().core;
        if let Some(store) = core.hsa_queue_store_write_index_screlease_fn {
            // SAFETY: the queue is ours and alive.
            unsafe { store(self.queue.as_ptr(), position.written) };
        }
        // SAFETY: the queue is ours and alive.
        let doorbell = unsafe { self.queue.as_ref() }.doorbell_signal;
        self.hsa.signal_store(doorbell, (first + last as u64).cast_signed());
        count
    }

    /// From now on errors are not told to the application.
    pub(crate) fn silence(&self) {
        self.link.silent.store(true, Ordering::Release);
    }

    /// Has the runtime stop the queue, which may still be written to.
    pub(crate) fn inactivate(&self) {
        let Some(inactivate) = self.hsa.table().core.hsa_queue_inactivate_fn else { return };
        // SAFETY: the queue is ours and alive.
        let status = unsafe { inactivate(self.queue.as_ptr()) };
        tracing::debug!(?status, "hardware queue stopped");
    }

    /// Destroys the queue through the runtime.
    pub(crate) fn destroy(&self) -> hsa_status_t {
        let Some(destroy) = self.hsa.table().core.hsa_queue_destroy_fn else { return HSA_STATUS_ERROR };
        // SAFETY: the front's owner destroys it once.
        unsafe { destroy(self.queue.as_ptr()) }
    }

    /// Free slots; the packet processor's index is only asked for when the known one does not give `wanted`.
    fn room(&self, position: &mut Position, wanted: usize) -> usize {
        let free = |position: &Position| (self.size - (position.written - position.consumed)) as usize;
        if free(position) < wanted
            && let Some(load) = self.hsa.table().core.hsa_queue_load_read_index_scacquire_fn
        {
            // SAFETY: the queue is ours and alive.
            position.consumed = unsafe { load(self.queue.as_ptr()) };
        }
        free(position)
    }

    /// The body first, then the header with release order: the packet processor never sees half a packet.
    fn write_slot(&self, index: u64, packet: &AqlPacket) {
        let slot = (index % self.size) as usize;
        // SAFETY: the ring has `size` slots.
        let slot = unsafe { self.ring.add(slot) }.cast::<u32>();
        // SAFETY: a slot has 16 dwords, so there are 15 behind the first.
        let body = unsafe { slot.add(1) };
        // SAFETY: the slot was consumed, and its header still says INVALID, so nobody else touches its body.
        unsafe { body.copy_from_nonoverlapping(NonNull::from(&packet.0[1]), 15) };
        // SAFETY: aligned, and alive as long as the queue; the packet processor reads it atomically too.
        let header = unsafe { AtomicU32::from_ptr(slot.as_ptr()) };
        header.store(packet.0[0], Ordering::Release);
    }
}

/// The runtime's error callback: what is in flight is lost, then the application's own runs, with its own queue.
unsafe extern "C-unwind" fn on_error(status: hsa_status_t, _queue: *mut hsa_queue_t, data: *mut c_void) {
    // SAFETY: `data` is the link, which lives until the queue's destroy returned.
    let link = unsafe { &*data.cast::<Link>() };
    if status != HSA_STATUS_SUCCESS {
        link.handle.failed();
    }
    if let Some(callback) = link.callback
        && !link.silent.load(Ordering::Acquire)
    {
        // SAFETY: the application's callback with its own queue and data.
        unsafe { callback(status, link.front.load(Ordering::Acquire), link.data) };
    }
}
