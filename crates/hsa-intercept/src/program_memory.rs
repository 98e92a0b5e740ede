//! Memory for packet programs, from the runtime's pools.

use std::collections::BTreeMap;

use wavescope_aql_profile::{AllocationRequest, Status};
use wavescope_core::AgentId;
use wavescope_core::sync::Mutex;
use wavescope_hsa::{Hsa, Memory, MemoryKind};

/// Allocates what packet programs of one agent ask for.
#[derive(Debug)]
pub struct ProgramMemory {
    hsa: Hsa,
    agent: AgentId,
    /// By address.
    allocations: Mutex<BTreeMap<u64, Memory>>,
}

/// Allocations are whole pages, so that commands and outputs never share one.
const PAGE: u64 = 4096;

impl ProgramMemory {
    /// Memory that `agent` can access.
    pub fn new(hsa: Hsa, agent: AgentId) -> Self {
        Self { hsa, agent, allocations: Mutex::new(BTreeMap::new()) }
    }

    /// Bytes allocated at the moment.
    pub fn allocated_bytes(&self) -> u64 {
        self.allocations.lock().values().map(|memory| memory.size() as u64).sum()
    }

    /// Calls `access` with the allocation that holds `address` and the offset in it.
    fn with(&self, address: u64, access: impl FnOnce(&Memory, usize) -> Result<(), wavescope_hsa::Error>) {
        let allocations = self.allocations.lock();
        let Some((base, memory)) = allocations.range(..=address).next_back() else { return };
        if let Err(error) = access(memory, (address - base) as usize) {
            tracing::error!(%error, agent = %self.agent, "memory of a packet program could not be accessed");
        }
    }
}

impl wavescope_aql_profile::Memory for ProgramMemory {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        let kind = if request.flags.host_access() { MemoryKind::Commands } else { MemoryKind::Device };
        let size = request.bytes.next_multiple_of(PAGE) as usize;
        let memory = Memory::allocate(&self.hsa, self.agent, kind, size).map_err(|error| {
            tracing::warn!(%error, agent = %self.agent, bytes = request.bytes, "no memory for a packet program");
            match error {
                wavescope_hsa::Error::Call { status, .. } => Status(status.0),
                _ => Status::ERROR,
            }
        })?;
        let address = memory.address().addr().get() as u64;
        self.allocations.lock().insert(address, memory);
        Ok(address)
    }

    fn free(&self, address: u64) {
        let memory = self.allocations.lock().remove(&address);
        drop(memory);
    }

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        self.with(address, |memory, offset| memory.copy_in(offset, bytes));
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        self.with(address, |memory, offset| memory.copy_out(offset, into));
    }

    fn store(&self, address: u64, bytes: &[u8]) {
        self.with(address, |memory, offset| memory.store(offset, bytes));
    }

    fn load(&self, address: u64, into: &mut [u8]) {
        self.with(address, |memory, offset| memory.load(offset, into));
    }
}
