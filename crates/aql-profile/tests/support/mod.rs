//! Memory for tests: every allocation is a vector of its own at a made-up address.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use wavescope_aql_profile::{AllocationRequest, Memory, Status};

/// One living allocation.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub(crate) request: AllocationRequest,
    pub(crate) bytes: Vec<u8>,
}

/// Allocations by address. Any access outside one fails the test.
#[derive(Debug, Default)]
pub(crate) struct TestMemory(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    living: BTreeMap<u64, Allocation>,
    made: u64,
}

/// Contents are kept up to this size; trace data buffers are larger and never looked into.
const KEPT: u64 = 1 << 20;

impl TestMemory {
    fn with<T>(&self, body: impl FnOnce(&mut State) -> T) -> T {
        body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The living allocation around a range, and the range's offset in it.
    pub(crate) fn around(&self, address: u64, bytes: u64) -> Option<(Allocation, u64)> {
        self.with(|state| {
            let (base, found) = state.living.range(..=address).next_back()?;
            let offset = address - base;
            (offset + bytes <= found.request.bytes).then(|| (found.clone(), offset))
        })
    }

    /// Allocations that were not freed.
    pub(crate) fn living(&self) -> usize {
        self.with(|state| state.living.len())
    }
}

impl State {
    fn range(&mut self, address: u64, len: usize) -> &mut [u8] {
        let (base, found) = self.living.range_mut(..=address).next_back().expect("an allocation below");
        let offset = (address - base) as usize;
        &mut found.bytes[offset..offset + len]
    }
}

impl Memory for TestMemory {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        self.with(|state| {
            state.made += 1;
            let address = 0x7F00_0000_0000 + (state.made << 36);
            let bytes = vec![0; request.bytes.min(KEPT) as usize];
            state.living.insert(address, Allocation { request, bytes });
            Ok(address)
        })
    }

    fn free(&self, address: u64) {
        let freed = self.with(|state| state.living.remove(&address));
        assert!(freed.is_some(), "{address:#x} is no living allocation");
    }

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        self.with(|state| state.range(address, bytes.len()).copy_from_slice(bytes));
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        self.with(|state| into.copy_from_slice(state.range(address, into.len())));
    }
}
