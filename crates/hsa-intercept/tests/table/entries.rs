//! The scripted runtime's entries.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use hsa_sys::*;

use crate::runtime::{self, Callback, Notifier, object, state};

pub(crate) const READ_INDEX: usize = offset_of!(amd_queue_v2_t, read_dispatch_id);
pub(crate) const WRITE_INDEX: usize = offset_of!(amd_queue_v2_t, write_dispatch_id);
const OK: hsa_status_t = HSA_STATUS_SUCCESS;

/// Writes a result.
unsafe fn put<T>(value: T, into: *mut T) -> hsa_status_t {
    // SAFETY: the caller's result.
    unsafe { NonNull::new(into).expect("a place for the result").write(value) };
    OK
}

fn refused(flag: &std::sync::atomic::AtomicBool) -> bool {
    flag.load(Ordering::Relaxed)
}

fn call(name: &'static str, queue: *const hsa_queue_t) -> &'static runtime::Queue {
    state().calls.lock().unwrap().push((name, queue.addr()));
    object(queue)
}

unsafe extern "C-unwind" fn system_get_info(
    attribute: hsa_system_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    if state().is_down.load(Ordering::Acquire) {
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    }
    let answer = if attribute == HSA_SYSTEM_INFO_TIMESTAMP { runtime::now() } else { 1_000_000_000 };
    // SAFETY: both attributes are 64-bit.
    unsafe { put(answer, value.cast()) }
}

type AgentCallback = Option<unsafe extern "C-unwind" fn(hsa_agent_t, *mut c_void) -> hsa_status_t>;

unsafe extern "C-unwind" fn iterate_agents(callback: AgentCallback, data: *mut c_void) -> hsa_status_t {
    let callback = callback.unwrap();
    for agent in std::iter::once(runtime::CPU).chain((0..runtime::GPUS).map(runtime::gpu)) {
        // SAFETY: the caller's callback and data.
        unsafe { callback(agent, data) };
    }
    OK
}

unsafe extern "C-unwind" fn agent_get_info(
    agent: hsa_agent_t,
    attribute: hsa_agent_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    let is_cpu = agent == runtime::CPU;
    match attribute {
        // SAFETY: the type that the header names.
        HSA_AGENT_INFO_DEVICE => unsafe {
            put(if is_cpu { HSA_DEVICE_TYPE_CPU } else { HSA_DEVICE_TYPE_GPU }, value.cast())
        },
        // SAFETY: likewise.
        HSA_AGENT_INFO_NAME => unsafe { put([b'g', b'p', b'u', 0], value.cast()) },
        // SAFETY: the node, 32 bits.
        _ => unsafe { put(agent.handle as u32, value.cast()) },
    }
}

unsafe extern "C-unwind" fn queue_create<const INTERCEPTED: bool>(
    agent: hsa_agent_t,
    size: u32,
    _kind: hsa_queue_type32_t,
    callback: Callback,
    data: *mut c_void,
    _private: u32,
    _group: u32,
    queue: *mut *mut hsa_queue_t,
) -> hsa_status_t {
    match runtime::new_queue(agent, size, callback, data, INTERCEPTED) {
        // SAFETY: the caller's result.
        Ok(made) => unsafe { put(made, queue) },
        Err(status) => status,
    }
}

unsafe extern "C-unwind" fn intercept_register(
    queue: *mut hsa_queue_t,
    hook: hsa_amd_queue_intercept_handler,
    data: *mut c_void,
) -> hsa_status_t {
    if refused(&state().refuse_hook) {
        return HSA_STATUS_ERROR_INVALID_QUEUE;
    }
    call("hsa_amd_queue_intercept_register", queue).set_hook(hook, data);
    OK
}

unsafe extern "C-unwind" fn queue_destroy(queue: *mut hsa_queue_t) -> hsa_status_t {
    call("hsa_queue_destroy", queue).destroy();
    OK
}

macro_rules! queue_calls {
    ($($name:ident: $entry:literal($queue:ty$(, $argument:ident: $kind:ty)*);)*) => { $(
        unsafe extern "C-unwind" fn $name(queue: $queue$(, $argument: $kind)*) -> hsa_status_t {
            call($entry, queue);
            OK
        }
    )* };
}

queue_calls! {
    cu_set_mask: "hsa_amd_queue_cu_set_mask"(*const hsa_queue_t, _count: u32, _mask: *const u32);
    cu_get_mask: "hsa_amd_queue_cu_get_mask"(*const hsa_queue_t, _count: u32, _mask: *mut u32);
    set_priority: "hsa_amd_queue_set_priority"(*mut hsa_queue_t, _priority: hsa_amd_queue_priority_t);
}

unsafe extern "C-unwind" fn inactivate(queue: *mut hsa_queue_t) -> hsa_status_t {
    call("hsa_queue_inactivate", queue).stop();
    OK
}

unsafe extern "C-unwind" fn set_profiler(queue: *mut hsa_queue_t, enabled: c_int) -> hsa_status_t {
    call("hsa_amd_profiling_set_profiler_enabled", queue);
    state().profiled.store(enabled != 0, std::sync::atomic::Ordering::Relaxed);
    OK
}

unsafe extern "C-unwind" fn queue_get_info(
    queue: *mut hsa_queue_t,
    _attribute: hsa_queue_info_attribute_t,
    value: *mut c_void,
) -> hsa_status_t {
    // SAFETY: only the agent is asked for.
    unsafe { put(call("hsa_amd_queue_get_info", queue).agent, value.cast()) }
}

macro_rules! index_entries {
    ($($name:ident($queue:ident, $value:ident$(, $expected:ident)?) -> $result:ty: $answer:expr;)*) => { $(
        unsafe extern "C-unwind" fn $name($queue: *const hsa_queue_t$(, $expected: u64)?, $value: u64) -> $result {
            let $queue = object($queue);
            $answer
        }
    )* };
}

index_entries! {
    store_write(queue, value) -> (): queue.index(WRITE_INDEX).store(value, Ordering::Release);
    store_read(queue, value) -> (): queue.index(READ_INDEX).store(value, Ordering::Release);
    add_write(queue, value) -> u64: queue.index(WRITE_INDEX).fetch_add(value, Ordering::AcqRel);
    cas_write(queue, value, expected) -> u64:
        queue.index(WRITE_INDEX).compare_exchange(expected, value, Ordering::AcqRel, Ordering::Acquire)
            .unwrap_or_else(|found| found);
}

unsafe extern "C-unwind" fn load_write(queue: *const hsa_queue_t) -> u64 {
    object(queue).index(WRITE_INDEX).load(Ordering::Acquire)
}

unsafe extern "C-unwind" fn load_read(queue: *const hsa_queue_t) -> u64 {
    state().looks.fetch_add(1, Ordering::Relaxed);
    object(queue).index(READ_INDEX).load(Ordering::Acquire)
}

unsafe extern "C-unwind" fn signal_create(
    initial: i64,
    _count: u32,
    _consumers: *const hsa_agent_t,
    signal: *mut hsa_signal_t,
) -> hsa_status_t {
    if refused(&state().refuse_signals) {
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    }
    // SAFETY: the caller's result.
    unsafe { put(runtime::new_signal(initial), signal) }
}

unsafe extern "C-unwind" fn amd_signal_create(
    initial: i64,
    count: u32,
    consumers: *const hsa_agent_t,
    _attributes: u64,
    signal: *mut hsa_signal_t,
) -> hsa_status_t {
    // SAFETY: the caller's arguments.
    unsafe { signal_create(initial, count, consumers, signal) }
}

unsafe extern "C-unwind" fn signal_destroy(signal: hsa_signal_t) -> hsa_status_t {
    runtime::destroy_signal(signal.handle);
    OK
}

unsafe extern "C-unwind" fn signal_load(signal: hsa_signal_t) -> i64 {
    runtime::value(signal.handle)
}

unsafe extern "C-unwind" fn signal_store(signal: hsa_signal_t, value: i64) {
    runtime::set(signal.handle, value);
    runtime::stored(signal.handle, value);
}

unsafe extern "C-unwind" fn silent_store(signal: hsa_signal_t, value: i64) {
    runtime::set(signal.handle, value);
}

unsafe extern "C-unwind" fn signal_subtract(signal: hsa_signal_t, by: i64) {
    runtime::add(signal.handle, -by);
}

unsafe extern "C-unwind" fn signal_wait(
    signal: hsa_signal_t,
    _condition: hsa_signal_condition_t,
    limit: i64,
    ticks: u64,
    _hint: hsa_wait_state_t,
) -> i64 {
    runtime::wait_below(signal.handle, limit, ticks)
}

unsafe extern "C-unwind" fn dispatch_time(
    _agent: hsa_agent_t,
    signal: hsa_signal_t,
    time: *mut hsa_amd_profiling_dispatch_time_t,
) -> hsa_status_t {
    let mut times = hsa_amd_profiling_dispatch_time_t::zeroed();
    times.start = runtime::word(signal.handle).start.load(Ordering::Relaxed);
    times.end = runtime::word(signal.handle).end.load(Ordering::Relaxed);
    // SAFETY: the caller's result.
    unsafe { put(times, time) }
}

type PoolCallback = Option<unsafe extern "C-unwind" fn(hsa_amd_memory_pool_t, *mut c_void) -> hsa_status_t>;

unsafe extern "C-unwind" fn iterate_pools(
    agent: hsa_agent_t,
    callback: PoolCallback,
    data: *mut c_void,
) -> hsa_status_t {
    // SAFETY: the caller's callback and data.
    unsafe { callback.unwrap()(hsa_amd_memory_pool_t { handle: agent.handle }, data) }
}

unsafe extern "C-unwind" fn pool_get_info(
    _pool: hsa_amd_memory_pool_t,
    attribute: hsa_amd_memory_pool_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    let segment = attribute == HSA_AMD_MEMORY_POOL_INFO_SEGMENT;
    // SAFETY: both attributes are 32-bit.
    unsafe { put(if segment { HSA_REGION_SEGMENT_GLOBAL.0 } else { u32::MAX }, value.cast()) }
}

unsafe extern "C-unwind" fn pool_allocate(
    _pool: hsa_amd_memory_pool_t,
    size: usize,
    _flags: u32,
    into: *mut *mut c_void,
) -> hsa_status_t {
    if refused(&state().refuse_memory) {
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    }
    let pages = vec![[0u64; 512]; size.div_ceil(4096) + 1].leak();
    let address = pages.as_mut_ptr().cast::<u8>();
    let address = address.wrapping_add(address.align_offset(4096));
    state().live_bytes.fetch_add(size as i64, Ordering::Relaxed);
    state().sizes.lock().unwrap().push((address.addr(), size));
    // SAFETY: the caller's result. A page more than asked for, so that it can begin at a page.
    unsafe { put(address.cast(), into) }
}

unsafe extern "C-unwind" fn pool_free(address: *mut c_void) -> hsa_status_t {
    let mut sizes = state().sizes.lock().unwrap();
    match sizes.iter().position(|(at, _)| *at == address.addr()) {
        Some(index) => {
            state().live_bytes.fetch_sub(sizes.swap_remove(index).1 as i64, Ordering::Relaxed);
        }
        None => {
            state().misuses.fetch_add(1, Ordering::Relaxed);
        }
    }
    if state().is_down.load(Ordering::Acquire) {
        state().misuses.fetch_add(1, Ordering::Relaxed);
    }
    OK
}

unsafe extern "C-unwind" fn allow_access(
    _count: u32,
    _agents: *const hsa_agent_t,
    _flags: *const u32,
    _address: *const c_void,
) -> hsa_status_t {
    OK
}

unsafe extern "C-unwind" fn freeze(_executable: hsa_executable_t, _options: *const c_char) -> hsa_status_t {
    state().frozen.fetch_add(1, Ordering::Relaxed);
    OK
}

unsafe extern "C-unwind" fn executable_destroy(_executable: hsa_executable_t) -> hsa_status_t {
    state().frozen.fetch_sub(1, Ordering::Relaxed);
    OK
}

unsafe extern "C-unwind" fn register_notifier(
    notifier: hsa_amd_runtime_queue_notifier,
    data: *mut c_void,
) -> hsa_status_t {
    *state().notifier.lock().unwrap() = Some(Notifier(notifier, data.expose_provenance()));
    OK
}

unsafe extern "C-unwind" fn soft_queue_create(
    _region: hsa_region_t,
    size: u32,
    _kind: hsa_queue_type32_t,
    _features: u32,
    _doorbell: hsa_signal_t,
    queue: *mut *mut hsa_queue_t,
) -> hsa_status_t {
    // SAFETY: the caller's result.
    unsafe { put(runtime::new_queue(runtime::CPU, size, None, std::ptr::null_mut(), false).unwrap(), queue) }
}

unsafe extern "C-unwind" fn shut_down() -> hsa_status_t {
    runtime::shut_down()
}

pub(crate) fn fill(core: &mut CoreApiTable, amd: &mut AmdExtTable) {
    core.hsa_shut_down_fn = Some(shut_down);
    core.hsa_system_get_info_fn = Some(system_get_info);
    core.hsa_iterate_agents_fn = Some(iterate_agents);
    core.hsa_agent_get_info_fn = Some(agent_get_info);
    core.hsa_queue_create_fn = Some(queue_create::<false>);
    core.hsa_soft_queue_create_fn = Some(soft_queue_create);
    core.hsa_queue_destroy_fn = Some(queue_destroy);
    core.hsa_queue_inactivate_fn = Some(inactivate);
    core.hsa_queue_load_read_index_scacquire_fn = Some(load_read);
    core.hsa_queue_load_read_index_relaxed_fn = Some(load_read);
    core.hsa_queue_load_write_index_scacquire_fn = Some(load_write);
    core.hsa_queue_load_write_index_relaxed_fn = Some(load_write);
    core.hsa_queue_store_write_index_relaxed_fn = Some(store_write);
    core.hsa_queue_store_write_index_screlease_fn = Some(store_write);
    core.hsa_queue_store_read_index_relaxed_fn = Some(store_read);
    core.hsa_queue_store_read_index_screlease_fn = Some(store_read);
    core.hsa_queue_cas_write_index_scacq_screl_fn = Some(cas_write);
    core.hsa_queue_cas_write_index_scacquire_fn = Some(cas_write);
    core.hsa_queue_cas_write_index_relaxed_fn = Some(cas_write);
    core.hsa_queue_cas_write_index_screlease_fn = Some(cas_write);
    core.hsa_queue_add_write_index_scacq_screl_fn = Some(add_write);
    core.hsa_queue_add_write_index_scacquire_fn = Some(add_write);
    core.hsa_queue_add_write_index_relaxed_fn = Some(add_write);
    core.hsa_queue_add_write_index_screlease_fn = Some(add_write);
    core.hsa_signal_create_fn = Some(signal_create);
    core.hsa_signal_destroy_fn = Some(signal_destroy);
    core.hsa_signal_load_scacquire_fn = Some(signal_load);
    core.hsa_signal_load_relaxed_fn = Some(signal_load);
    core.hsa_signal_store_screlease_fn = Some(signal_store);
    core.hsa_signal_store_relaxed_fn = Some(signal_store);
    core.hsa_signal_silent_store_relaxed_fn = Some(silent_store);
    core.hsa_signal_silent_store_screlease_fn = Some(silent_store);
    core.hsa_signal_subtract_screlease_fn = Some(signal_subtract);
    core.hsa_signal_wait_scacquire_fn = Some(signal_wait);
    core.hsa_executable_freeze_fn = Some(freeze);
    core.hsa_executable_destroy_fn = Some(executable_destroy);
    amd.hsa_amd_signal_create_fn = Some(amd_signal_create);
    amd.hsa_amd_profiling_set_profiler_enabled_fn = Some(set_profiler);
    amd.hsa_amd_profiling_get_dispatch_time_fn = Some(dispatch_time);
    amd.hsa_amd_queue_cu_set_mask_fn = Some(cu_set_mask);
    amd.hsa_amd_queue_cu_get_mask_fn = Some(cu_get_mask);
    amd.hsa_amd_queue_set_priority_fn = Some(set_priority);
    amd.hsa_amd_queue_get_info_fn = Some(queue_get_info);
    amd.hsa_amd_queue_intercept_create_fn = Some(queue_create::<true>);
    amd.hsa_amd_queue_intercept_register_fn = Some(intercept_register);
    amd.hsa_amd_runtime_queue_create_register_fn = Some(register_notifier);
    amd.hsa_amd_agent_iterate_memory_pools_fn = Some(iterate_pools);
    amd.hsa_amd_memory_pool_get_info_fn = Some(pool_get_info);
    amd.hsa_amd_memory_pool_allocate_fn = Some(pool_allocate);
    amd.hsa_amd_memory_pool_free_fn = Some(pool_free);
    amd.hsa_amd_agents_allow_access_fn = Some(allow_access);
}
