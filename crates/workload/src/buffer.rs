//! Host memory that a GPU can access.

use std::ffi::c_void;
use std::sync::Arc;

use hsa_sys::hsa_amd_memory_pool_t;

use crate::api::call;
use crate::application::Reference;
use crate::{Error, Gpu};

/// Memory of the host's fine-grained pool, freed when dropped: the owner waits for its dispatches first.
#[derive(Debug)]
pub struct Buffer {
    reference: Arc<Reference>,
    base: *mut c_void,
    bytes: usize,
}

// SAFETY: the memory belongs to the process, not to a thread; shared access is read-only, see `bytes`.
unsafe impl Send for Buffer {}
// SAFETY: as for `Send`.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub(crate) fn allocate(reference: &Arc<Reference>, gpu: &Gpu, bytes: usize) -> Result<Self, Error> {
        Self::from_pool(reference, gpu, gpu.host_pool(), bytes)
    }

    pub(crate) fn for_arguments(reference: &Arc<Reference>, gpu: &Gpu, bytes: usize) -> Result<Self, Error> {
        Self::from_pool(reference, gpu, gpu.argument_pool(), bytes)
    }

    fn from_pool(
        reference: &Arc<Reference>,
        gpu: &Gpu,
        pool: hsa_amd_memory_pool_t,
        bytes: usize,
    ) -> Result<Self, Error> {
        let (api, mut base) = (reference.api, std::ptr::null_mut());
        call!(api, amd_ext_.hsa_amd_memory_pool_allocate_fn(pool, bytes, 0, &raw mut base))?;
        let buffer = Self { reference: Arc::clone(reference), base, bytes };
        let agent = gpu.agent();
        call!(api, amd_ext_.hsa_amd_agents_allow_access_fn(1, &raw const agent, std::ptr::null(), base))?;
        call!(api, amd_ext_.hsa_amd_memory_fill_fn(base, 0, bytes / size_of::<u32>()))?;
        Ok(buffer)
    }

    /// Address, the same for host and GPU.
    pub fn address(&self) -> u64 {
        self.base.expose_provenance() as u64
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The contents, for a moment at which no dispatch writes them.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `bytes` bytes from the runtime, initialised by the fill, alive as long as `self`. Kernels that
        // write them were waited for, as the method's contract says.
        unsafe { std::slice::from_raw_parts(self.base.cast(), self.bytes) }
    }

    /// The contents to write, before a dispatch reads them.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`; `&mut self` keeps other host accesses away.
        unsafe { std::slice::from_raw_parts_mut(self.base.cast(), self.bytes) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Err(error) = call!(self.reference.api, amd_ext_.hsa_amd_memory_pool_free_fn(self.base)) {
            tracing::warn!(%error, "buffer not freed");
        }
    }
}
