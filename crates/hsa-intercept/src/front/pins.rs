//! Keeps a front alive while an entry of the table uses it, without a count in the front.
//!
//! Each thread has a word of its own that is odd while it is inside an entry. A front that was taken out of the registry is
//! freed when every thread that was inside at that moment has left, as its word tells: it changed. Nobody waits for that.
//!
//! ```text
//!   entry                                 retire
//!   ─────                                 ──────
//!   word := odd (release)                 take the front out of the registry
//!   barrier                               barrier
//!   look the front up, use it             note every word that is odd; free once each of them changed
//!   word := next even value (release)
//! ```
//!
//! Either the look-up misses the front, or its word is seen odd. Entries are called all the time and retirements are rare, so
//! the barrier of the former is only one for the compiler and the latter has the kernel run one on every processor
//! (`membarrier`), where there is that.

use std::cell::Cell;
// The same for the whole process, in a model for all of its schedules.
use std::sync::atomic::{AtomicU8, compiler_fence};

use wavescope_core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};

use crate::fault::{self, Fault};
use crate::local::{static_of_model, thread_local_of_model};
use crate::process::generation;

/// One thread's word. Never freed: the next new thread takes it over.
struct Slot {
    /// Odd while its thread is inside.
    word: AtomicU64,
    taken: AtomicBool,
    /// A forked child has no use for those of its parent's threads.
    generation: u32,
    older: *const Self,
}

// SAFETY: the pointer is to another slot, and slots are never freed; it is set before anybody else sees this one.
unsafe impl Sync for Slot {}

static_of_model! {
    /// All slots of the process, newest first.
    static NEWEST: AtomicPtr<Slot> = AtomicPtr::new(std::ptr::null_mut());
    /// Threads inside that have no slot: their locals are gone.
    static NAMELESS: AtomicU64 = AtomicU64::new(0);
}

const FULL: u8 = 0;
const LIGHT: u8 = 1;

/// Which barrier entries need.
static BARRIER: AtomicU8 = AtomicU8::new(FULL);

/// From the kernel's `membarrier.h`.
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Entries begin with barriers of their own. Called before there is a front; again in a forked child.
pub(super) fn prepare() {
    BARRIER.store(FULL, Ordering::SeqCst);
}

/// Lets entries do without, where the kernel can. Announcing that to the kernel takes some ten milliseconds in a process
/// with several threads, so a thread of ours does it.
pub(super) fn lighten() {
    if membarrier(REGISTER_PRIVATE_EXPEDITED) {
        // Behind the kernel's own barrier: a retirement that could not use it yet was before every entry that relies on it.
        fence(Ordering::SeqCst);
        BARRIER.store(LIGHT, Ordering::SeqCst);
    }
}

struct Mine {
    slot: Cell<Option<&'static Slot>>,
    depth: Cell<u32>,
}

thread_local_of_model! {
    static MINE: Mine = Mine { slot: Cell::new(None), depth: Cell::new(0) };
}

impl Drop for Mine {
    fn drop(&mut self) {
        if cfg!(loom) && std::thread::panicking() {
            // The model failed, and its words are gone.
            return;
        }
        if let Some(slot) = self.slot.get() {
            // A thread that ends inside, by pthread_exit, has left too.
            let word = slot.word.load(Ordering::Relaxed);
            slot.word.store(word + word % 2, Ordering::Release);
            slot.taken.store(false, Ordering::Release);
        }
    }
}

impl Mine {
    fn slot(&self) -> &'static Slot {
        let known = self.slot.get().filter(|slot| slot.generation == generation());
        known.unwrap_or_else(|| {
            let slot = free_slot();
            self.slot.set(Some(slot));
            // In a forked child, what its only thread was inside of belongs to the parent.
            self.depth.set(0);
            slot
        })
    }

    fn enter(&self) {
        let slot = self.slot();
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        if depth == 0 {
            let outside = slot.word.load(Ordering::Relaxed);
            // Release, too: who waits for an earlier visit may see only this one.
            let unordered = fault::is(Fault::VisitUnordered);
            slot.word.store(outside + 1, if unordered { Ordering::Relaxed } else { Ordering::Release });
            if BARRIER.load(Ordering::Acquire) == LIGHT {
                compiler_fence(Ordering::SeqCst);
            } else if !fault::is(Fault::PinnedWithoutBarrier) {
                fence(Ordering::SeqCst);
            }
        }
    }

    fn leave(&self) {
        let depth = self.depth.get().saturating_sub(1);
        self.depth.set(depth);
        if let Some(slot) = self.slot.get().filter(|_| depth == 0) {
            let inside = slot.word.load(Ordering::Relaxed);
            slot.word.store(inside + inside % 2, Ordering::Release);
        }
    }
}

