//! Agents and instruction sets.

use std::ffi::{c_char, c_void};

use hsa_sys::*;

use crate::face::agents::{AgentIndex, Gpu, isa_handle};
use crate::face::error::{Failure, Outcome, proceed, status};
use crate::face::out::{bytes_of_text, put, put_bytes, text};
use crate::face::runtime::current;

type AgentCallback = Option<unsafe extern "C-unwind" fn(hsa_agent_t, *mut c_void) -> hsa_status_t>;
type IsaCallback = Option<unsafe extern "C-unwind" fn(hsa_isa_t, *mut c_void) -> hsa_status_t>;
type CacheCallback = Option<unsafe extern "C-unwind" fn(hsa_cache_t, *mut c_void) -> hsa_status_t>;

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_iterate_agents(
    callback: AgentCallback,
    data: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let callback = callback.ok_or(Failure::ARGUMENT)?;
        runtime.agents.all().try_for_each(|agent| {
            // SAFETY: the caller passed the callback for this call and this data.
            proceed(unsafe { callback(agent.handle(), data) })
        })
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_agent_get_info(
    agent: hsa_agent_t,
    attribute: hsa_agent_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let index = runtime.agents.find(agent)?;
        let mut bytes = runtime.agents.info(index, attribute.0, &runtime.clock)?;
        if hsa_amd_agent_info_t(attribute.0) == HSA_AMD_AGENT_INFO_MEMORY_AVAIL {
            let total = bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            bytes = total.saturating_sub(runtime.memory.used(index)).to_ne_bytes().to_vec();
        }
        // SAFETY: null or large enough for the attribute, as HSA demands.
        unsafe { put_bytes(value, &bytes) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_agent_extension_supported(
    _extension: u16,
    agent: hsa_agent_t,
    _version_major: u16,
    _version_minor: u16,
    result: *mut bool,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        runtime.agents.find(agent)?;
        // SAFETY: null or writable, as HSA demands. Agents have no extension of their own here.
        unsafe { put(result, false) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_agent_major_extension_supported(
    extension: u16,
    agent: hsa_agent_t,
    version_major: u16,
    version_minor: *mut u16,
    result: *mut bool,
) -> hsa_status_t {
    // SAFETY: `version_minor` is null or writable, as HSA demands.
    if let Err(failure) = unsafe { put(version_minor, 0) } {
        return status(Err(failure));
    }
    // SAFETY: passed on as they came.
    unsafe { hsa_agent_extension_supported(extension, agent, version_major, 0, result) }
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_agent_iterate_caches(
    agent: hsa_agent_t,
    callback: CacheCallback,
    _data: *mut c_void,
) -> hsa_status_t {
    // The topology's caches are not modelled: an agent without caches is a valid agent.
    status(current().and_then(|runtime| {
        callback.ok_or(Failure::ARGUMENT)?;
        runtime.agents.find(agent).map(drop)
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_agent_iterate_isas(
    agent: hsa_agent_t,
    callback: IsaCallback,
    data: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let callback = callback.ok_or(Failure::ARGUMENT)?;
        match runtime.agents.find(agent)? {
            AgentIndex::Cpu => Err(Failure(HSA_STATUS_ERROR_INVALID_AGENT)),
            // SAFETY: the caller passed the callback for this call and this data.
            AgentIndex::Gpu(index) => proceed(unsafe { callback(isa_handle(index), data) }),
        }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_isa_from_name(
    name: *const c_char,
    isa: *mut hsa_isa_t,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        // SAFETY: null or a terminated string, as HSA demands.
        let name = unsafe { text(name) }?;
        let found = runtime.agents.isa_named(name).ok_or(Failure(HSA_STATUS_ERROR_INVALID_ISA_NAME))?;
        // SAFETY: null or writable, as HSA demands.
        unsafe { put(isa, found) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_isa_get_info_alt(
    isa: hsa_isa_t,
    attribute: hsa_isa_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let bytes = isa_info(runtime.agents.find_isa(isa)?, attribute)?;
        // SAFETY: null or large enough for the attribute, as HSA demands.
        unsafe { put_bytes(value, &bytes) }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_isa_get_info(
    isa: hsa_isa_t,
    attribute: hsa_isa_info_t,
    index: u32,
    value: *mut c_void,
) -> hsa_status_t {
    if index != 0 {
        return HSA_STATUS_ERROR_INVALID_INDEX;
    }
    // SAFETY: passed on as they came.
    unsafe { hsa_isa_get_info_alt(isa, attribute, value) }
}

fn isa_info(gpu: &Gpu, attribute: hsa_isa_info_t) -> Outcome<Vec<u8>> {
    let name = gpu.isa_name();
    Ok(match attribute {
        // ROCr counts the terminator.
        HSA_ISA_INFO_NAME_LENGTH => (name.len() as u32 + 1).to_ne_bytes().to_vec(),
        HSA_ISA_INFO_NAME => bytes_of_text(&name, name.len() + 1),
        HSA_ISA_INFO_MACHINE_MODELS => vec![0, 1],
        HSA_ISA_INFO_PROFILES => vec![1, 1],
        HSA_ISA_INFO_FAST_F16_OPERATION => vec![1],
        HSA_ISA_INFO_WORKGROUP_MAX_DIM => [1024_u16; 3].iter().flat_map(|n| n.to_ne_bytes()).collect(),
        HSA_ISA_INFO_WORKGROUP_MAX_SIZE => 1024_u32.to_ne_bytes().to_vec(),
        HSA_ISA_INFO_FBARRIER_MAX_SIZE => 32_u32.to_ne_bytes().to_vec(),
        _ => return Err(Failure::ARGUMENT),
    })
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_isa_compatible(
    code_object_isa: hsa_isa_t,
    agent_isa: hsa_isa_t,
    result: *mut bool,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let code = runtime.agents.find_isa(code_object_isa)?.isa_name();
        let agent = runtime.agents.find_isa(agent_isa)?.isa_name();
        // SAFETY: null or writable, as HSA demands.
        unsafe { put(result, code == agent) }
    }))
}
