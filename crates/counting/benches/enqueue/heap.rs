//! Memory of packet programs that nothing executes.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use wavescope_aql_profile::{AllocationRequest, Memory, Status};

/// Memory from the heap.
#[derive(Default)]
pub(crate) struct Heap(Mutex<HashMap<u64, Layout>>);

impl Memory for Heap {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        let layout =
            Layout::from_size_align(request.bytes.max(1) as usize, 4096).map_err(|_| Status::ERROR)?;
        // SAFETY: the size is not 0.
        let address = unsafe { alloc_zeroed(layout) }.expose_provenance() as u64;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(address, layout);
        Ok(address)
    }

    fn free(&self, address: u64) {
        let layout = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
        if let Some(layout) = layout {
            // SAFETY: allocated above with this layout, freed once.
            unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address as usize), layout) };
        }
    }

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        let target: *mut u8 = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the caller stays inside its allocation.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        let source: *const u8 = std::ptr::with_exposed_provenance(address as usize);
        // SAFETY: the caller stays inside its allocation.
        unsafe { source.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
    }
}