/// All slots of this process.
fn slots() -> impl Iterator<Item = &'static Slot> {
    // SAFETY: null, or leaked by `free_slot`; likewise what it points to.
    let newest = unsafe { NEWEST.load(Ordering::Acquire).as_ref() };
    // SAFETY: likewise.
    let all = std::iter::successors(newest, |slot| unsafe { slot.older.as_ref() });
    all.filter(|slot| slot.generation == generation())
}

#[cold]
fn free_slot() -> &'static Slot {
    let free = slots().find(|slot| !slot.taken.swap(true, Ordering::AcqRel));
    free.unwrap_or_else(|| {
        let mut older = NEWEST.load(Ordering::Acquire);
        let slot =
            Slot { word: AtomicU64::new(0), taken: AtomicBool::new(true), generation: generation(), older };
        let new = Box::into_raw(Box::new(slot));
        loop {
            // SAFETY: made above, and nobody else sees it until it is exchanged in.
            unsafe { (*new).older = older };
            match NEWEST.compare_exchange(older, new, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: made above, and never freed.
                Ok(_) => return unsafe { &*new },
                Err(now) => older = now,
            }
        }
    })
}

/// What was found while it is there stays, until dropped.
#[derive(Debug)]
pub(crate) struct Pin {
    nameless: bool,
    // The word is the thread's.
    _here: std::marker::PhantomData<*const ()>,
}

impl Pin {
    #[inline]
    pub(super) fn new() -> Self {
        let nameless = MINE.try_with(Mine::enter).is_err();
        if nameless {
            NAMELESS.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
        Self { nameless, _here: std::marker::PhantomData }
    }
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        if self.nameless {
            NAMELESS.fetch_sub(1, Ordering::Release);
        } else {
            let _ = MINE.try_with(Mine::leave);
        }
    }
}

/// Who may still use what nobody finds any more.
struct Users {
    inside: Vec<(&'static Slot, u64)>,
    nameless: bool,
    /// There was no barrier: nobody knows.
    unknown: bool,
}

impl Users {
    /// Those of what was taken out just now.
    fn now() -> Self {
        fence(Ordering::SeqCst);
        // Asked behind the kernel's refusal: who does without a barrier came later, and finds nothing.
        let unknown = !membarrier(PRIVATE_EXPEDITED) && BARRIER.load(Ordering::SeqCst) == LIGHT;
        let inside = slots().map(|slot| (slot, slot.word.load(Ordering::Acquire)));
        let inside = inside.filter(|(_, word)| word % 2 == 1).collect();
        Self { inside, nameless: NAMELESS.load(Ordering::Acquire) > 0, unknown }
    }

    /// Whether all of them have left.
    fn are_gone(&mut self) -> bool {
        self.inside.retain(|(slot, word)| slot.word.load(Ordering::Acquire) == *word);
        self.nameless &= NAMELESS.load(Ordering::Acquire) > 0;
        self.inside.is_empty() && !self.nameless && !self.unknown
    }
}

/// What nobody finds any more, and perhaps is still in use.
pub(crate) struct Retired<T>(Vec<(T, Users)>);

impl<T> Default for Retired<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Retired<T> {
    /// Keeps `item`, which nobody finds once `take_out` returned.
    pub(crate) fn retire(&mut self, item: T, take_out: impl FnOnce(&T)) {
        let early = fault::is(Fault::UsersAskedBeforeTakenOut).then(Users::now);
        take_out(&item);
        self.0.push((item, early.unwrap_or_else(Users::now)));
    }

    /// What nobody uses any more.
    pub(crate) fn sweep(&mut self) -> Vec<T> {
        self.0.extract_if(.., |(_, users)| users.are_gone()).map(|(item, _)| item).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(item, _)| item)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_inside_is_waited_for_and_who_comes_later_is_not() {
        prepare();
        lighten();
        let (entered, leave) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let outer = Pin::new();
                drop(Pin::new());
                entered.wait();
                leave.wait();
                drop(outer);
            });
            entered.wait();
            let mut users = Users::now();
            assert!(!users.are_gone(), "a nested visit does not end the outer one");
            leave.wait();
            inside.join().unwrap();
            let _later = Pin::new();
            assert!(users.are_gone());
            assert!(!Users::now().are_gone(), "the current thread counts too");
        });
    }
}
