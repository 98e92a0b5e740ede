//! The end of an intercept queue that its own callback destroys, or that another thread is still inside of.
//!
//! ROCr calls the write hook with the queue's lock held and goes on with the queue after it, and its destroy waits for the
//! thread that handles events, which may be the one that is inside the hook. So neither can be done there: a thread of ours
//! waits until the hook was left, rings the queue's doorbell once more, for which ROCr takes the lock and finds nothing, and
//! then destroys the queue.

use std::sync::Arc;

use hsa_sys::{hsa_signal_t, hsa_status_t};
use wavescope_core::sync::{Condvar, Deadline, Mutex};

use crate::engine::Engine;
use crate::hsa_device::HsaDevice;
use crate::runtime_queue::{RuntimeQueue, destroy};
use crate::thread_mark;
use crate::threads;

/// Of its threads.
const NAME: &str = "wavescope-end";

/// How many queues have yet to end.
#[derive(Debug, Default)]
pub(crate) struct LateEnds {
    under_way: Mutex<usize>,
    changed: Condvar,
}

impl LateEnds {
    /// Ends a queue soon, which is closed already. Without a thread it stays for good.
    pub(crate) fn end(
        self: &Arc<Self>,
        device: &Arc<HsaDevice>,
        engine: &Arc<Engine>,
        record: Arc<RuntimeQueue>,
    ) {
        *self.under_way.lock() += 1;
        let (ends, device, engine) = (Arc::clone(self), Arc::clone(device), Arc::clone(engine));
        let kept = Arc::clone(&record);
        let run = move || {
            thread_mark::mark_internal();
            let status = end(&device, &record);
            tracing::debug!(?status, queue = %record.handle().id(), "queue destroyed after its callback");
            engine.queue_destroyed(record.handle());
            if status.is_none() {
                // Somebody may be inside its hook for good.
                std::mem::forget(record);
            }
            ends.ended();
        };
        if let Err(error) = threads::create(NAME, run) {
            tracing::error!(%error, queue = %kept.handle().id(), "a queue is kept for good");
            // The runtime may still call its hook.
            std::mem::forget(kept);
            self.ended();
        }
    }

    fn ended(&self) {
        *self.under_way.lock() -= 1;
        self.changed.notify_all();
    }

    /// Waits for those that are under way. `false` if one was left at the `deadline`.
    pub(crate) fn wait(&self, deadline: Deadline) -> bool {
        let mut under_way = self.under_way.lock();
        while *under_way > 0 && !deadline.is_over() {
            under_way = self.changed.wait_timeout(under_way, deadline.left()).0;
        }
        *under_way == 0
    }
}

/// `None` if the runtime goes before: then the queue is gone too.
fn end(device: &HsaDevice, record: &RuntimeQueue) -> Option<hsa_status_t> {
    record.hold(|| device.gate().is_gone());
    let (_pass, hsa) = (device.gate().enter()?, device.hsa());
    let queue = record.pointer();
    if let Some(load) = hsa.table().core.hsa_queue_load_read_index_scacquire_fn {
        // SAFETY: the queue is there until it is destroyed below.
        let read = unsafe { load(queue) };
        // SAFETY: likewise.
        let doorbell: hsa_signal_t = unsafe { &*queue }.doorbell_signal;
        // What was rung for last: nothing new.
        hsa.signal_store(doorbell, read.cast_signed() - 1);
    }
    // SAFETY: the application's queue, which it gave up. Nobody is inside its hook, and nobody gets there: whoever was
    // has given back the lock that the doorbell was rung under.
    Some(unsafe { destroy(hsa, queue) })
}
