//! Memory pools and regions: which kinds of memory each agent has. A pool and a region of the same memory share one
//! handle, as in ROCr.

use hsa_sys::*;

use super::agents::{AgentIndex, Agents};
use super::error::{Failure, Outcome};

const POOL_HANDLES: u64 = 0x506f_0000;
/// Handles of one agent's pools lie this far from the next agent's.
const HANDLES_PER_AGENT: u64 = 16;

/// Allocations are whole pages.
pub(super) const GRANULE: u64 = 4096;

/// What the CPU agent claims to have: the kernel decides what a process really gets.
const SYSTEM_MEMORY: u64 = 256 << 30;

/// Kind of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolKind {
    /// Global memory with `hsa_amd_memory_pool_global_flag_t` bits.
    Global(u32),
    /// LDS: described, never allocated.
    Group,
}

/// One pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pool {
    pub(super) owner: AgentIndex,
    pub(super) kind: PoolKind,
    pub(super) bytes: u64,
    number: u64,
}

const FINE: u32 = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED.0;
const COARSE: u32 = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED.0;
const KERNARG: u32 = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT.0;
const EXTENDED_FINE: u32 = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED.0;

/// The pools of an agent in ROCr's order (rocminfo on MI300X).
pub(super) fn pools(agents: &Agents, owner: AgentIndex) -> Vec<Pool> {
    let (kinds, bytes): (&[PoolKind], u64) = match owner {
        AgentIndex::Cpu => (
            &[
                PoolKind::Global(FINE),
                PoolKind::Global(EXTENDED_FINE),
                PoolKind::Global(KERNARG | FINE),
                PoolKind::Global(COARSE),
            ],
            SYSTEM_MEMORY,
        ),
        AgentIndex::Gpu(index) => (
            &[
                PoolKind::Global(COARSE),
                PoolKind::Global(EXTENDED_FINE),
                PoolKind::Global(FINE),
                PoolKind::Group,
            ],
            agents.gpus()[index].agent.vram_bytes,
        ),
    };
    let pool = |(number, &kind): (usize, &PoolKind)| {
        let bytes = match (kind, owner) {
            (PoolKind::Group, AgentIndex::Gpu(index)) => u64::from(agents.gpus()[index].agent.lds_bytes),
            _ => bytes,
        };
        Pool { owner, kind, bytes, number: number as u64 }
    };
    kinds.iter().enumerate().map(pool).collect()
}

/// The pool of a handle.
pub(super) fn find(agents: &Agents, handle: u64, invalid: Failure) -> Outcome<Pool> {
    let number = handle.checked_sub(POOL_HANDLES).ok_or(invalid)?;
    let owner = match number / HANDLES_PER_AGENT {
        0 => AgentIndex::Cpu,
        gpu if gpu <= agents.gpus().len() as u64 => AgentIndex::Gpu(gpu as usize - 1),
        _ => return Err(invalid),
    };
    pools(agents, owner).into_iter().find(|pool| pool.number == number % HANDLES_PER_AGENT).ok_or(invalid)
}

impl Pool {
    pub(super) fn handle(&self) -> u64 {
        let agent = match self.owner {
            AgentIndex::Cpu => 0,
            AgentIndex::Gpu(index) => 1 + index as u64,
        };
        POOL_HANDLES + agent * HANDLES_PER_AGENT + self.number
    }

    pub(super) fn flags(&self) -> u32 {
        match self.kind {
            PoolKind::Global(flags) => flags,
            PoolKind::Group => 0,
        }
    }

    pub(super) fn is_global(&self) -> bool {
        matches!(self.kind, PoolKind::Global(_))
    }

    /// `hsa_amd_memory_pool_get_info`.
    pub(super) fn info(&self, attribute: hsa_amd_memory_pool_info_t) -> Outcome<Vec<u8>> {
        let granule = if self.is_global() { GRANULE } else { 0 };
        let location = match self.owner {
            AgentIndex::Cpu => HSA_AMD_MEMORY_POOL_LOCATION_CPU,
            AgentIndex::Gpu(_) => HSA_AMD_MEMORY_POOL_LOCATION_GPU,
        };
        Ok(match attribute {
            HSA_AMD_MEMORY_POOL_INFO_SEGMENT => self.segment().to_ne_bytes().to_vec(),
            HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS => self.flags().to_ne_bytes().to_vec(),
            HSA_AMD_MEMORY_POOL_INFO_SIZE | HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE => {
                self.bytes.to_ne_bytes().to_vec()
            }
            HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED => vec![u8::from(self.is_global())],
            HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE
            | HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT
            | HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE => granule.to_ne_bytes().to_vec(),
            HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL => vec![0],
            HSA_AMD_MEMORY_POOL_INFO_LOCATION => location.0.to_ne_bytes().to_vec(),
            _ => return Err(Failure::ARGUMENT),
        })
    }

    /// `hsa_region_get_info`.
    pub(super) fn region_info(&self, attribute: hsa_region_info_t) -> Outcome<Vec<u8>> {
        let granule = if self.is_global() { GRANULE } else { 0 };
        Ok(match attribute {
            HSA_REGION_INFO_SEGMENT => self.segment().to_ne_bytes().to_vec(),
            HSA_REGION_INFO_GLOBAL_FLAGS => self.flags().to_ne_bytes().to_vec(),
            HSA_REGION_INFO_SIZE | HSA_REGION_INFO_ALLOC_MAX_SIZE => self.bytes.to_ne_bytes().to_vec(),
            HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED => vec![u8::from(self.is_global())],
            HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE | HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT => {
                granule.to_ne_bytes().to_vec()
            }
            _ => return Err(Failure::ARGUMENT),
        })
    }

    /// How `agent` may access what is allocated here (`hsa_amd_agent_memory_pool_get_info`).
    pub(super) fn access_by(&self, agent: AgentIndex) -> hsa_amd_memory_pool_access_t {
        if !self.is_global() {
            return HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
        }
        if agent == self.owner {
            return HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT;
        }
        HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT
    }

    /// Segment and region segment have equal numbers for what exists here: global 0, group 3.
    fn segment(&self) -> u32 {
        match self.kind {
            PoolKind::Global(_) => HSA_AMD_SEGMENT_GLOBAL.0,
            PoolKind::Group => HSA_AMD_SEGMENT_GROUP.0,
        }
    }
}
