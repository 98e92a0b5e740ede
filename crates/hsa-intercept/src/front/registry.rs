//! Finds the front of a queue pointer or a doorbell signal, in a few nanoseconds and without a lock.
//!
//! Every signal store of the process asks whether the signal is a doorbell of ours. A filter of one byte per bucket
//! answers nearly always: 0 means no. Otherwise, and for queues, a table with open addressing is searched.
//!
//! Fronts are added and removed under a lock; readers see an entry whole or not at all: the key is stored after the
//! front and cleared before it. A front that was removed is kept for a while: a thread that still uses a queue which
//! another destroys is wrong, but must not take us with it.

use std::collections::VecDeque;
use std::sync::Arc;
// Read on every signal store of the process.
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use wavescope_core::sync::{Deadline, Mutex};

use super::{Front, SharedFront, Worker};
use crate::process::Origin;

/// Buckets of the filter; a power of two.
const BUCKETS: usize = 4096;
/// Places of a table; a power of two, more than queues that a process can have (128 for each of 8 GPUs, twice).
const PLACES: usize = 4096;
/// Fronts that are kept after their end.
const KEPT: usize = 16;

const EMPTY: usize = 0;
/// A place whose entry left: searches go on behind it.
const LEFT: usize = 1;

/// The registry of this process. Never freed.
static OF_PROCESS: AtomicPtr<Registry> = AtomicPtr::new(std::ptr::null_mut());

/// The fronts of the process, by queue and by doorbell, whichever interceptor made them.
pub(crate) struct Registry {
    origin: Origin,
    filter: [AtomicU8; BUCKETS],
    queues: Table,
    doorbells: Table,
    owned: Mutex<Owned>,
}

#[derive(Default)]
struct Owned {
    fronts: Vec<SharedFront>,
    /// Addresses of queues that somebody is destroying.
    ending: Vec<usize>,
    gone: VecDeque<SharedFront>,
    /// Fronts that somebody never left.
    kept: Vec<SharedFront>,
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

struct Table {
    keys: [AtomicUsize; PLACES],
    fronts: [AtomicPtr<Front>; PLACES],
}

/// Spreads addresses, which are multiples of 64, over a power of two.
const fn spread(key: usize, size: usize) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) & (size - 1)
}

impl Table {
    const fn new() -> Self {
        Self {
            keys: [const { AtomicUsize::new(EMPTY) }; PLACES],
            fronts: [const { AtomicPtr::new(std::ptr::null_mut()) }; PLACES],
        }
    }

    fn find(&self, key: usize) -> Option<&Front> {
        let first = spread(key, PLACES);
        for place in (0..PLACES).map(|step| (first + step) % PLACES) {
            match self.keys[place].load(Ordering::Acquire) {
                EMPTY => return None,
                found if found == key => {
                    let front = self.fronts[place].load(Ordering::Relaxed);
                    // SAFETY: the pointer was stored before the key, from an `Arc` that the registry owns until long
                    // after the key was cleared.
                    return unsafe { front.as_ref() };
                }
                _ => {}
            }
        }
        None
    }

    /// Adds an entry; `false` if the table is full. Callers hold the registry's lock.
    fn insert(&self, key: usize, front: &SharedFront) -> bool {
        let first = spread(key, PLACES);
        for place in (0..PLACES).map(|step| (first + step) % PLACES) {
            if matches!(self.keys[place].load(Ordering::Relaxed), EMPTY | LEFT) {
                self.fronts[place].store(Arc::as_ptr(front).cast_mut(), Ordering::Relaxed);
                self.keys[place].store(key, Ordering::Release);
                return true;
            }
        }
        false
    }

    fn remove(&self, key: usize) {
        let place = self.keys.iter().position(|place| place.load(Ordering::Relaxed) == key);
        if let Some(place) = place {
            self.keys[place].store(LEFT, Ordering::Release);
        }
    }
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
    pub(crate) fn by_queue(&self, queue: usize) -> Option<&Front> {
        self.queues.find(queue)
    }

    /// The front whose doorbell has this handle.
    #[inline]
    pub(crate) fn by_doorbell(&self, signal: u64) -> Option<&Front> {
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
        if !self.queues.insert(queue, front) {
            return false;
        }
        if !self.doorbells.insert(doorbell, front) {
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

    /// Takes a front out. Nobody finds it any more; it is kept for a while.
    pub(crate) fn remove(&self, front: &SharedFront) {
        let mut owned = self.owned.lock();
        let (queue, doorbell) = keys(front);
        owned.ending.retain(|ending| *ending != queue);
        let Some(index) = owned.fronts.iter().position(|other| Arc::ptr_eq(other, front)) else { return };
        let front = owned.fronts.swap_remove(index);
        self.queues.remove(queue);
        self.doorbells.remove(doorbell);
        let bucket = &self.filter[spread(doorbell, BUCKETS)];
        let leave = |count: u8| if count == u8::MAX { None } else { count.checked_sub(1) };
        let _ = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, leave);
        owned.gone.push_back(front);
        if owned.gone.len() > KEPT {
            owned.gone.pop_front();
        }
    }

    /// Drops what is kept of the fronts of one interceptor, whose worker it is: their memory goes back to its runtime, which
    /// may end now, and another one may use the addresses again.
    pub(crate) fn forget(&self, worker: &Worker, deadline: Deadline) {
        let mut owned = self.owned.lock();
        let gone = std::mem::take(&mut owned.gone).into_iter();
        let (forgotten, others): (Vec<_>, Vec<_>) = gone.partition(|front| front.is_of(worker));
        owned.gone = others.into();
        drop(owned);
        for front in forgotten {
            // The worker may be looking at it.
            while Arc::strong_count(&front) > 1 && !deadline.is_over() {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            drop(front); // calls the runtime: not under the lock
        }
    }

    /// Keeps a front for good.
    pub(crate) fn keep(&self, front: &SharedFront) {
        self.owned.lock().kept.push(Arc::clone(front));
    }

    /// All fronts.
    pub(crate) fn fronts(&self) -> Vec<SharedFront> {
        self.owned.lock().fronts.clone()
    }
}

fn keys(front: &Front) -> (usize, usize) {
    (front.pointer().addr().get(), front.doorbell().0 as usize)
}
