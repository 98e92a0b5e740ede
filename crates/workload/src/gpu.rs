//! A GPU agent as the application sees it.

use std::ffi::c_void;

use hsa_sys::*;

use crate::Error;
use crate::api::{Api, call};

/// A GPU of the runtime.
#[derive(Clone, Debug)]
pub struct Gpu {
    agent: hsa_agent_t,
    target: String,
    /// Pool of the host's memory for kernel arguments.
    arguments: hsa_amd_memory_pool_t,
    /// Pool of the host's memory for data.
    host: hsa_amd_memory_pool_t,
}

impl Gpu {
    pub(crate) fn open(api: Api, agent: hsa_agent_t, cpu: hsa_agent_t) -> Result<Self, Error> {
        let name: [u8; 64] = info(api, agent, HSA_AGENT_INFO_NAME)?;
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        let target = String::from_utf8_lossy(&name[..length]).into_owned();
        let kernarg = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT.0;
        let fine = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED.0;
        let no_pool = |kind| Error::NoPool { agent: "the host".to_owned(), kind };
        Ok(Self {
            agent,
            target,
            arguments: pool(api, cpu, |flags| flags & kernarg != 0)?.ok_or(no_pool("kernel argument"))?,
            host: pool(api, cpu, |flags| flags & (fine | kernarg) == fine)?.ok_or(no_pool("fine-grained"))?,
        })
    }

    /// The agent's handle.
    pub fn agent(&self) -> hsa_agent_t {
        self.agent
    }

    /// Name of the instruction-set target, such as `gfx942`.
    pub fn target(&self) -> &str {
        &self.target
    }

    pub(crate) fn argument_pool(&self) -> hsa_amd_memory_pool_t {
        self.arguments
    }

    pub(crate) fn host_pool(&self) -> hsa_amd_memory_pool_t {
        self.host
    }
}

/// An attribute whose value is plain bytes.
pub(crate) fn info<T: PlainInfo>(
    api: Api,
    agent: hsa_agent_t,
    attribute: hsa_agent_info_t,
) -> Result<T, Error> {
    let mut value = T::ZERO;
    call!(api, core_.hsa_agent_get_info_fn(agent, attribute, (&raw mut value).cast()))?;
    Ok(value)
}

/// Types of attributes: any bytes are a value of them.
pub(crate) trait PlainInfo {
    const ZERO: Self;
}

impl PlainInfo for u32 {
    const ZERO: Self = 0;
}

impl PlainInfo for [u8; 64] {
    const ZERO: Self = [0; 64];
}

/// First global pool of an agent whose flags are as wanted.
fn pool(
    api: Api,
    agent: hsa_agent_t,
    wanted: impl Fn(u32) -> bool,
) -> Result<Option<hsa_amd_memory_pool_t>, Error> {
    unsafe extern "C-unwind" fn collect(pool: hsa_amd_memory_pool_t, list: *mut c_void) -> hsa_status_t {
        // SAFETY: `list` is the vector that the call below passes, borrowed by nobody else during it.
        unsafe { &mut *list.cast::<Vec<hsa_amd_memory_pool_t>>() }.push(pool);
        HSA_STATUS_SUCCESS
    }
    let mut list = Vec::<hsa_amd_memory_pool_t>::new();
    call!(api, amd_ext_.hsa_amd_agent_iterate_memory_pools_fn(agent, Some(collect), (&raw mut list).cast()))?;
    for pool in list {
        let segment = pool_info(api, pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT)?;
        if segment == HSA_AMD_SEGMENT_GLOBAL.0
            && wanted(pool_info(api, pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS)?)
        {
            return Ok(Some(pool));
        }
    }
    Ok(None)
}

fn pool_info(
    api: Api,
    pool: hsa_amd_memory_pool_t,
    attribute: hsa_amd_memory_pool_info_t,
) -> Result<u32, Error> {
    let mut value = 0_u32;
    call!(api, amd_ext_.hsa_amd_memory_pool_get_info_fn(pool, attribute, (&raw mut value).cast()))?;
    Ok(value)
}
