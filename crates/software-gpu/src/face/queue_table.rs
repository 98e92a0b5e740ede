//! The queues of the process by handle.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hsa_sys::{
    HSA_AMD_GPU_MEMORY_FAULT_EVENT, HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT, HSA_STATUS_ERROR_INVALID_QUEUE,
    hsa_amd_event_anon_union_t, hsa_amd_event_t, hsa_amd_gpu_memory_fault_info_t, hsa_queue_t, hsa_status_t,
};

use super::agents::AgentIndex;
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

/// A handler of machine-wide events with its argument.
#[derive(Clone, Copy)]
pub(super) struct OnSystemEvent {
    pub(super) function: SystemEventHandler,
    pub(super) data: *mut c_void,
}

/// What such a handler is.
pub(super) type SystemEventHandler =
    unsafe extern "C-unwind" fn(event: *const hsa_amd_event_t, data: *mut c_void) -> hsa_status_t;

// SAFETY: the pointer only goes back to the function it came with, which HSA calls from the runtime's thread.
unsafe impl Send for OnSystemEvent {}
// SAFETY: as for `Send`; nothing is reached through the pointer here.
unsafe impl Sync for OnSystemEvent {}

/// All live queues.
pub(super) struct QueueTable {
    queues: RwLock<HashMap<u64, AnyQueue>>,
    system_handlers: Mutex<Vec<OnSystemEvent>>,
    events: Arc<AsyncEvents>,
}

impl QueueTable {
    pub(super) fn new(events: Arc<AsyncEvents>) -> Self {
        Self { queues: RwLock::default(), system_handlers: Mutex::default(), events }
    }

    /// Adds a handler that hears of memory faults.
    pub(super) fn add_system_handler(&self, handler: OnSystemEvent) {
        self.system_handlers.lock().unwrap_or_else(PoisonError::into_inner).push(handler);
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

    /// Tells the system event handlers, on the event thread.
    fn report_memory_fault(&self, gpu: usize, address: u64) {
        let handlers = self.system_handlers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let memory_fault = hsa_amd_gpu_memory_fault_info_t {
            agent: AgentIndex::Gpu(gpu).handle(),
            virtual_address: address,
            fault_reason_mask: HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT.0,
        };
        for handler in handlers {
            self.events.run(Box::new(move || {
                let handler = handler;
                let event = hsa_amd_event_t {
                    event_type: HSA_AMD_GPU_MEMORY_FAULT_EVENT,
                    anon_union: hsa_amd_event_anon_union_t { memory_fault },
                };
                // SAFETY: the application registered the handler for this call; the event lives during it.
                unsafe { (handler.function)(&raw const event, handler.data) };
            }));
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
        if let QueueFault::Memory { address } = fault {
            self.report_memory_fault(gpu, address);
        }
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
