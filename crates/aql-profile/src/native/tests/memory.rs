//! Real memory at real addresses, with everything written down that is done to it.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::memory::{AllocationRequest, Memory};
use crate::status::Status;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Allocated(AllocationRequest),
    CopiedIn(u64, Vec<u8>),
    Freed(u64),
}

/// Memory of the process. A copy of its addresses can be played to another program that must do the same.
#[derive(Default)]
pub(super) struct RealMemory {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Addresses to hand out again, none of them allocated here.
    replayed: Vec<u64>,
    living: Vec<(u64, Layout)>,
    made: usize,
    calls: Vec<Call>,
}

impl RealMemory {
    /// Hands out `addresses`, which another memory allocated and keeps.
    pub(super) fn replaying(addresses: Vec<u64>) -> Self {
        Self { state: Mutex::new(State { replayed: addresses, ..State::default() }) }
    }

    /// Every call so far.
    pub(super) fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// Addresses of living allocations, in order.
    pub(super) fn addresses(&self) -> Vec<u64> {
        self.state().living.iter().map(|(address, _)| *address).collect()
    }

    /// Copies `bytes` to an address of an allocation of any memory.
    pub(super) fn write(address: u64, bytes: &[u8]) {
        let to = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: the tests pass ranges of allocations that they keep alive.
        unsafe { std::ptr::copy(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Copies from an address of an allocation of any memory.
    pub(super) fn read(address: u64, bytes: usize) -> Vec<u8> {
        let mut into = vec![0; bytes];
        let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the tests pass ranges of allocations that they keep alive.
        unsafe { std::ptr::copy(from, into.as_mut_ptr(), bytes) };
        into
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory for RealMemory {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        let mut state = self.state();
        let index = state.made;
        state.made += 1;
        state.calls.push(Call::Allocated(request));
        if let Some(address) = state.replayed.get(index) {
            return Ok(*address);
        }
        let layout = Layout::from_size_align(request.bytes.max(1) as usize, 4096).unwrap();
        // SAFETY: the size is not 0.
        let address = unsafe { alloc_zeroed(layout) }.expose_provenance() as u64;
        assert_ne!(address, 0, "out of memory");
        state.living.push((address, layout));
        Ok(address)
    }

    fn free(&self, address: u64) {
        let mut state = self.state();
        state.calls.push(Call::Freed(address));
        if let Some(at) = state.living.iter().position(|(living, _)| *living == address) {
            let (address, layout) = state.living.remove(at);
            // SAFETY: it was allocated with this layout and is no longer listed.
            unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address as usize), layout) };
        }
    }

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        self.state().calls.push(Call::CopiedIn(address, bytes.to_vec()));
        Self::write(address, bytes);
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        into.copy_from_slice(&Self::read(address, into.len()));
    }

    fn store(&self, address: u64, bytes: &[u8]) {
        Self::write(address, bytes);
    }
}
