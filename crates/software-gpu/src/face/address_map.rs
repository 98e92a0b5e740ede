//! Which memory the GPUs may touch: every range that the runtime handed out or that the application locked.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// A set of GPU agents, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GpuSet(pub(super) u64);

impl GpuSet {
    /// Every GPU.
    pub(super) const ALL: Self = Self(u64::MAX);

    /// One GPU, by its index.
    pub(super) const fn one(index: usize) -> Self {
        Self(1 << index)
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Contiguous bytes with the GPUs that may access them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) base: u64,
    pub(super) bytes: u64,
    pub(super) gpus: GpuSet,
}

impl Range {
    fn grants(&self, gpu: GpuSet, address: u64, bytes: u64) -> bool {
        self.covers(address, bytes) && self.gpus.contains(gpu)
    }

    pub(super) fn covers(&self, address: u64, bytes: u64) -> bool {
        address
            .checked_sub(self.base)
            .is_some_and(|offset| offset.checked_add(bytes).is_some_and(|end| end <= self.bytes))
    }
}

/// The ranges. Ranges never overlap.
#[derive(Debug, Default)]
pub(super) struct AddressMap {
    ranges: RwLock<BTreeMap<u64, Range>>,
    /// Moves with every change that takes a right away, so that what threads remember is forgotten.
    generation: AtomicU64,
}

/// Ranges that a thread remembers. A dispatch touches its ring, its signals, its kernel and its arguments.
const REMEMBERED: usize = 8;
const _: () = assert!(REMEMBERED.is_power_of_two());

#[derive(Clone, Copy, Default)]
struct Remembered {
    map: usize,
    generation: u64,
    range: Range,
}

thread_local! {
    static RECENT: [Cell<Remembered>; REMEMBERED] = const {
        [const {
            Cell::new(Remembered { map: 0, generation: 0, range: Range { base: 0, bytes: 0, gpus: GpuSet(0) } })
        }; REMEMBERED]
    };
}

/// Where a thread remembers the range of an address.
fn place(address: u64) -> usize {
    (address >> 15).wrapping_mul(0x9E37_79B9_7F4A_7C15) as usize >> 32 & (REMEMBERED - 1)
}

impl AddressMap {
    /// Adds a range.
    pub(super) fn insert(&self, range: Range) {
        self.write().insert(range.base, range);
    }

    /// Takes a range out again; `None` if none begins there.
    pub(super) fn remove(&self, base: u64) -> Option<Range> {
        let removed = self.write().remove(&base);
        self.generation.fetch_add(1, Ordering::Release);
        removed
    }

    /// Changes who may access the range that begins at `base`. Returns false if there is none.
    pub(super) fn set_gpus(&self, base: u64, gpus: GpuSet) -> bool {
        let found = self.write().get_mut(&base).map(|range| range.gpus = gpus).is_some();
        self.generation.fetch_add(1, Ordering::Release);
        found
    }

    /// The range around `address`.
    pub(super) fn find(&self, address: u64) -> Option<Range> {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let (_, range) = ranges.range(..=address).next_back()?;
        range.covers(address, 1).then_some(*range)
    }

    /// Whether this thread remembers that `gpu` may access all of these bytes. False says nothing.
    pub(super) fn recalls(&self, gpu: GpuSet, address: u64, bytes: u64) -> bool {
        let remembered = RECENT.try_with(|recent| recent[place(address)].get()).unwrap_or_default();
        remembered.map == self.identity()
            && remembered.generation == self.generation.load(Ordering::Acquire)
            && remembered.range.grants(gpu, address, bytes)
    }

    /// Whether `gpu` may access all of these bytes. The thread remembers it if so.
    pub(super) fn allows(&self, gpu: GpuSet, address: u64, bytes: u64) -> bool {
        // Read before the look: a right that is taken away in between is forgotten with the old generation.
        let (map, generation) = (self.identity(), self.generation.load(Ordering::Acquire));
        let Some(range) = self.find(address).filter(|range| range.grants(gpu, address, bytes)) else {
            return false;
        };
        // A thread that is ending remembers nothing, which is only slower.
        let _ = RECENT.try_with(|recent| recent[place(address)].set(Remembered { map, generation, range }));
        true
    }

    fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<u64, Range>> {
        self.ranges.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: GpuSet = GpuSet::one(0);
    const SECOND: GpuSet = GpuSet::one(1);

    #[test]
    fn access_ends_with_the_range_and_with_the_right() {
        let map = AddressMap::default();
        map.insert(Range { base: 0x1000, bytes: 0x100, gpus: FIRST });
        for (gpu, address, bytes, allowed) in [
            (FIRST, 0x1000, 0x100, true),
            (FIRST, 0x10ff, 1, true),
            (FIRST, 0x1000, 0x101, false),
            (FIRST, 0xfff, 1, false),
            (FIRST, 0x1100, 1, false),
            (SECOND, 0x1000, 1, false),
            (FIRST, 0x1001, u64::MAX, false),
        ] {
            assert_eq!(map.allows(gpu, address, bytes), allowed, "{address:#x} + {bytes:#x}");
            assert!(allowed || !map.recalls(gpu, address, bytes), "remembered what was refused");
        }
        assert!(map.recalls(FIRST, 0x1000, 0x100));
        assert!(map.set_gpus(0x1000, SECOND));
        assert!(!map.recalls(FIRST, 0x1000, 1), "the right was taken away");
        assert!(!map.allows(FIRST, 0x1000, 1));
        assert!(map.allows(SECOND, 0x1000, 1));
        assert!(map.remove(0x1000).is_some());
        assert!(!map.recalls(SECOND, 0x1000, 1), "the range is gone");
        assert!(!map.allows(SECOND, 0x1000, 1));
    }
}
