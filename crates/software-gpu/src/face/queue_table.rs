//! The queues of the process by handle.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use hsa_sys::{HSA_STATUS_ERROR_INVALID_QUEUE, hsa_queue_t};

use super::async_events::AsyncEvents;
use super::error::{Failure, Outcome};
use super::hardware_queue::{HardwareQueue, fault_status};
use super::host::QueueErrors;
use super::intercept_queue::InterceptQueue;
use super::queue_block::QueueBlock;
use crate::{QueueFault, QueueId};

/// A queue that an application holds.
#[derive(Clone)]
pub(super) enum AnyQueue {
    Hardware(Arc<HardwareQueue>),
    Intercept(Arc<InterceptQueue>),
}

impl AnyQueue {
    /// The queue that the device consumes.
    pub(super) fn hardware(&self) -> &HardwareQueue {
        match self {
            Self::Hardware(queue) => queue,
            Self::Intercept(queue) => queue.hardware(),
        }
    }

    /// The memory whose head the application holds.
    pub(super) fn block(&self) -> &QueueBlock {
        match self {
            Self::Hardware(queue) => queue.block(),
            Self::Intercept(queue) => queue.block(),
        }
    }
}

/// All live queues.
pub(super) struct QueueTable {
    queues: RwLock<HashMap<u64, AnyQueue>>,
    events: Arc<AsyncEvents>,
}

impl QueueTable {
    pub(super) fn new(events: Arc<AsyncEvents>) -> Self {
        Self { queues: RwLock::default(), events }
    }

    /// Takes a queue in and returns what the application holds.
    pub(super) fn insert(&self, queue: AnyQueue) -> *mut hsa_queue_t {
        let pointer = queue.block().pointer();
        self.write().insert(queue.block().address(), queue);
        pointer
    }

    /// The queue of a handle.
    pub(super) fn find(&self, queue: *const hsa_queue_t) -> Outcome<AnyQueue> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.get(&(queue.addr() as u64)).cloned().ok_or(Failure(HSA_STATUS_ERROR_INVALID_QUEUE))
    }

    /// Destroys a queue: afterwards neither the device nor a handler touches it.
    pub(super) fn destroy(&self, queue: *const hsa_queue_t) -> Outcome {
        let removed = self.write().remove(&(queue.addr() as u64));
        let queue = removed.ok_or(Failure(HSA_STATUS_ERROR_INVALID_QUEUE))?;
        if let AnyQueue::Intercept(queue) = &queue {
            queue.close();
        }
        Ok(())
    }

    /// Destroys all queues.
    pub(super) fn clear(&self) {
        let queues = std::mem::take(&mut *self.write());
        for queue in queues.values() {
            if let AnyQueue::Intercept(queue) = queue {
                queue.close();
            }
        }
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<u64, AnyQueue>> {
        self.queues.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueErrors for QueueTable {
    /// Tells the application, on the event thread. As in ROCr the callback of an intercept queue's creator gets the
    /// hardware queue.
    fn queue_error(&self, gpu: usize, queue: QueueId, fault: QueueFault) {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        let failed = queues.values().find(|any| any.hardware().is(gpu, queue)).cloned();
        drop(queues);
        tracing::error!(gpu, %queue, ?fault, "a queue stopped");
        let Some(failed) = failed else { return };
        let Some(on_error) = failed.hardware().on_error() else { return };
        let (pointer, status) =
            (failed.hardware().block().pointer().expose_provenance(), fault_status(fault));
        self.events.run(Box::new(move || {
            let on_error = on_error;
            // SAFETY: the application registered the callback for this call; `failed` keeps the queue's memory alive
            // until the callback returns.
            unsafe {
                (on_error.function)(status, std::ptr::with_exposed_provenance_mut(pointer), on_error.data)
            };
            drop(failed);
        }));
    }
}
