//! A queue that the device consumes.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hsa_sys::*;

use super::agents::{AgentIndex, Gpu, QUEUE_PACKETS};
use super::allocations::Allocations;
use super::error::{Failure, Outcome};
use super::queue_block::{Limits, QueueBlock};
use super::signal::{Ring, Signal, Wake};
use crate::{Doorbell, QueueConfig, QueueFault, QueueId};

/// Scratch per work-item beyond which ROCr refuses a queue, in bytes (amd_gpu_agent.cpp).
const SCRATCH_LIMIT: u32 = 262_128;

/// Queue numbers of the process (`hsa_queue_t.id`).
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// A number that no queue of the process has yet.
pub(super) fn next_queue_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// What an application hears when its queue fails.
pub(super) type ErrorCallback =
    unsafe extern "C-unwind" fn(status: hsa_status_t, queue: *mut hsa_queue_t, data: *mut c_void);

/// The callback with its argument.
#[derive(Clone, Copy)]
pub(super) struct OnError {
    pub(super) function: ErrorCallback,
    pub(super) data: *mut c_void,
}

// SAFETY: the pointer is only handed back to the function it came with, which HSA calls from the runtime's thread.
unsafe impl Send for OnError {}
// SAFETY: as for `Send`; nothing is reached through the pointer here.
unsafe impl Sync for OnError {}

/// What a queue is made from.
pub(super) struct Request {
    pub(super) packets: u32,
    pub(super) kind: hsa_queue_type32_t,
    pub(super) on_error: Option<OnError>,
    pub(super) private_segment_bytes: u32,
    /// Whether the device also looks at the doorbell's word in memory.
    pub(super) poll_doorbell: bool,
}

/// One queue of a GPU.
pub(super) struct HardwareQueue {
    consumer: Arc<Consumer>,
    doorbell: &'static Signal,
    inactive: &'static Signal,
    gpu: usize,
    device_queue: QueueId,
    on_error: Option<OnError>,
    cu_mask: Mutex<Vec<u32>>,
}

/// The device's side, behind the doorbell.
struct Consumer {
    // Field order is drop order: the device's thread stops before its memory goes.
    queue: RwLock<Option<crate::Queue>>,
    block: QueueBlock,
}

impl Ring for Consumer {
    fn ring(&self, index: u64) {
        self.block.doorbell_word().store(index, Ordering::Release);
        if let Some(queue) = &*self.queue.read().unwrap_or_else(PoisonError::into_inner) {
            queue.ring(index);
        }
    }
}

impl HardwareQueue {
    /// Creates the queue on `gpu`, as `hsa_queue_create` does.
    pub(super) fn create(
        index: usize,
        gpu: &Gpu,
        memory: &Arc<Allocations>,
        request: &Request,
    ) -> Outcome<Self> {
        request.check()?;
        let block = QueueBlock::allocate(memory, request.packets)?;
        let word = block.doorbell_address();
        let doorbell = if request.poll_doorbell { Doorbell::Memory(word) } else { Doorbell::Rung };
        let queue = gpu.device.create_queue(QueueConfig {
            ring: block.ring_address(),
            packets: block.packets(),
            write_index: block.write_index_address(),
            read_index: block.read_index_address(),
            doorbell,
        });
        let queue = queue.map_err(creation_failure)?;
        let device_queue = queue.id();
        let consumer = Arc::new(Consumer { queue: RwLock::new(Some(queue)), block });
        let block = &consumer.block;
        let doorbell = Signal::create_doorbell(word, block.address(), Arc::clone(&consumer) as _);
        block.describe(next_queue_id(), request.kind, doorbell.handle(), Limits::of(gpu));
        Ok(Self {
            consumer,
            doorbell,
            inactive: Signal::create(0, Wake::Poll),
            gpu: index,
            device_queue,
            on_error: request.on_error,
            cu_mask: Mutex::default(),
        })
    }

    pub(super) fn block(&self) -> &QueueBlock {
        &self.consumer.block
    }

    /// Rings the device.
    pub(super) fn ring(&self, index: u64) {
        self.consumer.ring(index);
    }

    pub(super) fn agent(&self) -> AgentIndex {
        AgentIndex::Gpu(self.gpu)
    }

    /// Whether it is this queue of the device.
    pub(super) fn is(&self, gpu: usize, queue: QueueId) -> bool {
        self.gpu == gpu && self.device_queue == queue
    }

    pub(super) fn device_queue(&self) -> QueueId {
        self.device_queue
    }

    pub(super) fn on_error(&self) -> Option<OnError> {
        self.on_error
    }

    pub(super) fn inactivate(&self) {
        if let Some(queue) = &*self.consumer.queue.read().unwrap_or_else(PoisonError::into_inner) {
            queue.inactivate();
        }
    }

    /// The mask of compute units; empty while none was set. The model accepts and reports it, and places waves on all.
    pub(super) fn cu_mask(&self) -> Vec<u32> {
        self.cu_mask.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_cu_mask(&self, mask: Vec<u32>) {
        *self.cu_mask.lock().unwrap_or_else(PoisonError::into_inner) = mask;
    }
}

impl Drop for HardwareQueue {
    fn drop(&mut self) {
        self.doorbell.destroy();
        self.inactive.destroy();
        // Stops the consumer and waits for its thread: afterwards the device touches nothing of the queue.
        drop(self.consumer.queue.write().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Request {
    fn check(&self) -> Outcome {
        if !self.packets.is_power_of_two() || self.packets < *QUEUE_PACKETS.start() {
            return Err(Failure::ARGUMENT);
        }
        let scratch = self.private_segment_bytes;
        if self.packets > *QUEUE_PACKETS.end() || (scratch != u32::MAX && scratch > SCRATCH_LIMIT) {
            return Err(Failure(HSA_STATUS_ERROR_OUT_OF_RESOURCES));
        }
        let cooperative = HSA_QUEUE_TYPE_COOPERATIVE.0;
        if self.kind == cooperative {
            return Err(Failure(HSA_STATUS_ERROR_INVALID_QUEUE_CREATION));
        }
        if self.kind > cooperative { Err(Failure::ARGUMENT) } else { Ok(()) }
    }
}

fn creation_failure(error: crate::Error) -> Failure {
    tracing::warn!(%error, "the device refused a queue");
    Failure(match error {
        crate::Error::TooManyQueues { .. } | crate::Error::Injected(_) | crate::Error::Thread { .. } => {
            HSA_STATUS_ERROR_OUT_OF_RESOURCES
        }
        _ => HSA_STATUS_ERROR_INVALID_QUEUE_CREATION,
    })
}

/// The status that a queue's error callback gets (amd_aql_queue.cpp, DynamicQueueEventsHandler and ExceptionHandler).
pub(super) fn fault_status(fault: QueueFault) -> hsa_status_t {
    match fault {
        QueueFault::InvalidPacket { .. } | QueueFault::InvalidCommands { .. } => {
            HSA_STATUS_ERROR_INVALID_PACKET_FORMAT
        }
        QueueFault::InvalidDispatch { .. } => HSA_STATUS_ERROR_INVALID_ALLOCATION,
        QueueFault::Memory { .. } => HSA_STATUS_ERROR_MEMORY_FAULT,
        QueueFault::Injected(status) => hsa_status_t(status),
    }
}
