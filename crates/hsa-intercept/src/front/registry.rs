//! Finds the front of a queue pointer or a doorbell signal, in a few nanoseconds and without a lock.
//!
//! Every signal store of the process asks whether the signal is a doorbell of ours. A filter of one byte per bucket
//! answers nearly always: 0 means no. Otherwise, and for queues, a [`Table`] is searched.
//!
//! Fronts are added and removed under a lock. What a reader finds is pinned: a front that was removed is freed when nobody
//! uses it any more ([`pins`]). A thread that still uses a queue which another destroys is wrong, but must not take us with it.
//!
//! A front whose runtime is gone is found for as long as no other runtime comes up, and does nothing.

use std::sync::Arc;
// Read on every signal store of the process.
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::time::Duration;

use wavescope_core::sync::{Deadline, Mutex};

use super::pins::{self, Retired};
use super::table::{Found, Table, spread};
use super::{Front, SharedFront, Worker};
use crate::process::Origin;

/// Buckets of the filter; a power of two.
const BUCKETS: usize = 4096;

/// Between two looks at who still uses a front.
const PAUSE: Duration = Duration::from_millis(1);

/// The registry of this process. Never freed.
static OF_PROCESS: AtomicPtr<Registry> = AtomicPtr::new(std::ptr::null_mut());

/// The fronts of the process, by queue and by doorbell, whichever interceptor made them.
pub(crate) struct Registry {
    origin: Origin,
    filter: [AtomicU8; BUCKETS],
    queues: Table<Front>,
    doorbells: Table<Front>,
    owned: Mutex<Owned>,
}

#[derive(Default)]
struct Owned {
    fronts: Vec<SharedFront>,
    /// Addresses of queues that somebody is destroying.
    ending: Vec<usize>,
    /// Taken out, and perhaps still in use.
    gone: Retired<SharedFront>,
    /// Fronts whose runtime is gone, to be found. They are never freed: their memory went with it.
    dead: Vec<SharedFront>,
}

/// Who ends a front.
pub(crate) enum Ending {
    /// The caller.
    Yours(SharedFront),
    /// Somebody else is about to.
    Already,
    /// It is none.
    NoFront,
}

impl Registry {
    fn new() -> Self {
        Self {
            origin: Origin::here(),
            filter: [const { AtomicU8::new(0) }; BUCKETS],
            queues: Table::new(),
            doorbells: Table::new(),
            owned: Mutex::new(Owned::default()),
        }
    }

    /// The registry of this process, which a forked child does not share with its parent.
    pub(crate) fn of_process() -> &'static Self {
        loop {
            let found = OF_PROCESS.load(Ordering::Acquire);
            // SAFETY: null, or leaked below.
            if let Some(registry) = unsafe { found.as_ref() }.filter(|registry| !registry.is_inert()) {
                return registry;
            }
            pins::prepare();
            let new = Box::into_raw(Box::new(Self::new()));
            if OF_PROCESS.compare_exchange(found, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: made above, and nobody else saw it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    /// Whether it belongs to a process of which this is a forked child.
    pub(crate) fn is_inert(&self) -> bool {
        self.origin.is_parent()
    }

    /// The front that an application holds as `queue`.
    pub(crate) fn by_queue(&self, queue: usize) -> Option<Found<'_, Front>> {
        self.queues.find(queue)
    }

    /// The front whose doorbell has this handle.
    #[inline]
    pub(crate) fn by_doorbell(&self, signal: u64) -> Option<Found<'_, Front>> {
        let key = signal as usize;
        if self.filter[spread(key, BUCKETS)].load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.doorbells.find(key)
    }

    /// Adds a front; `false` if there is no place.
    pub(crate) fn add(&self, front: &SharedFront) -> bool {
        let mut owned = self.owned.lock();
        let (queue, doorbell) = keys(front);
        if !self.queues.insert(queue, Arc::as_ptr(front)) {
            return false;
        }
        if !self.doorbells.insert(doorbell, Arc::as_ptr(front)) {
            self.queues.remove(queue);
            return false;
        }
        let bucket = &self.filter[spread(doorbell, BUCKETS)];
        // A bucket that was used 255 times stays in use: it only costs a search.
        let _ = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_add(1));
        owned.fronts.push(Arc::clone(front));
        true
    }

    /// Begins to end a front: whoever gets it removes it. It is found until then.
    pub(crate) fn begin_end(&self, queue: usize) -> Ending {
        let mut owned = self.owned.lock();
        let found = owned.fronts.iter().find(|front| keys(front).0 == queue).cloned();
        let Some(front) = found else { return Ending::NoFront };
        if owned.ending.contains(&queue) {
            return Ending::Already;
        }
        owned.ending.push(queue);
        Ending::Yours(front)
    }

    /// Takes a front out. Nobody finds it any more; it is freed when nobody uses it.
    pub(crate) fn remove(&self, front: &SharedFront) {
        let mut owned = self.owned.lock();
        let queue = keys(front).0;
        owned.ending.retain(|ending| *ending != queue);
        let Some(index) = owned.fronts.iter().position(|other| Arc::ptr_eq(other, front)) else { return };
        let front = owned.fronts.swap_remove(index);
        owned.gone.retire(front, |front| self.take_out(front));
        let free = owned.gone.sweep();
        drop(owned);
        drop(free); // calls the runtime: not under the lock
    }

    fn take_out(&self, front: &Front) {
        let (queue, doorbell) = keys(front);
        self.queues.remove(queue);
        self.doorbells.remove(doorbell);
        let bucket = &self.filter[spread(doorbell, BUCKETS)];
        let leave = |count: u8| if count == u8::MAX { None } else { count.checked_sub(1) };
        let _ = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, leave);
    }

    /// Frees what is left of the fronts of one interceptor, whose worker it is: their memory goes back to its runtime, which
    /// may end now, and another one may use the addresses again. What somebody still uses at the `deadline` stays.
    pub(crate) fn forget(&self, worker: &Worker, deadline: Deadline) {
        loop {
            let mut owned = self.owned.lock();
            let free = owned.gone.sweep();
            let left = owned.gone.iter().any(|front| front.is_of(worker));
            drop(owned);
            // The worker may be looking at one.
            while free.iter().any(|front| Arc::strong_count(front) > 1) && !deadline.is_over() {
                std::thread::park_timeout(PAUSE);
            }
            drop(free);
            if !left || deadline.is_over() {
                return;
            }
            std::thread::park_timeout(PAUSE);
        }
    }

    /// The runtime of these fronts is gone. They are found until [`bury`](Self::bury), so that nobody takes them for queues
    /// of a runtime.
    pub(crate) fn runtime_gone(&self, worker: &Worker) -> Vec<SharedFront> {
        let mut owned = self.owned.lock();
        let dead: Vec<_> = owned.fronts.extract_if(.., |front| front.is_of(worker)).collect();
        owned.dead.extend(dead.iter().cloned());
        dead
    }

    /// A runtime came up: what has an address of a dead front is its own.
    pub(crate) fn bury(&self) {
        let mut owned = self.owned.lock();
        for front in std::mem::take(&mut owned.dead) {
            self.take_out(&front);
            // Its memory went with its runtime.
            std::mem::forget(front);
        }
    }

    /// All fronts.
    pub(crate) fn fronts(&self) -> Vec<SharedFront> {
        self.owned.lock().fronts.clone()
    }
}

fn keys(front: &Front) -> (usize, usize) {
    (front.pointer().addr().get(), front.doorbell().0 as usize)
}
