//! Memory of a trace's packet program: GPU-only data lie in the agent's shared slots, the rest is its own.

use std::sync::Arc;

use wavescope_aql_profile::{AllocationRequest, Memory, Status};
use wavescope_core::sync::Mutex;

use crate::{BufferId, DeviceError, Error, Lease, SlotReader};

/// The allocator of one packet program instance.
///
/// The n-th request for memory that only the GPU touches is output slot n of the agent, the same address for every
/// context. What the host touches too (commands, control records) belongs to the packet and is freed with it.
/// The lease lives as long as the instance, or until [`give_up_lease`](Self::give_up_lease).
pub struct SlotMemory {
    lease: Mutex<Option<Arc<Lease>>>,
    own: Arc<dyn Memory>,
    reader: Arc<dyn SlotReader>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Address and size of the slots handed out so far, by index.
    slots: Vec<(u64, u64)>,
    /// Why a slot could not be had: the allocator's answer is only a status.
    refused: Option<Error>,
}

impl SlotMemory {
    /// Memory of an instance of `lease`'s context; `own` serves what is not shared, `reader` reads what is.
    pub fn new(lease: Arc<Lease>, own: Arc<dyn Memory>, reader: Arc<dyn SlotReader>) -> Self {
        Self { lease: Mutex::new(Some(lease)), own, reader, state: Mutex::new(State::default()) }
    }

    /// For an instance that something may still use, the GPU or a client's thread: its lease goes back, or the owner
    /// could never end. The owner knows of every trace in progress and keeps their slot. No slot is to be had any more.
    pub fn give_up_lease(&self) {
        let lease = self.lease.lock().take();
        drop(lease); // sends to the owner: not under the lock
    }

    /// Copies out of a shared slot.
    ///
    /// # Errors
    /// [`DeviceError::NoBuffer`] outside the slots of this instance, or what the runtime says.
    pub fn read_slot(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        if self.is_in_slot(address, into.len()) {
            self.reader.read(address, into)
        } else {
            Err(DeviceError::NoBuffer { address, length: into.len() })
        }
    }

    fn is_in_slot(&self, address: u64, length: usize) -> bool {
        let slots = &self.state.lock().slots;
        slots.iter().any(|&(base, bytes)| {
            let offset = address.checked_sub(base);
            offset.and_then(|offset| offset.checked_add(length as u64)).is_some_and(|end| end <= bytes)
        })
    }

    /// Why the last slot could not be had.
    pub fn take_refusal(&self) -> Option<Error> {
        self.state.lock().refused.take()
    }
}

impl Memory for SlotMemory {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        if request.flags.host_access() {
            return self.own.allocate(request);
        }
        // Not under the locks: the owner may have to allocate.
        let Some(lease) = self.lease.lock().clone() else { return Err(Status::OUT_OF_RESOURCES) };
        let slot = self.state.lock().slots.len() as u32;
        match lease.resolve(BufferId::Output(slot), request.bytes) {
            Ok(address) => {
                self.state.lock().slots.push((address, request.bytes));
                Ok(address)
            }
            Err(error) => {
                self.state.lock().refused = Some(error);
                Err(Status::OUT_OF_RESOURCES)
            }
        }
    }

    fn free(&self, address: u64) {
        // A slot stays: other contexts use it.
        let is_slot = self.state.lock().slots.iter().any(|(slot, _)| *slot == address);
        if !is_slot {
            self.own.free(address);
        }
    }

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        self.own.copy_in(address, bytes);
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        if !self.is_in_slot(address, into.len()) {
            self.own.copy_out(address, into);
        } else if let Err(error) = self.read_slot(address, into) {
            tracing::error!(%error, "output slot not read");
        }
    }

    fn store(&self, address: u64, bytes: &[u8]) {
        self.own.store(address, bytes);
    }

    fn load(&self, address: u64, into: &mut [u8]) {
        self.own.load(address, into);
    }
}
