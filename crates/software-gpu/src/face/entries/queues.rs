//! Queues: creation and end, indices in every memory order, what is asked and set.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use hsa_sys::*;

use crate::face::agents::AgentIndex;
use crate::face::error::{Failure, Outcome, status};
use crate::face::hardware_queue::{OnError, Request};
use crate::face::out::{array, put, put_bytes};
use crate::face::queue_block::{read_index, write_index};
use crate::face::queue_table::OnSystemEvent;
use crate::face::runtime::current;

/// Error callback of a queue as C passes it.
pub(super) type QueueCallback =
    Option<unsafe extern "C-unwind" fn(hsa_status_t, *mut hsa_queue_t, *mut c_void)>;

/// What the creating calls have in common.
pub(super) fn request(
    packets: u32,
    kind: hsa_queue_type32_t,
    callback: QueueCallback,
    data: *mut c_void,
    private_segment_bytes: u32,
) -> Request {
    let on_error = callback.map(|function| OnError { function, data });
    Request { packets, kind, on_error, private_segment_bytes, poll_doorbell: false }
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_queue_create(
    agent: hsa_agent_t,
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
        let AgentIndex::Gpu(index) = runtime.agents.find(agent)? else {
            // ROCr's CPU agents have no packet processor.
            return Err(Failure::ERROR);
        };
        let request = request(size, type_, callback, data, private_segment_size);
        let created = runtime.create_queue(index, &runtime.agents.gpus()[index], request)?;
        // SAFETY: not null, and writable as HSA demands.
        unsafe { put(queue, runtime.queues.insert(created)) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_queue_destroy(queue: *mut hsa_queue_t) -> hsa_status_t {
    status(current().and_then(|runtime| {
        if queue.is_null() { Err(Failure::ARGUMENT) } else { runtime.queues.destroy(queue) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_queue_inactivate(
    queue: *mut hsa_queue_t,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        runtime.queues.find(queue)?.hardware().inactivate();
        Ok(())
    }))
}

macro_rules! index_loads {
    ($($name:ident $index:ident $order:ident),*) => { $(
        #[doc = hsa_contract!()]
        pub(in crate::face) unsafe extern "C-unwind" fn $name(queue: *const hsa_queue_t) -> u64 {
            // SAFETY: a live queue, as HSA demands.
            unsafe { $index(queue) }.load(Ordering::$order)
        }
    )* };
}

index_loads!(
    hsa_queue_load_read_index_scacquire read_index Acquire,
    hsa_queue_load_read_index_relaxed read_index Relaxed,
    hsa_queue_load_write_index_scacquire write_index Acquire,
    hsa_queue_load_write_index_relaxed write_index Relaxed
);

macro_rules! index_stores {
    ($($name:ident $index:ident $order:ident),*) => { $(
        #[doc = hsa_contract!()]
        pub(in crate::face) unsafe extern "C-unwind" fn $name(queue: *const hsa_queue_t, value: u64) {
            // SAFETY: a live queue, as HSA demands.
            unsafe { $index(queue) }.store(value, Ordering::$order);
        }
    )* };
}

index_stores!(
    hsa_queue_store_write_index_relaxed write_index Relaxed,
    hsa_queue_store_write_index_screlease write_index Release,
    hsa_queue_store_read_index_relaxed read_index Relaxed,
    hsa_queue_store_read_index_screlease read_index Release
);

macro_rules! index_adds {
    ($($name:ident $order:ident),*) => { $(
        #[doc = hsa_contract!()]
        pub(in crate::face) unsafe extern "C-unwind" fn $name(queue: *const hsa_queue_t, value: u64) -> u64 {
            // SAFETY: a live queue, as HSA demands.
            unsafe { write_index(queue) }.fetch_add(value, Ordering::$order)
        }
    )* };
}

index_adds!(
    hsa_queue_add_write_index_scacq_screl AcqRel,
    hsa_queue_add_write_index_scacquire Acquire,
    hsa_queue_add_write_index_relaxed Relaxed,
    hsa_queue_add_write_index_screlease Release
);

macro_rules! index_swaps {
    ($($name:ident $success:ident $failure:ident),*) => { $(
        #[doc = hsa_contract!()]
        pub(in crate::face) unsafe extern "C-unwind" fn $name(
            queue: *const hsa_queue_t,
            expected: u64,
            value: u64,
        ) -> u64 {
            // SAFETY: a live queue, as HSA demands.
            let index = unsafe { write_index(queue) };
            let swapped = index.compare_exchange(expected, value, Ordering::$success, Ordering::$failure);
            swapped.unwrap_or_else(|found| found)
        }
    )* };
}

index_swaps!(
    hsa_queue_cas_write_index_scacq_screl AcqRel Acquire,
    hsa_queue_cas_write_index_scacquire Acquire Acquire,
    hsa_queue_cas_write_index_relaxed Relaxed Relaxed,
    hsa_queue_cas_write_index_screlease Release Relaxed
);

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_queue_get_info(
    queue: *mut hsa_queue_t,
    attribute: hsa_queue_info_attribute_t,
    value: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let queue = runtime.queues.find(queue)?;
        let bytes = match attribute {
            HSA_AMD_QUEUE_INFO_AGENT => queue.hardware().agent().handle().handle.to_ne_bytes(),
            HSA_AMD_QUEUE_INFO_DOORBELL_ID => u64::from(queue.hardware().device_queue().0).to_ne_bytes(),
            _ => return Err(Failure::ARGUMENT),
        };
        // SAFETY: null or large enough for the attribute, as the extension demands.
        unsafe { put_bytes(value, &bytes) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_queue_set_priority(
    queue: *mut hsa_queue_t,
    priority: hsa_amd_queue_priority_t,
) -> hsa_status_t {
    // The model runs all queues alike; the call's rules hold.
    status(current().and_then(|runtime| {
        runtime.queues.find(queue)?;
        let known = [HSA_AMD_QUEUE_PRIORITY_LOW, HSA_AMD_QUEUE_PRIORITY_NORMAL, HSA_AMD_QUEUE_PRIORITY_HIGH];
        if known.contains(&priority) { Ok(()) } else { Err(Failure::ARGUMENT) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_queue_cu_set_mask(
    queue: *const hsa_queue_t,
    num_cu_mask_count: u32,
    cu_mask: *const u32,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let queue = runtime.queues.find(queue)?;
        if !num_cu_mask_count.is_multiple_of(u32::BITS) {
            return Err(Failure::ARGUMENT);
        }
        // SAFETY: one word per 32 bits, as the extension demands.
        let mask = unsafe { array(cu_mask, (num_cu_mask_count / u32::BITS) as usize) }?;
        queue.hardware().set_cu_mask(mask);
        Ok(())
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_queue_cu_get_mask(
    queue: *const hsa_queue_t,
    num_cu_mask_count: u32,
    cu_mask: *mut u32,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let queue = runtime.queues.find(queue)?;
        if num_cu_mask_count == 0 || !num_cu_mask_count.is_multiple_of(u32::BITS) {
            return Err(Failure::ARGUMENT);
        }
        let mask = queue.hardware().cu_mask();
        // No mask means all compute units.
        let word =
            |word: usize| mask.get(word).copied().unwrap_or(if mask.is_empty() { u32::MAX } else { 0 });
        (0..(num_cu_mask_count / u32::BITS) as usize).try_for_each(|index| -> Outcome {
            if cu_mask.is_null() {
                return Err(Failure::ARGUMENT);
            }
            // SAFETY: one word per 32 bits, as the extension demands.
            unsafe { put(cu_mask.wrapping_add(index), word(index)) }
        })
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_register_system_event_handler(
    callback: hsa_amd_system_event_callback_t,
    data: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let function = callback.ok_or(Failure::ARGUMENT)?;
        runtime.queues.add_system_handler(OnSystemEvent { function, data });
        Ok(())
    }))
}
