//! Memory that the runtime hands out or is told about: allocation, access rights, locked host memory, pointer info.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hsa_sys::{HSA_STATUS_ERROR_INVALID_ALLOCATION, HSA_STATUS_ERROR_OUT_OF_RESOURCES};

use super::address_map::{AddressMap, GpuSet, Range};
use super::agents::AgentIndex;
use super::error::{Failure, Outcome};
use super::pages::Pages;
use super::pools::{GRANULE, Pool};

/// Where a piece of memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Allocated from a pool or region.
    Pool(Pool),
    /// The application's own, locked for access by GPUs.
    Locked,
    /// The runtime's own: rings, code.
    Internal,
}

/// One piece of memory.
#[derive(Debug)]
pub(super) struct Allocation {
    pub(super) base: u64,
    /// As asked for; the pages behind it reach further.
    pub(super) bytes: u64,
    pub(super) origin: Origin,
    pub(super) gpus: GpuSet,
    pub(super) user_data: u64,
    /// How often it was locked.
    locks: u32,
    /// Given back when the piece goes.
    _pages: Option<Pages>,
}

/// What is said about a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PointerInfo {
    pub(super) base: u64,
    pub(super) bytes: u64,
    pub(super) origin: Origin,
    pub(super) gpus: GpuSet,
    pub(super) user_data: u64,
}

/// All memory of the runtime.
#[derive(Debug)]
pub(super) struct Allocations {
    map: Arc<AddressMap>,
    pieces: Mutex<BTreeMap<u64, Allocation>>,
}

impl Allocations {
    pub(super) fn new(map: Arc<AddressMap>) -> Self {
        Self { map, pieces: Mutex::default() }
    }

    /// Allocates from a pool. Its owner may access the memory at once; the pages are zero.
    pub(super) fn allocate(&self, pool: Pool, bytes: u64) -> Outcome<u64> {
        if bytes == 0 || !pool.is_global() {
            return Err(Failure::ARGUMENT);
        }
        if self.used(pool.owner).saturating_add(bytes) > pool.bytes {
            return Err(Failure(HSA_STATUS_ERROR_OUT_OF_RESOURCES));
        }
        let gpus = match pool.owner {
            AgentIndex::Cpu => GpuSet::default(),
            AgentIndex::Gpu(index) => GpuSet::one(index),
        };
        self.add_pages(bytes, Origin::Pool(pool), gpus)
    }

    /// Allocates for the runtime itself, accessible to every GPU.
    pub(super) fn allocate_internal(&self, bytes: u64) -> Outcome<u64> {
        self.add_pages(bytes, Origin::Internal, GpuSet::ALL)
    }

    /// Frees what [`allocate`](Self::allocate) or [`allocate_internal`](Self::allocate_internal) returned.
    pub(super) fn free(&self, base: u64) -> Outcome {
        let mut pieces = self.pieces();
        if pieces.get(&base).is_none_or(|piece| piece.origin == Origin::Locked) {
            return Err(Failure(HSA_STATUS_ERROR_INVALID_ALLOCATION));
        }
        // Out of the map before it is unmapped: a device that asks in between is refused.
        self.map.remove(base);
        pieces.remove(&base);
        Ok(())
    }

    /// Replaces the GPUs that may access an allocation (its owner keeps its right).
    pub(super) fn allow(&self, address: u64, gpus: GpuSet) -> Outcome {
        let mut pieces = self.pieces();
        let piece = around(&mut pieces, address).ok_or(Failure(HSA_STATUS_ERROR_INVALID_ALLOCATION))?;
        let owner = match piece.origin {
            Origin::Pool(Pool { owner: AgentIndex::Gpu(index), .. }) => GpuSet::one(index),
            _ => GpuSet::default(),
        };
        piece.gpus = gpus.with(owner);
        self.map.set_gpus(piece.base, piece.gpus);
        Ok(())
    }

    /// Lets GPUs access host memory of the application. Locking the same range again adds a lock.
    pub(super) fn lock(&self, base: u64, bytes: u64, gpus: GpuSet) -> Outcome {
        if base == 0 || bytes == 0 {
            return Err(Failure::ARGUMENT);
        }
        let mut pieces = self.pieces();
        if let Some(piece) = pieces.get_mut(&base).filter(|piece| piece.origin == Origin::Locked) {
            piece.locks += 1;
            piece.gpus = piece.gpus.with(gpus);
            self.map.set_gpus(base, piece.gpus);
            return Ok(());
        }
        let overlaps = around(&mut pieces, base).is_some() || around(&mut pieces, base + bytes - 1).is_some();
        if overlaps {
            // Pool memory is locked by nature; ROCr answers with the address as it is.
            return Ok(());
        }
        let origin = Origin::Locked;
        pieces.insert(base, Allocation { base, bytes, origin, gpus, user_data: 0, locks: 1, _pages: None });
        self.map.insert(Range { base, bytes, gpus });
        Ok(())
    }

    /// Takes one lock back.
    pub(super) fn unlock(&self, base: u64) -> Outcome {
        let mut pieces = self.pieces();
        let Some(piece) = pieces.get_mut(&base).filter(|piece| piece.origin == Origin::Locked) else {
            return Ok(());
        };
        piece.locks -= 1;
        if piece.locks == 0 {
            self.map.remove(base);
            pieces.remove(&base);
        }
        Ok(())
    }

    /// The piece of memory around `address`.
    pub(super) fn find(&self, address: u64) -> Option<PointerInfo> {
        let mut pieces = self.pieces();
        let piece = around(&mut pieces, address)?;
        let &mut Allocation { base, bytes, origin, gpus, user_data, .. } = piece;
        Some(PointerInfo { base, bytes, origin, gpus, user_data })
    }

    /// Remembers a pointer of the application with the piece around `address`.
    pub(super) fn set_user_data(&self, address: u64, user_data: u64) -> Outcome {
        let mut pieces = self.pieces();
        around(&mut pieces, address).ok_or(Failure::ARGUMENT)?.user_data = user_data;
        Ok(())
    }

    /// Bytes allocated from the pools of an agent.
    pub(super) fn used(&self, owner: AgentIndex) -> u64 {
        let of_owner =
            |piece: &&Allocation| matches!(piece.origin, Origin::Pool(pool) if pool.owner == owner);
        self.pieces().values().filter(of_owner).map(|piece| piece.bytes.next_multiple_of(GRANULE)).sum()
    }

    fn add_pages(&self, bytes: u64, origin: Origin, gpus: GpuSet) -> Outcome<u64> {
        // A child that uses a queue of its parent ends by SIGSEGV, as on ROCr 7.2.4 (`libhsakmt` maps for this process only).
        let pages = match origin {
            Origin::Internal => Pages::map_for_this_process(bytes),
            Origin::Pool(_) | Origin::Locked => Pages::map(bytes),
        };
        let pages = pages.ok_or(Failure(HSA_STATUS_ERROR_OUT_OF_RESOURCES))?;
        let base = pages.address();
        let piece = Allocation { base, bytes, origin, gpus, user_data: 0, locks: 0, _pages: Some(pages) };
        self.pieces().insert(base, piece);
        self.map.insert(Range { base, bytes: bytes.next_multiple_of(GRANULE), gpus });
        Ok(base)
    }

    fn pieces(&self) -> MutexGuard<'_, BTreeMap<u64, Allocation>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn around(pieces: &mut BTreeMap<u64, Allocation>, address: u64) -> Option<&mut Allocation> {
    let (_, piece) = pieces.range_mut(..=address).next_back()?;
    (address - piece.base < piece.bytes).then_some(piece)
}
