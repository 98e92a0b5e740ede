//! The technique `runtime`: the runtime's own intercept queue (`hsa_amd_queue_intercept_create`), which calls our write
//! hook with the packets of each doorbell.
//!
//! A queue that is destroyed while somebody is inside its hook ends later: see [`late_end`](crate::late_end).

use std::ffi::c_void;
use std::sync::Arc;
// The runtime's threads take part.
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use hsa_sys::{
    HSA_STATUS_ERROR, HSA_STATUS_ERROR_OUT_OF_RESOURCES, HSA_STATUS_SUCCESS, hsa_agent_t,
    hsa_amd_queue_intercept_packet_writer, hsa_queue_t, hsa_queue_type32_t, hsa_status_t,
};
use wavescope_core::AqlPacket;
use wavescope_core::sync::Deadline;
use wavescope_hsa::Hsa;

use crate::engine::QueueHandle;
use crate::front::{PATIENCE_INSIDE, Turn};
use crate::interceptor::as_data;
use crate::thread_mark::{InsideHook, own_thread};

/// The callback that an application gives with a queue.
pub(crate) type ErrorCallback =
    Option<unsafe extern "C-unwind" fn(hsa_status_t, *mut hsa_queue_t, *mut c_void)>;

/// The arguments of `hsa_queue_create`.
#[derive(Clone, Copy)]
pub(crate) struct Creation {
    pub(crate) agent: hsa_agent_t,
    pub(crate) size: u32,
    pub(crate) kind: hsa_queue_type32_t,
    pub(crate) callback: ErrorCallback,
    pub(crate) data: *mut c_void,
    pub(crate) private_segment_size: u32,
    pub(crate) group_segment_size: u32,
}

impl Creation {
    /// Creates the queue as the application asked for it, unintercepted.
    ///
    /// # Safety
    /// The arguments are those of the application's call.
    pub(crate) unsafe fn plain(&self, hsa: &Hsa, queue: *mut *mut hsa_queue_t) -> hsa_status_t {
        let Some(create) = hsa.table().core.hsa_queue_create_fn else { return HSA_STATUS_ERROR };
        let (private, group) = (self.private_segment_size, self.group_segment_size);
        // SAFETY: by this function's contract.
        unsafe { create(self.agent, self.size, self.kind, self.callback, self.data, private, group, queue) }
    }
}

/// An intercepted queue. Hook and error callback point to it, so it lives until the runtime's destroy returned.
#[derive(Debug)]
pub(crate) struct RuntimeQueue {
    handle: QueueHandle,
    /// The queue that the application knows; set before it does.
    queue: AtomicPtr<hsa_queue_t>,
    callback: ErrorCallback,
    data: *mut c_void,
    /// Who is inside the hook.
    turn: Turn,
}

/// Between two looks at whether a hook was left.
const PAUSE: Duration = Duration::from_micros(100);

// SAFETY: the pointers are the application's callback data and the queue's handle. They are only passed on, to
// functions that the application and the runtime call from any thread.
unsafe impl Send for RuntimeQueue {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for RuntimeQueue {}

impl RuntimeQueue {
    /// Creates the intercept queue with our hook.
    ///
    /// # Safety
    /// The arguments are those of the application's call.
    ///
    /// # Errors
    /// The runtime's status, unchanged; nothing is left behind.
    pub(crate) unsafe fn create(
        hsa: &Hsa,
        creation: &Creation,
        handle: QueueHandle,
    ) -> Result<Arc<Self>, hsa_status_t> {
        let amd = &hsa.table().amd;
        let create = amd.hsa_amd_queue_intercept_create_fn.ok_or(HSA_STATUS_ERROR)?;
        let register = amd.hsa_amd_queue_intercept_register_fn.ok_or(HSA_STATUS_ERROR)?;
        let (callback, data) = (creation.callback, creation.data);
        let queue = AtomicPtr::new(std::ptr::null_mut());
        let record = Arc::new(Self { handle, queue, callback, data, turn: Turn::default() });
        let Creation { agent, size, kind, private_segment_size, group_segment_size, .. } = *creation;
        let mut created = std::ptr::null_mut();
        let record_data = as_data(&*record);
        // SAFETY: the application's arguments, but for the callback, whose data is the record above.
        let status = unsafe {
            create(
                agent,
                size,
                kind,
                Some(on_error),
                record_data,
                private_segment_size,
                group_segment_size,
                &raw mut created,
            )
        };
        if status != HSA_STATUS_SUCCESS {
            return Err(status);
        }
        if created.is_null() {
            return Err(HSA_STATUS_ERROR_OUT_OF_RESOURCES);
        }
        record.queue.store(created, Ordering::Release);
        // SAFETY: the queue is new and only we know it.
        unsafe { enable_times(hsa, created) };
        // SAFETY: the hook matches its data, the record, which lives until the queue's destroy returned.
        let status = unsafe { register(created, Some(on_write), as_data(&*record)) };
        if status != HSA_STATUS_SUCCESS {
            // SAFETY: the queue is new and only we know it.
            let destroyed = unsafe { destroy(hsa, created) };
            tracing::debug!(status = ?destroyed, "queue without a hook destroyed");
            return Err(status);
        }
        Ok(record)
    }

