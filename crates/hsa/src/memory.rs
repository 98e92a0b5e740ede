//! Memory that host and GPU share, or that the GPU has to itself.

use std::ffi::c_void;
use std::ptr::NonNull;

use hsa_sys::{
    HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT,
    HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, HSA_REGION_SEGMENT_GLOBAL,
    HSA_STATUS_SUCCESS, hsa_agent_t, hsa_amd_memory_pool_info_t, hsa_amd_memory_pool_t, hsa_status_t,
};
use wavescope_core::AgentId;

use crate::Hsa;
use crate::device_copy::copy_from_device;
use crate::error::{Error, check, entry};

/// Where memory lies and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Host memory that both sides see at once (fine-grained).
    Host,
    /// Host memory from which kernel arguments may be read.
    KernelArguments,
    /// Host memory from which the GPU executes commands (PM4 indirect buffers).
    Commands,
    /// Memory of the GPU; the host reads it through a copy.
    Device,
}

impl MemoryKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Host => "fine-grained host",
            Self::KernelArguments => "kernel argument",
            Self::Commands => "command",
            Self::Device => "device",
        }
    }

    /// The flag that a pool must have.
    const fn pool_flag(self) -> u32 {
        match self {
            Self::Host | Self::Commands => HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED.0,
            Self::KernelArguments => HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT.0,
            Self::Device => HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED.0,
        }
    }

    const fn allocation_flags(self) -> u32 {
        match self {
            Self::Commands => HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG.0,
            Self::Host | Self::KernelArguments | Self::Device => 0,
        }
    }
}

/// An allocation from an HSA memory pool, freed when dropped: its owner keeps it while the GPU may touch it.
#[derive(Debug)]
pub struct Memory {
    hsa: Hsa,
    agent: AgentId,
    address: NonNull<c_void>,
    size: usize,
    kind: MemoryKind,
}

