//! Queue interception: intercept queues, their handlers, and news of the runtime's own queues.

use std::ffi::c_void;

use hsa_sys::*;

use super::queues::{QueueCallback, request};
use crate::face::agents::AgentIndex;
use crate::face::error::{Failure, status};
use crate::face::out::put;
use crate::face::queue_table::AnyQueue;
use crate::face::runtime::current;

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_queue_intercept_create(
    agent_handle: hsa_agent_t,
    size: u32,
    type_: hsa_queue_type32_t,
    callback: QueueCallback,
    data: *mut c_void,
    private_segment_size: u32,
    _group_segment_size: u32,
    queue: *mut *mut hsa_queue_t,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        if queue.is_null() {
            return Err(Failure::ARGUMENT);
        }
        let AgentIndex::Gpu(index) = runtime.agents.find(agent_handle)? else {
            return Err(Failure::ERROR);
        };
        let request = request(size, type_, callback, data, private_segment_size);
        let created = runtime.create_intercept_queue(index, &runtime.agents.gpus()[index], request)?;
        // SAFETY: not null, and writable as the call demands.
        unsafe { put(queue, runtime.queues.insert(created)) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_queue_intercept_register(
    queue: *mut hsa_queue_t,
    callback: hsa_amd_queue_intercept_handler,
    user_data: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let function = callback.ok_or(Failure::ARGUMENT)?;
        match runtime.queues.find(queue)? {
            AnyQueue::Intercept(queue) => {
                queue.register(function, user_data);
                Ok(())
            }
            AnyQueue::Hardware(_) => Err(Failure(HSA_STATUS_ERROR_INVALID_QUEUE)),
        }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_runtime_queue_create_register(
    callback: hsa_amd_runtime_queue_notifier,
    _user_data: *mut c_void,
) -> hsa_status_t {
    // This runtime makes no queue of its own: copies and code loading need none. So there is never news.
    status(current().and_then(|_| callback.map(drop).ok_or(Failure::ARGUMENT)))
}
