//! Memory: pools, regions, access, copies, pointers.

use std::ffi::{c_int, c_void};

use hsa_sys::*;

use crate::face::address_map::GpuSet;
use crate::face::agents::AgentIndex;
use crate::face::allocations::Origin;
use crate::face::copies::Copy;
use crate::face::error::{Failure, Outcome, proceed, status};
use crate::face::out::{array, put, put_bytes};
use crate::face::pools::{self, Pool};
use crate::face::runtime::{Runtime, current};
use crate::face::signal::Signal;

const INVALID_POOL: Failure = Failure(HSA_STATUS_ERROR_INVALID_MEMORY_POOL);
const INVALID_REGION: Failure = Failure(HSA_STATUS_ERROR_INVALID_REGION);

type PoolCallback = Option<unsafe extern "C-unwind" fn(hsa_amd_memory_pool_t, *mut c_void) -> hsa_status_t>;
type RegionCallback = Option<unsafe extern "C-unwind" fn(hsa_region_t, *mut c_void) -> hsa_status_t>;

fn pool_of(runtime: &Runtime, handle: hsa_amd_memory_pool_t) -> Outcome<Pool> {
    pools::find(&runtime.agents, handle.handle, INVALID_POOL)
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_agent_iterate_memory_pools(
    agent: hsa_agent_t,
    callback: PoolCallback,
    data: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let callback = callback.ok_or(Failure::ARGUMENT)?;
        let agent = runtime.agents.find(agent)?;
        pools::pools(&runtime.agents, agent).iter().try_for_each(|pool| {
            // SAFETY: the caller passed the callback for this call and this data.
            proceed(unsafe { callback(hsa_amd_memory_pool_t { handle: pool.handle() }, data) })
        })
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_memory_pool_get_info(
    memory_pool: hsa_amd_memory_pool_t,
    attribute: hsa_amd_memory_pool_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let bytes = pool_of(&runtime, memory_pool)?.info(attribute)?;
        // SAFETY: null or large enough for the attribute, as the extension demands.
        unsafe { put_bytes(value, &bytes) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_agent_memory_pool_get_info(
    agent: hsa_agent_t,
    memory_pool: hsa_amd_memory_pool_t,
    attribute: hsa_amd_agent_memory_pool_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let agent = runtime.agents.find(agent)?;
        let pool = pool_of(&runtime, memory_pool)?;
        let bytes = match attribute {
            HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS => pool.access_by(agent).0.to_ne_bytes(),
            HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS => u32::from(agent != pool.owner).to_ne_bytes(),
            _ => return Err(Failure::ARGUMENT),
        };
        // SAFETY: null or large enough for the attribute, as the extension demands.
        unsafe { put_bytes(value, &bytes) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_memory_pool_allocate(
    memory_pool: hsa_amd_memory_pool_t,
    size: usize,
    _flags: u32,
    ptr: *mut *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        if ptr.is_null() {
            return Err(Failure::ARGUMENT);
        }
        let address = runtime.allocate(pool_of(&runtime, memory_pool)?, size as u64)?;
        // SAFETY: not null, and writable as the extension demands.
        unsafe { put(ptr, std::ptr::with_exposed_provenance_mut(address as usize)) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_memory_pool_free(ptr: *mut c_void) -> hsa_status_t {
    status(current().and_then(
        |runtime| {
            if ptr.is_null() { Ok(()) } else { runtime.memory.free(ptr.addr() as u64) }
        },
    ))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_memory_pool_can_migrate(
    src_memory_pool: hsa_amd_memory_pool_t,
    dst_memory_pool: hsa_amd_memory_pool_t,
    result: *mut bool,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        pool_of(&runtime, src_memory_pool)?;
        pool_of(&runtime, dst_memory_pool)?;
        // SAFETY: null or writable, as the extension demands. ROCr migrates nothing either.
        unsafe { put(result, false) }
    }))
}

/// The GPUs among agents that a caller named.
///
/// # Safety
/// `agents` has `count` elements.
unsafe fn gpus_of(runtime: &Runtime, agents: *const hsa_agent_t, count: usize) -> Outcome<GpuSet> {
    // SAFETY: `count` elements by the precondition.
    let agents = unsafe { array(agents, count) }?;
    agents.into_iter().try_fold(GpuSet::default(), |set, agent| {
        Ok(match runtime.agents.find(agent)? {
            AgentIndex::Cpu => set,
            AgentIndex::Gpu(index) => set.with(GpuSet::one(index)),
        })
    })
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_agents_allow_access(
    num_agents: u32,
    agents: *const hsa_agent_t,
    flags: *const u32,
    ptr: *const c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        if num_agents == 0 || !flags.is_null() || ptr.is_null() {
            return Err(Failure::ARGUMENT);
        }
        // SAFETY: as many elements as stated, as the extension demands.
        let gpus = unsafe { gpus_of(&runtime, agents, num_agents as usize) }?;
        runtime.memory.allow(ptr.addr() as u64, gpus)
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_memory_lock(
    host_ptr: *mut c_void,
    size: usize,
    agents: *mut hsa_agent_t,
    num_agent: c_int,
    agent_ptr: *mut *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let count = usize::try_from(num_agent).map_err(|_| Failure::ARGUMENT)?;
        // No agents named means all of them.
        let gpus = match count {
            0 => GpuSet::ALL,
            // SAFETY: as many elements as stated, as the extension demands.
            _ => unsafe { gpus_of(&runtime, agents, count) }?,
        };
        runtime.memory.lock(host_ptr.expose_provenance() as u64, size as u64, gpus)?;
        // SAFETY: null or writable, as the extension demands.
        unsafe { put(agent_ptr, host_ptr) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_memory_lock_to_pool(
    host_ptr: *mut c_void,
    size: usize,
    agents: *mut hsa_agent_t,
    num_agent: c_int,
    pool: hsa_amd_memory_pool_t,
    _flags: u32,
    agent_ptr: *mut *mut c_void,
) -> hsa_status_t {
    let owner = current().and_then(|runtime| Ok(pool_of(&runtime, pool)?.owner));
    match owner {
        // SAFETY: passed on as they came.
        Ok(AgentIndex::Cpu) => unsafe { hsa_amd_memory_lock(host_ptr, size, agents, num_agent, agent_ptr) },
        Ok(AgentIndex::Gpu(_)) => HSA_STATUS_ERROR_INVALID_ARGUMENT,
        Err(Failure(failure)) => failure,
    }
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_memory_unlock(host_ptr: *mut c_void) -> hsa_status_t {
    status(current().and_then(|runtime| runtime.memory.unlock(host_ptr.addr() as u64)))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_memory_fill(
    ptr: *mut c_void,
    value: u32,
    count: usize,
) -> hsa_status_t {
    status(current().and_then(|_| {
        if ptr.is_null() || !ptr.cast::<u32>().is_aligned() {
            return Err(Failure::ARGUMENT);
        }
        // SAFETY: aligned, not null, and `count` words of the caller's memory, as the extension demands.
        unsafe { std::slice::from_raw_parts_mut(ptr.cast::<u32>(), count) }.fill(value);
        Ok(())
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_memory_copy(
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
) -> hsa_status_t {
    status(current().and_then(|_| {
        if dst.is_null() || src.is_null() {
            return Err(Failure::ARGUMENT);
        }
        // SAFETY: both ranges are the caller's and have `size` bytes, as HSA demands.
        unsafe { std::ptr::copy(src.cast::<u8>(), dst.cast::<u8>(), size) };
        Ok(())
    }))
}

/// The signal of a handle that may be 0.
fn optional_signal(handle: hsa_signal_t) -> Outcome<Option<&'static Signal>> {
    if handle.handle == 0 {
        return Ok(None);
    }
    // SAFETY: HSA demands a handle that the runtime created.
    let signal = unsafe { Signal::from_handle(handle) };
    signal.map(Some).ok_or(Failure(HSA_STATUS_ERROR_INVALID_SIGNAL))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_memory_async_copy(
    dst: *mut c_void,
    dst_agent: hsa_agent_t,
    src: *const c_void,
    src_agent: hsa_agent_t,
    size: usize,
    num_dep_signals: u32,
    dep_signals: *const hsa_signal_t,
    completion_signal: hsa_signal_t,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        runtime.agents.find(dst_agent)?;
        runtime.agents.find(src_agent)?;
        if dst.is_null() || src.is_null() {
            return Err(Failure::ARGUMENT);
        }
        // SAFETY: as many elements as stated, as the extension demands.
        let dependencies = unsafe { array(dep_signals, num_dep_signals as usize) }?;
        let dependencies = dependencies.into_iter().filter_map(|signal| optional_signal(signal).transpose());
        let copy = Copy {
            destination: dst.expose_provenance() as u64,
            source: src.expose_provenance() as u64,
            bytes: size,
            dependencies: dependencies.collect::<Outcome<_>>()?,
            completion: optional_signal(completion_signal)?,
        };
        // SAFETY: the caller leaves both ranges alone until the completion signal falls, as the extension demands.
        let started = unsafe { runtime.copies.submit(copy) };
        started.then_some(()).ok_or(Failure(HSA_STATUS_ERROR_OUT_OF_RESOURCES))
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_memory_async_copy_on_engine(
    dst: *mut c_void,
    dst_agent: hsa_agent_t,
    src: *const c_void,
    src_agent: hsa_agent_t,
    size: usize,
    num_dep_signals: u32,
    dep_signals: *const hsa_signal_t,
    completion_signal: hsa_signal_t,
    _engine_id: hsa_amd_sdma_engine_id_t,
    _force_copy_on_sdma: bool,
) -> hsa_status_t {
    // There is one engine. SAFETY: passed on as they came.
    unsafe {
        hsa_amd_memory_async_copy(
            dst,
            dst_agent,
            src,
            src_agent,
            size,
            num_dep_signals,
            dep_signals,
            completion_signal,
        )
    }
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_pointer_info(
    ptr: *const c_void,
    info: *mut hsa_amd_pointer_info_t,
    alloc: Option<unsafe extern "C-unwind" fn(usize) -> *mut c_void>,
    num_agents_accessible: *mut u32,
    accessible: *mut *mut hsa_agent_t,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        if ptr.is_null() || info.is_null() {
            return Err(Failure::ARGUMENT);
        }
        let (filled, gpus) = describe(&runtime, ptr.addr() as u64);
        // SAFETY: the caller's structure, of which it filled in the size.
        let size = unsafe { (*info).size }.min(filled.size);
        let bytes = std::ptr::from_ref(&hsa_amd_pointer_info_t { size, ..filled }).cast::<u8>();
        // SAFETY: at most as many bytes as the caller's structure and ours have.
        unsafe { std::ptr::copy_nonoverlapping(bytes, info.cast(), size as usize) };
        let Some(alloc) = alloc else { return Ok(()) };
        let agents: Vec<_> = runtime.agents.all().filter(|&agent| may_access(agent, gpus)).collect();
        // SAFETY: the caller's allocator for exactly this purpose.
        let list = unsafe { alloc(agents.len() * size_of::<hsa_agent_t>()) }.cast::<hsa_agent_t>();
        if list.is_null() {
            return Err(Failure(HSA_STATUS_ERROR_OUT_OF_RESOURCES));
        }
        for (index, agent) in agents.iter().enumerate() {
            // SAFETY: inside what the allocator gave.
            unsafe { put(list.wrapping_add(index), agent.handle()) }?;
        }
        // SAFETY: null or writable, as the extension demands.
        unsafe { put(num_agents_accessible, agents.len() as u32) }?;
        // SAFETY: as above.
        unsafe { put(accessible, list) }
    }))
}

fn may_access(agent: AgentIndex, gpus: GpuSet) -> bool {
    match agent {
        AgentIndex::Cpu => true,
        AgentIndex::Gpu(index) => gpus.contains(GpuSet::one(index)),
    }
}

fn describe(runtime: &Runtime, address: u64) -> (hsa_amd_pointer_info_t, GpuSet) {
    let mut info = hsa_amd_pointer_info_t::zeroed();
    info.size = size_of::<hsa_amd_pointer_info_t>() as u32;
    let Some(found) = runtime.memory.find(address) else {
        info.type_ = HSA_EXT_POINTER_TYPE_UNKNOWN;
        return (info, GpuSet::default());
    };
    let (kind, owner, flags) = match found.origin {
        Origin::Pool(pool) => (HSA_EXT_POINTER_TYPE_HSA, pool.owner, pool.flags()),
        Origin::Locked => {
            (HSA_EXT_POINTER_TYPE_LOCKED, AgentIndex::Cpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED.0)
        }
        Origin::Internal => {
            (HSA_EXT_POINTER_TYPE_HSA, AgentIndex::Cpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED.0)
        }
    };
    let base = std::ptr::with_exposed_provenance_mut::<c_void>(found.base as usize);
    info.type_ = kind;
    info.agentBaseAddress = base;
    info.hostBaseAddress = base;
    info.sizeInBytes = found.bytes as usize;
    info.userData = std::ptr::with_exposed_provenance_mut(found.user_data as usize);
    info.agentOwner = owner.handle();
    info.global_flags = flags;
    (info, found.gpus)
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_amd_pointer_info_set_userdata(
    ptr: *const c_void,
    userdata: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        runtime.memory.set_user_data(ptr.addr() as u64, userdata.expose_provenance() as u64)
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_agent_iterate_regions(
    agent: hsa_agent_t,
    callback: RegionCallback,
    data: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let callback = callback.ok_or(Failure::ARGUMENT)?;
        let agent = runtime.agents.find(agent)?;
        let mut regions = pools::pools(&runtime.agents, agent);
        if agent != AgentIndex::Cpu {
            // A GPU also sees the system's memory.
            regions.extend(pools::pools(&runtime.agents, AgentIndex::Cpu));
        }
        regions.iter().try_for_each(|region| {
            // SAFETY: the caller passed the callback for this call and this data.
            proceed(unsafe { callback(hsa_region_t { handle: region.handle() }, data) })
        })
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_region_get_info(
    region: hsa_region_t,
    attribute: hsa_region_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let bytes = pools::find(&runtime.agents, region.handle, INVALID_REGION)?.region_info(attribute)?;
        // SAFETY: null or large enough for the attribute, as HSA demands.
        unsafe { put_bytes(value, &bytes) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_memory_allocate(
    region: hsa_region_t,
    size: usize,
    ptr: *mut *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        if ptr.is_null() {
            return Err(Failure::ARGUMENT);
        }
        let pool = pools::find(&runtime.agents, region.handle, INVALID_REGION)?;
        let address = runtime.allocate(pool, size as u64)?;
        if pool.owner == AgentIndex::Cpu {
            // Memory of a system region, unlike that of a pool, is open to every agent from the start.
            runtime.memory.allow(address, GpuSet::ALL)?;
        }
        // SAFETY: not null, and writable as HSA demands.
        unsafe { put(ptr, std::ptr::with_exposed_provenance_mut(address as usize)) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_memory_free(ptr: *mut c_void) -> hsa_status_t {
    // SAFETY: passed on as it came.
    unsafe { hsa_amd_memory_pool_free(ptr) }
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_memory_register(
    ptr: *mut c_void,
    size: usize,
) -> hsa_status_t {
    // A hint for agents of the full profile; these are of the base profile.
    status(current().and_then(|_| if ptr.is_null() && size != 0 { Err(Failure::ARGUMENT) } else { Ok(()) }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_memory_deregister(
    _ptr: *mut c_void,
    _size: usize,
) -> hsa_status_t {
    status(current().map(drop))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_memory_assign_agent(
    ptr: *mut c_void,
    agent: hsa_agent_t,
    _access: hsa_access_permission_t,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        runtime.agents.find(agent)?;
        if ptr.is_null() { Err(Failure::ARGUMENT) } else { Ok(()) }
    }))
}