    pub(crate) fn handle(&self) -> &QueueHandle {
        &self.handle
    }

    pub(crate) fn pointer(&self) -> *mut hsa_queue_t {
        self.queue.load(Ordering::Acquire)
    }

    /// Lets nothing more through, and waits until nobody is inside the hook. `false` if the queue cannot be destroyed here:
    /// this thread is inside, or another that had not left at the `deadline`, or the runtime's destroy would wait for this
    /// very thread.
    pub(crate) fn close(&self, deadline: Deadline) -> bool {
        self.turn.close();
        let patience = if InsideHook::is_current() { PATIENCE_INSIDE } else { Duration::MAX };
        let deadline = Deadline::after(patience.min(deadline.left_or_a_moment()));
        while !self.turn.is_mine() && !deadline.is_over() {
            if self.turn.hold() {
                let on_event_thread = own_thread().is_none();
                if on_event_thread {
                    let _ = self.turn.leave();
                }
                return !on_event_thread;
            }
            std::thread::park_timeout(PAUSE);
        }
        false
    }

    /// The runtime did not destroy it: it goes on.
    pub(crate) fn reopen(&self) {
        self.turn.reopen();
    }

    /// Waits until nobody is inside the hook; nobody gets there after that. Gives up when `is_vain`.
    pub(crate) fn hold(&self, is_vain: impl Fn() -> bool) {
        while !self.turn.hold() && !is_vain() {
            std::thread::park_timeout(PAUSE);
        }
    }

    /// The queue's address, by which the application names it.
    pub(crate) fn address(&self) -> usize {
        self.pointer().addr()
    }
}

/// Without this the packet processor records no times.
///
/// # Safety
/// `queue` is an intercept queue of the runtime.
pub(crate) unsafe fn enable_times(hsa: &Hsa, queue: *mut hsa_queue_t) {
    let Some(enable) = hsa.table().amd.hsa_amd_profiling_set_profiler_enabled_fn else { return };
    // SAFETY: by this function's contract.
    let status = unsafe { enable(queue, 1) };
    if status != HSA_STATUS_SUCCESS {
        tracing::warn!(?status, "the runtime records no kernel times on a queue");
    }
}

/// Destroys a queue through the runtime.
///
/// # Safety
/// The runtime's queue, and nobody uses it after this.
pub(crate) unsafe fn destroy(hsa: &Hsa, queue: *mut hsa_queue_t) -> hsa_status_t {
    let Some(destroy) = hsa.table().core.hsa_queue_destroy_fn else { return HSA_STATUS_ERROR };
    // SAFETY: by this function's contract.
    unsafe { destroy(queue) }
}

/// The runtime's error callback of an intercepted queue: what is in flight is lost, then the application's own runs. ROCr
/// names the queue behind the intercept queue, which the application never saw.
unsafe extern "C-unwind" fn on_error(status: hsa_status_t, _queue: *mut hsa_queue_t, data: *mut c_void) {
    // SAFETY: `data` is the record, which lives until the queue's destroy returned.
    let record = unsafe { &*data.cast::<RuntimeQueue>() };
    if status != HSA_STATUS_SUCCESS {
        record.handle.failed();
    }
    // The application has given up a closed one, and what its callback needs.
    if let Some(callback) = record.callback
        && !record.turn.is_closed()
    {
        // SAFETY: the application's callback with its own queue and data.
        unsafe { callback(status, record.pointer(), record.data) };
    }
}

/// The write hook. The runtime calls it with the queue's lock held, on the thread that rang the doorbell or on its own.
unsafe extern "C-unwind" fn on_write(
    packets: *const c_void,
    count: u64,
    first: u64,
    data: *mut c_void,
    writer: hsa_amd_queue_intercept_packet_writer,
) {
    let Some(writer) = writer else { return };
    // SAFETY: `data` is the record, which lives until the queue's destroy returned.
    let record = unsafe { &*data.cast::<RuntimeQueue>() };
    let inside = record.turn.take().then(|| Inside(&record.turn));
    if record.turn.is_closed() {
        return;
    }
    let write = |batch: &[AqlPacket]| {
        // A callback may have destroyed the queue: what it has in hand is dropped.
        if !record.turn.is_closed() {
            // SAFETY: the runtime's writer takes `len` packets of 64 bytes and copies them before it returns.
            unsafe { writer(batch.as_ptr().cast(), batch.len() as u64) };
        }
    };
    let packets = packets.cast::<AqlPacket>();
    let count = count as usize;
    if packets.is_aligned() {
        // SAFETY: the runtime passes `count` finished packets that nobody writes during the call.
        let batch = unsafe { std::slice::from_raw_parts(packets, count) };
        record.handle.rewrite(batch, first, write);
    } else {
        // A batch that wraps the ring comes in a buffer of the runtime's, aligned as it likes.
        let read = |index| {
            // SAFETY: `index` stays below `count`, the packets are as above.
            unsafe { packets.wrapping_add(index).read_unaligned() }
        };
        let batch: Vec<_> = (0..count).map(read).collect();
        record.handle.rewrite(&batch, first, write);
    }
    drop(inside);
}

/// The hook is left, also if a callback panics.
struct Inside<'a>(&'a Turn);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // Nobody leaves the end to a hook.
        let _ = self.0.leave();
    }
}
