//! A hardware queue of our own, created through the saved entry, so no hook ever sees it.

use std::ffi::c_void;
use std::ptr::NonNull;
// The packet processor and the runtime take part in these, so they are never modelled.
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hsa_sys::{HSA_QUEUE_TYPE_MULTI, HSA_STATUS_SUCCESS, hsa_queue_t, hsa_signal_t, hsa_status_t};
use wavescope_core::sync::{Deadline, Mutex};
use wavescope_core::{AgentId, AqlPacket};

use crate::error::{Error, check, entry};
use crate::{Hsa, HsaSignal};

/// A queue, destroyed when dropped. Submissions from several threads are serialized and never overrun it.
#[derive(Debug)]
pub struct HsaQueue {
    hsa: Hsa,
    queue: NonNull<hsa_queue_t>,
    ring: NonNull<AqlPacket>,
    size: u64,
    doorbell: hsa_signal_t,
    /// What the runtime reported, 0 for nothing. Boxed: its address is the callback's data.
    stopped: Box<AtomicU32>,
    producer: Mutex<()>,
}

// SAFETY: the runtime's queue functions are thread-safe, and slots are only written under `producer`.
unsafe impl Send for HsaQueue {}
// SAFETY: as above.
unsafe impl Sync for HsaQueue {}

impl HsaQueue {
    /// Creates a queue of `size` packets (a power of two) on `agent`.
    ///
    /// # Errors
    /// [`Error::NoAgent`], [`Error::Call`], [`Error::MissingEntry`].
    pub fn new(hsa: &Hsa, agent: AgentId, size: u32) -> Result<Self, Error> {
        let call = "hsa_queue_create";
        let create = entry(call, hsa.table().core.hsa_queue_create_fn)?;
        let gpu = hsa.gpu(agent)?.handle;
        let stopped = Box::new(AtomicU32::new(0));
        let data = (&raw const *stopped).cast_mut().cast::<c_void>();
        let mut queue = std::ptr::null_mut();
        // SAFETY: the agent is the runtime's; the callback matches its data, a box that lives until the queue was
        // destroyed; `queue` outlives the call.
        let status = unsafe {
            create(
                gpu,
                size,
                HSA_QUEUE_TYPE_MULTI.0,
                Some(note_error),
                data,
                u32::MAX,
                u32::MAX,
                &raw mut queue,
            )
        };
        check(call, status)?;
        let refused = Error::Call { call, status: hsa_sys::HSA_STATUS_ERROR_INVALID_QUEUE };
        let Some(queue) = NonNull::new(queue) else { return Err(refused) };
        // SAFETY: the runtime created the queue, and only this value destroys it.
        let header = unsafe { queue.as_ref() };
        let Some(ring) = NonNull::new(header.base_address.cast()) else { return Err(refused) };
        let (size, doorbell) = (u64::from(header.size), header.doorbell_signal);
        Ok(Self { hsa: hsa.clone(), queue, ring, size, doorbell, stopped, producer: Mutex::new(()) })
    }

    /// Slots.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// The runtime's handle, for calls that take one.
    pub fn handle(&self) -> NonNull<hsa_queue_t> {
        self.queue
    }

    /// Enqueues `packets` in order and rings the doorbell. Waits at most `timeout` for room.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`], [`Error::QueueFull`], [`Error::QueueStopped`]; nothing was enqueued then.
    pub fn submit(&self, packets: &[AqlPacket], timeout: Duration) -> Result<(), Error> {
        let count = packets.len() as u64;
        if count > self.size {
            return Err(Error::BatchTooLarge { packets: packets.len(), size: self.size() });
        }
        if packets.is_empty() {
            return Ok(());
        }
        let _producer = self.producer.lock();
        let core = &self.hsa.table().core;
        let load_write =
            entry("hsa_queue_load_write_index_relaxed", core.hsa_queue_load_write_index_relaxed_fn)?;
        let store_write =
            entry("hsa_queue_store_write_index_screlease", core.hsa_queue_store_write_index_screlease_fn)?;
        // SAFETY: the queue is ours and alive.
        let first = unsafe { load_write(self.queue.as_ptr()) };
        self.wait_for_room(first, packets.len(), timeout)?;
        // SAFETY: likewise; only the holder of `producer` moves the index.
        unsafe { store_write(self.queue.as_ptr(), first + count) };
        for (index, packet) in (first..).zip(packets) {
            self.write_slot(index, packet);
        }
        self.hsa.signal_store(self.doorbell, (first + count - 1).cast_signed());
        Ok(())
    }

