//! Which memory each GPU may touch: its page tables, so to speak.
//!
//! Read by the consumers of all queues on every access, written by the driver thread when memory is mapped. Each
//! reading thread remembers the last few ranges; whatever takes a right away makes all threads forget.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use wavescope_software_gpu::Access;

use super::backing::PAGE;
use crate::futex;

/// A set of GPUs, one bit each.
pub(super) type GpuSet = u64;

/// A range and the GPUs that it is mapped to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// First byte.
    pub(super) base: u64,
    /// First byte behind it.
    pub(super) end: u64,
    /// GPUs that may access it.
    pub(super) gpus: GpuSet,
    /// Whether they may write.
    pub(super) writable: bool,
}

/// The ranges. They never overlap.
#[derive(Debug)]
pub(super) struct AddressMap {
    ranges: RwLock<BTreeMap<u64, Range>>,
    /// Unique over all maps and moments; moves with every change that takes a right away.
    generation: AtomicU64,
}

/// Ranges that a thread remembers: a dispatch touches its ring, its signals, its kernel and its arguments.
const REMEMBERED: usize = 8;

/// One remembered range; `generation` 0 is none.
#[derive(Clone, Copy)]
struct Memory {
    generation: u64,
    range: Range,
}

thread_local! {
    static RECENT: [Cell<Memory>; REMEMBERED] = const {
        const NOWHERE: Range = Range { base: 0, end: 0, gpus: 0, writable: false };
        [const { Cell::new(Memory { generation: 0, range: NOWHERE }) }; REMEMBERED]
    };
    static OLDEST: Cell<usize> = const { Cell::new(0) };
}

static GENERATIONS: AtomicU64 = AtomicU64::new(1);

impl Range {
    fn grants(&self, gpu: usize, access: Access) -> bool {
        self.gpus >> gpu & 1 == 1 && (self.writable || access == Access::Read)
    }

    fn contains(&self, address: u64, end: u64) -> bool {
        self.base <= address && end <= self.end
    }
}

impl AddressMap {
    pub(super) fn new() -> Self {
        Self { ranges: RwLock::default(), generation: AtomicU64::new(next_generation()) }
    }

    /// Adds a range, or replaces the one that begins where it begins.
    pub(super) fn insert(&self, range: Range) {
        let before = self.write().insert(range.base, range);
        if before.is_some() {
            self.forget();
        }
    }

    /// Takes out the range that begins at `base`.
    pub(super) fn remove(&self, base: u64) {
        if self.write().remove(&base).is_some() {
            self.forget();
        }
    }

    /// Whether GPU `gpu` may access all of `bytes` bytes at `address`. Memory that no one registered is the process's
    /// own: the kernel is asked for it, page by page.
    pub(super) fn is_valid(&self, gpu: usize, address: u64, bytes: u64, access: Access) -> bool {
        let Some(end) = address.checked_add(bytes) else { return false };
        let generation = self.generation.load(Ordering::Acquire);
        let known = |memory: &Cell<Memory>| {
            let Memory { generation: known, range } = memory.get();
            known == generation && range.contains(address, end) && range.grants(gpu, access)
        };
        RECENT.with(|recent| recent.iter().any(known)) || self.look_up(gpu, address, end, access, generation)
    }

    #[cold]
    fn look_up(&self, gpu: usize, mut address: u64, end: u64, access: Access, generation: u64) -> bool {
        while address < end {
            let Some(range) = self.find(address) else {
                if !may_touch(address, access) {
                    return false;
                }
                address = (address | (PAGE - 1)) + 1;
                continue;
            };
            if !range.grants(gpu, access) {
                return false;
            }
            remember(Memory { generation, range });
            address = range.end;
        }
        true
    }

    fn find(&self, address: u64) -> Option<Range> {
        let ranges = self.read();
        ranges.range(..=address).next_back().map(|(_, range)| *range).filter(|range| address < range.end)
    }

    fn forget(&self) {
        self.generation.store(next_generation(), Ordering::Release);
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<u64, Range>> {
        self.ranges.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<u64, Range>> {
        self.ranges.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next_generation() -> u64 {
    GENERATIONS.fetch_add(1, Ordering::AcqRel)
}

fn remember(memory: Memory) {
    let oldest = OLDEST.get();
    RECENT.with(|recent| recent[oldest % REMEMBERED].set(memory));
    OLDEST.set((oldest + 1) % REMEMBERED);
}

fn may_touch(address: u64, access: Access) -> bool {
    match access {
        Access::Read => futex::is_readable(address),
        Access::Write => futex::is_writable(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Range = Range { base: 0x7000_0000_0000, end: 0x7000_0000_3000, gpus: 0b01, writable: true };
    const B: Range = Range { base: 0x7000_0000_3000, end: 0x7000_0000_4000, gpus: 0b11, writable: false };

    fn map() -> AddressMap {
        let map = AddressMap::new();
        map.insert(A);
        map.insert(B);
        map
    }

    #[test]
    fn each_gpu_sees_what_is_mapped_to_it() {
        let map = map();
        assert!(map.is_valid(0, A.base, 0x3000, Access::Write));
        assert!(!map.is_valid(1, A.base, 1, Access::Read));
        assert!(map.is_valid(1, B.base, 0x1000, Access::Read));
        assert!(!map.is_valid(0, B.base, 1, Access::Write));
    }

    #[test]
    fn access_may_span_adjacent_ranges_but_no_gap() {
        let map = map();
        assert!(map.is_valid(0, A.end - 8, 16, Access::Read));
        assert!(!map.is_valid(0, A.end - 8, 16, Access::Write));
        assert!(!map.is_valid(0, B.end - 8, 16, Access::Read));
    }

    #[test]
    fn removed_range_is_forgotten_by_threads_that_remembered_it() {
        let map = map();
        assert!(map.is_valid(0, A.base, 8, Access::Read));
        map.remove(A.base);
        assert!(!map.is_valid(0, A.base, 8, Access::Read));
    }

    #[test]
    fn another_map_is_not_taken_for_the_remembered_one() {
        let (map, other) = (map(), AddressMap::new());
        assert!(map.is_valid(0, A.base, 8, Access::Read));
        assert!(!other.is_valid(0, A.base, 8, Access::Read));
    }

    #[test]
    fn unregistered_memory_of_the_process_is_as_the_kernel_maps_it() {
        static CONSTANT: [u64; 2] = [1, 2];
        let map = map();
        let (constant, variable) = (CONSTANT.as_ptr() as u64, Box::new(0_u64));
        assert!(map.is_valid(0, constant, 16, Access::Read));
        assert!(!map.is_valid(0, constant, 16, Access::Write));
        assert!(map.is_valid(0, std::ptr::from_ref(&*variable) as u64, 8, Access::Write));
        assert!(!map.is_valid(0, 0x40, 8, Access::Read));
        assert!(!map.is_valid(0, u64::MAX - 3, 8, Access::Read));
    }
}
