//! Which thread submitted a packet: whoever reserved its slot through the table. The thread that reads it may be another.

// Written by every thread that reserves.
use std::sync::atomic::{AtomicU64, Ordering};

use wavescope_core::ThreadId;

use crate::thread_mark::own_thread;

/// Places for each slot of the ring: producers reserve ahead while the ring is full.
const LAPS: usize = 2;

/// A tag for each packet: the lower half of its index, and its thread's number, 0 for unknown.
pub(super) struct Owners {
    tags: Box<[AtomicU64]>,
}

fn tag(index: u64, thread: u32) -> u64 {
    index << 32 | u64::from(thread)
}

impl Owners {
    pub(super) fn new(packets: u32) -> Self {
        let places = packets.next_power_of_two() as usize * LAPS;
        Self { tags: (0..places).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The current thread reserved packets. What it writes into their slots publishes that.
    pub(super) fn reserve(&self, first: u64, count: u64) {
        let thread = own_thread().map_or(0, |thread| thread.0);
        for index in first..first.saturating_add(count.min(self.tags.len() as u64)) {
            self.place(index).store(tag(index, thread), Ordering::Relaxed);
        }
    }

    /// Who submitted the packet at `index`, which was written; `None` if that is not known: the slot was not reserved
    /// through the table, or was reserved again for a later lap.
    pub(super) fn of(&self, index: u64) -> Option<ThreadId> {
        let found = self.place(index).load(Ordering::Relaxed);
        let thread = found as u32;
        (thread != 0 && found == tag(index, thread)).then_some(ThreadId(thread))
    }

    fn place(&self, index: u64) -> &AtomicU64 {
        &self.tags[index as usize & (self.tags.len() - 1)]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_of_the_thread_that_reserved_it_last() {
        let owners = Owners::new(4);
        let me = own_thread();
        assert!(me.is_some());
        assert_eq!(owners.of(0), None, "nobody reserved it");
        owners.reserve(0, 3);
        assert_eq!([0, 1, 2, 3].map(|index| owners.of(index)), [me, me, me, None]);
        std::thread::scope(|scope| {
            scope.spawn(|| owners.reserve(3, 6)).join().unwrap();
        });
        assert_eq!(owners.of(0), None, "its place went to a later lap");
        assert!(owners.of(8).is_some_and(|thread| Some(thread) != me));
        assert_eq!(owners.of(1), me);
        owners.reserve(u64::MAX - 1, 5);
    }
}
