//! Finds what has an address, without a lock: a table with open addressing.
//!
//! Entries come and go one at a time; readers see one whole or not at all: its key is stored after its item and cleared
//! before it. What a reader finds is pinned ([`pins`](super::pins)).

use wavescope_core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::pins::Pin;
use crate::fault::{self, Fault};

/// Places of a table; a power of two, more than queues that a process can have (128 for each of 8 GPUs, twice). In a model
/// keys are to meet.
const PLACES: usize = if cfg!(loom) { 2 } else { 4096 };

const EMPTY: usize = 0;
/// A place whose entry left: searches go on behind it.
const LEFT: usize = 1;

/// What was found, while it cannot be freed.
pub(crate) struct Found<'a, T> {
    item: &'a T,
    _pin: Pin,
}

impl<T> std::ops::Deref for Found<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item
    }
}

/// Items by key; who adds one keeps it until everybody left who was pinned when it was [removed](Self::remove).
pub(crate) struct Table<T> {
    keys: [AtomicUsize; PLACES],
    items: [AtomicPtr<T>; PLACES],
}

/// Spreads addresses, which are multiples of 64, over a power of two.
pub(super) const fn spread(key: usize, size: usize) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) & (size - 1)
}

impl<T> Table<T> {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            keys: [const { AtomicUsize::new(EMPTY) }; PLACES],
            items: [const { AtomicPtr::new(std::ptr::null_mut()) }; PLACES],
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            keys: [(); PLACES].map(|()| AtomicUsize::new(EMPTY)),
            items: [(); PLACES].map(|()| AtomicPtr::new(std::ptr::null_mut())),
        }
    }

    pub(crate) fn find(&self, key: usize) -> Option<Found<'_, T>> {
        let pin = Pin::new();
        let first = spread(key, PLACES);
        for place in (0..PLACES).map(|step| (first + step) % PLACES) {
            match self.keys[place].load(Ordering::Acquire) {
                EMPTY => return None,
                found if found == key => {
                    let item = self.items[place].load(Ordering::Acquire);
                    let key_now = self.keys[place].load(Ordering::Relaxed);
                    if key_now != key && !fault::is(Fault::KeyAskedOnce) {
                        // It left, and perhaps the next one of this place was read.
                        return None;
                    }
                    // SAFETY: the pointer was stored before the key, from an item that its owner keeps until everybody who
                    // was pinned when the key was cleared has left.
                    let item = unsafe { item.as_ref() }?;
                    return Some(Found { item, _pin: pin });
                }
                _ => {}
            }
        }
        None
    }

    /// Adds an entry; `false` if the table is full. One at a time, and not beside [`remove`](Self::remove).
    pub(crate) fn insert(&self, key: usize, item: *const T) -> bool {
        let first = spread(key, PLACES);
        for place in (0..PLACES).map(|step| (first + step) % PLACES) {
            if matches!(self.keys[place].load(Ordering::Relaxed), EMPTY | LEFT) {
                self.items[place].store(item.cast_mut(), Ordering::Release);
                self.keys[place].store(key, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Takes an entry out. One at a time.
    pub(crate) fn remove(&self, key: usize) {
        let place = self.keys.iter().position(|place| place.load(Ordering::Relaxed) == key);
        let Some(mut place) = place else { return };
        self.keys[place].store(LEFT, Ordering::Release);
        // In front of an empty place no search has to go on: else places that were left would fill the table.
        if self.keys[(place + 1) % PLACES].load(Ordering::Relaxed) != EMPTY {
            return;
        }
        while self.keys[place].load(Ordering::Relaxed) == LEFT {
            self.keys[place].store(EMPTY, Ordering::Release);
            place = (place + PLACES - 1) % PLACES;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Places at which a search does not end.
    fn used(table: &Table<()>) -> usize {
        table.keys.iter().filter(|key| key.load(Ordering::Relaxed) != EMPTY).count()
    }

    // Entries that left do not fill the table: a search for what is not there stays short.
    #[test]
    fn places_that_were_left_become_empty_again() {
        const LIVE: usize = 100;
        let table = Box::new(Table::new());
        let key = |round: usize| 0x7F00_0000_0000 + round * 0x3040;
        for round in 0..100_000 {
            assert!(table.insert(key(round), std::ptr::null()));
            if round >= LIVE {
                table.remove(key(round - LIVE));
            }
        }
        assert!((LIVE..2 * LIVE).contains(&used(&table)), "{}", used(&table));
        (100_000 - LIVE..100_000).for_each(|round| table.remove(key(round)));
        assert_eq!(used(&table), 0);
    }
}