    /// Enqueues `packets`, gives the last one `signal` as completion signal, and waits until it fell to 0.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit), and [`Error::TimedOut`].
    pub fn submit_and_wait(
        &self,
        packets: &[AqlPacket],
        signal: &HsaSignal,
        timeout: Duration,
    ) -> Result<(), Error> {
        let Some((last, rest)) = packets.split_last() else { return Ok(()) };
        let mut last = *last;
        last.set_completion_signal(signal.handle().handle);
        signal.store(1);
        let mut batch = rest.to_vec();
        batch.push(last);
        self.submit(&batch, timeout)?;
        match signal.wait_below(1, timeout) {
            Err(Error::TimedOut { .. }) if self.error().is_some() => self.check_running(),
            other => other,
        }
    }

    /// What the runtime reported when it stopped the queue.
    pub fn error(&self) -> Option<hsa_status_t> {
        match self.stopped.load(Ordering::Acquire) {
            0 => None,
            status => Some(hsa_status_t(status)),
        }
    }

    fn check_running(&self) -> Result<(), Error> {
        self.error().map_or(Ok(()), |status| Err(Error::QueueStopped { status }))
    }

    fn wait_for_room(&self, first: u64, packets: usize, timeout: Duration) -> Result<(), Error> {
        let load_read = entry(
            "hsa_queue_load_read_index_scacquire",
            self.hsa.table().core.hsa_queue_load_read_index_scacquire_fn,
        )?;
        let deadline = Deadline::after(timeout);
        loop {
            self.check_running()?;
            // SAFETY: the queue is ours and alive.
            let read = unsafe { load_read(self.queue.as_ptr()) };
            if first + packets as u64 - read <= self.size {
                return Ok(());
            }
            if deadline.is_over() {
                return Err(Error::QueueFull { packets, size: self.size(), waited: timeout });
            }
            std::thread::yield_now();
        }
    }

    /// Writes a slot that was reserved and is free: the body first, then the header with release order, so the
    /// packet processor never sees half a packet.
    fn write_slot(&self, index: u64, packet: &AqlPacket) {
        let slot = (index % self.size) as usize;
        // SAFETY: the ring has `size` slots.
        let slot = unsafe { self.ring.add(slot) }.cast::<u32>();
        for (position, &dword) in packet.0.iter().enumerate().skip(1) {
            // SAFETY: a slot has 16 dwords; it is free, so nobody reads or writes it but us.
            let target = unsafe { slot.add(position) };
            // SAFETY: likewise.
            unsafe { target.write_volatile(dword) };
        }
        // SAFETY: aligned, and alive as long as the queue; the packet processor reads it atomically too.
        let header = unsafe { AtomicU32::from_ptr(slot.as_ptr()) };
        header.store(packet.0[0], Ordering::Release);
    }
}

impl Drop for HsaQueue {
    fn drop(&mut self) {
        let Some(destroy) = self.hsa.table().core.hsa_queue_destroy_fn else { return };
        // SAFETY: created in `new`, destroyed once.
        let status = unsafe { destroy(self.queue.as_ptr()) };
        if let Err(error) = check("hsa_queue_destroy", status) {
            tracing::warn!(%error, "queue not destroyed");
        }
    }
}

/// The runtime's error callback of our queues.
unsafe extern "C-unwind" fn note_error(status: hsa_status_t, _queue: *mut hsa_queue_t, data: *mut c_void) {
    if status == HSA_STATUS_SUCCESS {
        return;
    }
    // SAFETY: `data` is the box of the queue, which lives until the queue was destroyed.
    let stopped = unsafe { &*data.cast::<AtomicU32>() };
    stopped.store(status.0, Ordering::Release);
}
