//! Memory that two makers of packets share, so that what one writes the other reads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wavescope_aql_profile::{AllocationRequest, Memory, Status};

/// Remembers what was allocated, and can hand it out a second time.
pub struct Twin {
    inner: Arc<dyn Memory>,
    made: Mutex<Vec<(u64, AllocationRequest)>>,
    /// Of the first maker, to be handed out again.
    again: Option<Mutex<VecDeque<(u64, AllocationRequest)>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Twin {
    /// Memory for the first maker.
    pub fn new(inner: Arc<dyn Memory>) -> Arc<Self> {
        Arc::new(Self { inner, made: Mutex::default(), again: None })
    }

    /// Memory for the second one, who must ask for the same in the same order and frees nothing.
    pub fn again(&self) -> Arc<Self> {
        let again = lock(&self.made).iter().copied().collect();
        Arc::new(Self {
            inner: Arc::clone(&self.inner),
            made: Mutex::default(),
            again: Some(Mutex::new(again)),
        })
    }

    /// Allocations so far, in order.
    pub fn allocations(&self) -> Vec<(u64, AllocationRequest)> {
        lock(&self.made).clone()
    }

    /// What the buffers that the host may touch hold, in order of allocation.
    pub fn contents(&self) -> Vec<Vec<u8>> {
        let read = |(address, request): (u64, AllocationRequest)| {
            let mut bytes = vec![0; request.bytes as usize];
            self.load(address, &mut bytes);
            bytes
        };
        self.host_visible().map(read).collect()
    }

    /// Zeros in all of them.
    pub fn clear(&self) {
        for (address, request) in self.host_visible() {
            self.store(address, &vec![0; request.bytes as usize]);
        }
    }

    fn host_visible(&self) -> impl Iterator<Item = (u64, AllocationRequest)> {
        self.allocations().into_iter().filter(|(_, request)| request.flags.host_access())
    }
}

impl Memory for Twin {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        let address = match &self.again {
            None => self.inner.allocate(request)?,
            Some(again) => {
                let first = lock(again).pop_front();
                let (address, wanted) = first.expect("the first maker asked for as many buffers");
                assert_eq!(request, wanted, "both ask for the same");
                address
            }
        };
        lock(&self.made).push((address, request));
        Ok(address)
    }

    fn free(&self, address: u64) {
        if self.again.is_none() {
            self.inner.free(address);
        }
    }

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        self.inner.copy_in(address, bytes);
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        self.inner.copy_out(address, into);
    }

    fn store(&self, address: u64, bytes: &[u8]) {
        self.inner.store(address, bytes);
    }

    fn load(&self, address: u64, into: &mut [u8]) {
        self.inner.load(address, into);
    }
}