// SAFETY: the address is plain memory without thread affinity; the runtime's functions are thread-safe.
unsafe impl Send for Memory {}
// SAFETY: shared access only reads the address and size, or copies through the runtime.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates `size` bytes that `agent` can access. Host memory is zeroed.
    ///
    /// # Errors
    /// [`Error::NoAgent`], [`Error::NoPool`], [`Error::Call`] (out of memory among others), [`Error::MissingEntry`].
    pub fn allocate(hsa: &Hsa, agent: AgentId, kind: MemoryKind, size: usize) -> Result<Self, Error> {
        let gpu = hsa.gpu(agent)?.handle;
        let pool = find_pool(hsa, agent, gpu, kind)?;
        let call = "hsa_amd_memory_pool_allocate";
        let allocate = entry(call, hsa.table().amd.hsa_amd_memory_pool_allocate_fn)?;
        let mut address = std::ptr::null_mut();
        // SAFETY: the pool is the runtime's, and `address` outlives the call.
        let status = unsafe { allocate(pool, size, kind.allocation_flags(), &raw mut address) };
        check(call, status)?;
        let address = NonNull::new(address)
            .ok_or(Error::Call { call, status: hsa_sys::HSA_STATUS_ERROR_OUT_OF_RESOURCES })?;
        let memory = Self { hsa: hsa.clone(), agent, address, size, kind };
        if kind != MemoryKind::Device {
            memory.allow_access(gpu)?;
            // SAFETY: `size` bytes of host memory were just allocated and nobody else has the address.
            unsafe { address.cast::<u8>().write_bytes(0, size) };
        }
        Ok(memory)
    }

    /// The address, the same for host and GPU. Device memory cannot be dereferenced by the host.
    pub fn address(&self) -> NonNull<c_void> {
        self.address
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Copies `into.len()` bytes from `offset` on, by the runtime's copy, so that device memory can be read too: that by
    /// a copy engine, since what runs on the agent's compute units meanwhile may be measured.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Call`], [`Error::MissingEntry`]; [`Error::TimedOut`] when a copy engine does not
    /// answer.
    pub fn copy_out(&self, offset: usize, into: &mut [u8]) -> Result<(), Error> {
        let source = self.range(offset, into.len())?;
        if self.kind == MemoryKind::Device {
            // SAFETY: the source lies in this allocation, as just checked.
            return unsafe { copy_from_device(&self.hsa, self.agent, source, into) };
        }
        // SAFETY: source and destination have `into.len()` bytes; the slice is ours alone.
        unsafe { self.copy(into.as_mut_ptr().cast(), source.as_ptr(), into.len()) }
    }

    /// Copies `bytes` to `offset`, by the runtime's copy, so that device memory can be written too.
    ///
    /// # Errors
    /// As for [`copy_out`](Self::copy_out).
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        let target = self.range(offset, bytes.len())?;
        // SAFETY: source and destination have `bytes.len()` bytes.
        unsafe { self.copy(target.as_ptr(), bytes.as_ptr().cast(), bytes.len()) }
    }

    /// Reads from `offset` on as the GPU left it: directly from host memory, else by a copy. Read what the GPU
    /// wrote only after its packet completed.
    ///
    /// # Errors
    /// As for [`copy_out`](Self::copy_out).
    pub fn load(&self, offset: usize, into: &mut [u8]) -> Result<(), Error> {
        if self.kind == MemoryKind::Device {
            return self.copy_out(offset, into);
        }
        let source = self.range(offset, into.len())?;
        // SAFETY: source and destination have `into.len()` bytes; the packet that wrote them completed, as the
        // caller saw by an acquire load of its signal.
        unsafe { source.cast::<u8>().as_ptr().copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Writes to `offset`: directly to host memory, else by a copy.
    ///
    /// # Errors
    /// As for [`copy_out`](Self::copy_out).
    pub fn store(&self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        if self.kind == MemoryKind::Device {
            return self.copy_in(offset, bytes);
        }
        let target = self.range(offset, bytes.len())?;
        // SAFETY: source and destination have `bytes.len()` bytes; whoever writes memory that the GPU uses at the
        // same time orders that by packets and signals.
        unsafe { bytes.as_ptr().copy_to_nonoverlapping(target.cast::<u8>().as_ptr(), bytes.len()) };
        Ok(())
    }

    /// The address of a range within the allocation.
    fn range(&self, offset: usize, length: usize) -> Result<NonNull<c_void>, Error> {
        if offset.checked_add(length).is_none_or(|end| end > self.size) {
            return Err(Error::OutOfRange { offset, length, size: self.size });
        }
        // SAFETY: `offset` lies within the allocation, as just checked.
        Ok(unsafe { self.address.byte_add(offset) })
    }

    /// # Safety
    /// Both sides have `length` bytes, and nobody else uses the destination meanwhile.
    unsafe fn copy(&self, target: *mut c_void, source: *const c_void, length: usize) -> Result<(), Error> {
        let call = "hsa_memory_copy";
        let copy = entry(call, self.hsa.table().core.hsa_memory_copy_fn)?;
        // SAFETY: by this function's contract.
        let status = unsafe { copy(target, source, length) };
        check(call, status)
    }

    /// Keeps the allocation for good: the GPU may still write it and nobody can tell when it stops.
    pub fn leak(self) {
        tracing::error!(address = ?self.address, size = self.size, "memory that the GPU may still use is kept for good");
        std::mem::forget(self);
    }

    fn allow_access(&self, gpu: hsa_agent_t) -> Result<(), Error> {
        let call = "hsa_amd_agents_allow_access";
        let allow = entry(call, self.hsa.table().amd.hsa_amd_agents_allow_access_fn)?;
        // SAFETY: one agent is named, the flags may be null by the header, and the address is an allocation.
        let status = unsafe { allow(1, &raw const gpu, std::ptr::null(), self.address.as_ptr()) };
        check(call, status)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Some(free) = self.hsa.table().amd.hsa_amd_memory_pool_free_fn else { return };
        // SAFETY: the address came from the pool allocator and is freed once.
        let status = unsafe { free(self.address.as_ptr()) };
        if let Err(error) = check("hsa_amd_memory_pool_free", status) {
            tracing::warn!(%error, address = ?self.address, "memory not freed");
        }
    }
}

fn find_pool(
    hsa: &Hsa,
    agent: AgentId,
    gpu: hsa_agent_t,
    kind: MemoryKind,
) -> Result<hsa_amd_memory_pool_t, Error> {
    let owners = if kind == MemoryKind::Device { std::slice::from_ref(&gpu) } else { hsa.cpus() };
    for &owner in owners {
        for pool in pools(hsa, owner)? {
            let segment = pool_info(hsa, pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT)?;
            if segment != HSA_REGION_SEGMENT_GLOBAL.0 {
                continue;
            }
            let flags = pool_info(hsa, pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS)?;
            if flags & kind.pool_flag() != 0 {
                return Ok(pool);
            }
        }
    }
    Err(Error::NoPool { agent, kind: kind.name() })
}

/// A 32-bit attribute of a pool.
fn pool_info(
    hsa: &Hsa,
    pool: hsa_amd_memory_pool_t,
    attribute: hsa_amd_memory_pool_info_t,
) -> Result<u32, Error> {
    let call = "hsa_amd_memory_pool_get_info";
    let get = entry(call, hsa.table().amd.hsa_amd_memory_pool_get_info_fn)?;
    let mut value = 0u32;
    // SAFETY: the pool is the runtime's; both attributes asked for in this file are 32-bit by the header.
    let status = unsafe { get(pool, attribute, (&raw mut value).cast()) };
    check(call, status)?;
    Ok(value)
}

fn pools(hsa: &Hsa, owner: hsa_agent_t) -> Result<Vec<hsa_amd_memory_pool_t>, Error> {
    unsafe extern "C-unwind" fn collect(pool: hsa_amd_memory_pool_t, data: *mut c_void) -> hsa_status_t {
        // SAFETY: `data` is the vector passed below, which nobody else uses during the call.
        let found = unsafe { &mut *data.cast::<Vec<hsa_amd_memory_pool_t>>() };
        found.push(pool);
        HSA_STATUS_SUCCESS
    }
    let call = "hsa_amd_agent_iterate_memory_pools";
    let iterate = entry(call, hsa.table().amd.hsa_amd_agent_iterate_memory_pools_fn)?;
    let mut found = Vec::new();
    // SAFETY: the callback matches its data and runs only before the call returns.
    let status = unsafe { iterate(owner, Some(collect), (&raw mut found).cast()) };
    check(call, status)?;
    Ok(found)
}
