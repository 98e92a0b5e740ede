//! The subscribers of an agent as one immutable value, swapped whole.
//!
//! Readers are the write hooks of the agent's queues, one at a time per queue. Each queue has an **in-hook word**
//! that says whether its hook is reading. There is no reference count and no lock on the reading side:
//!
//! ```text
//!   hook (one per queue)                 swap
//!   ────────────────────                 ────
//!   current == null? pass through        old = current.swap(new)
//!   word := 1 (release)                  fence(SeqCst)
//!   fence(SeqCst)                        for each queue of the agent: wait until word == 0 or it changed
//!   snapshot = current.load()            free old
//!   ... use it ...
//!   word := next even value (release)
//! ```
//!
//! The two fences decide each race: either the hook reads the new value, or the swap sees its word and waits.
//! A word counts up, odd while inside, so a waiter is done when it sees *any* other value: a queue that is fed
//! without pause cannot starve it. Whoever swaps from inside a hook (a dispatch callback that stops its
//! context) must not wait, since another hook may be waiting for it in the same way; the old value is kept until
//! a later swap has waited.

use std::sync::Arc;

use wavescope_core::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};
use wavescope_core::sync::{Deadline, Mutex, thread};

use crate::fault::{self, Fault};
use crate::thread_mark::InsideHook;

/// Says whether one queue's hook is reading a snapshot: odd while it is.
#[derive(Debug, Default)]
pub(crate) struct HookWord(AtomicU64);

impl HookWord {
    /// Whether a hook is inside at the moment.
    pub(crate) fn is_inside(&self) -> bool {
        self.0.load(Ordering::Relaxed) % 2 == 1
    }
}

/// Holds the current snapshot of an agent, or none.
#[derive(Debug)]
pub(crate) struct SnapshotCell<T> {
    current: AtomicPtr<T>,
    /// Swapped out without a wait.
    kept: Mutex<Vec<Arc<T>>>,
}

/// A snapshot in use by a hook.
pub(crate) struct Reading<'a, T> {
    snapshot: &'a T,
    word: &'a HookWord,
    _inside: InsideHook,
}

impl<T> std::ops::Deref for Reading<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.snapshot
    }
}

impl<T> Drop for Reading<'_, T> {
    fn drop(&mut self) {
        let inside = self.word.0.load(Ordering::Relaxed);
        self.word.0.store(inside + 1, Ordering::Release);
    }
}

impl<T> SnapshotCell<T> {
    /// No snapshot.
    pub(crate) fn empty() -> Self {
        Self { current: AtomicPtr::new(std::ptr::null_mut()), kept: Mutex::new(Vec::new()) }
    }

    /// Whether there is none: the one load of a hook that nobody listens to.
    pub(crate) fn is_empty(&self) -> bool {
        self.current.load(Ordering::Relaxed).is_null()
    }

    /// Reads the snapshot on behalf of the hook that owns `word`. `None` if there is none, or if that hook is
    /// inside already (a nested call).
    pub(crate) fn read<'a>(&'a self, word: &'a HookWord) -> Option<Reading<'a, T>> {
        if self.is_empty() || word.is_inside() {
            return None;
        }
        let outside = word.0.load(Ordering::Relaxed);
        // Release, too: who waits for an earlier visit may see only this one.
        let unordered = fault::is(Fault::VisitUnordered);
        word.0.store(outside + 1, if unordered { Ordering::Relaxed } else { Ordering::Release });
        fence(Ordering::SeqCst);
        let pointer = self.current.load(Ordering::Acquire);
        // SAFETY: `pointer` is null or came from `Arc::into_raw` in `swap`, which drops that reference only after
        // it saw `word` outside (or past this visit) behind its own fence; the word stays odd until the `Reading`
        // is dropped, and the `Reading` borrows cell and word.
        let snapshot = unsafe { pointer.as_ref() };
        let Some(snapshot) = snapshot else {
            word.0.store(outside + 2, Ordering::Release);
            return None;
        };
        Some(Reading { snapshot, word, _inside: InsideHook::enter() })
    }

    /// Replaces the snapshot. The returned value must be waited for with [`Swapped::wait`]; no lock that a hook
    /// may want can be held there.
    pub(crate) fn swap(&self, new: Option<Arc<T>>) -> Swapped<'_, T> {
        let new = new.map_or(std::ptr::null_mut(), |new| Arc::into_raw(new).cast_mut());
        let old = self.current.swap(new, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        let old = (!old.is_null()).then(|| {
            // SAFETY: non-null values of `current` come from `Arc::into_raw` above, and the swap took this one out
            // for good, so its reference is taken back once.
            unsafe { Arc::from_raw(old) }
        });
        Swapped { cell: self, old }
    }

    /// Removes the snapshot if it is still `current`, which the caller is reading. It is kept until a later swap.
    pub(crate) fn clear_if_current(&self, current: &T) {
        let pointer = std::ptr::from_ref(current).cast_mut();
        let null = std::ptr::null_mut();
        if self.current.compare_exchange(pointer, null, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            // SAFETY: `pointer` was in `current`, so it came from `Arc::into_raw`, and the exchange took it out.
            let old = unsafe { Arc::from_raw(pointer.cast_const()) };
            self.kept.lock().push(old);
        }
    }
}

impl<T> Drop for SnapshotCell<T> {
    fn drop(&mut self) {
        // Nobody borrows the cell, so no hook reads.
        drop(self.swap(None).old);
    }
}

/// A snapshot that was swapped out and may still be in use.
#[must_use]
pub(crate) struct Swapped<'a, T> {
    cell: &'a SnapshotCell<T>,
    old: Option<Arc<T>>,
}

impl<T> Swapped<'_, T> {
    /// Waits until no hook of `readers` uses the old snapshot, except when called from inside a hook.
    ///
    /// `readers` must be all queues that read the cell, with their words; one added after the swap reads the new value.
    ///
    /// # Errors
    /// A reader that still used it at the `deadline`; the old snapshot is kept until a later swap has waited.
    pub(crate) fn wait<R>(
        self,
        readers: impl IntoIterator<Item = R>,
        word: impl Fn(&R) -> &HookWord,
        deadline: Deadline,
    ) -> Result<(), R> {
        let mut kept = std::mem::take(&mut *self.cell.kept.lock());
        kept.extend(self.old);
        let mut outcome = Ok(());
        if InsideHook::is_current() || fault::is(Fault::SwapWithoutWait) {
            self.cell.kept.lock().append(&mut kept);
            return outcome;
        }
        for reader in readers {
            let word = word(&reader);
            let seen = word.0.load(Ordering::Acquire);
            if seen % 2 == 1 && !wait_for_change(word, seen, deadline) {
                outcome = outcome.and(Err(reader));
            }
        }
        if outcome.is_err() {
            self.cell.kept.lock().append(&mut kept);
        }
        outcome
    }
}

/// Looks at a word before a pause: a hook's visit is mostly shorter than a pause.
const QUICK_LOOKS: u32 = 1000;

/// Waits until a hook left. `false` if it had not at the `deadline`. Its visit is as long as a dispatch callback of the
/// client, and it tells nobody when it leaves: that would cost every hook something.
fn wait_for_change(word: &HookWord, seen: u64, deadline: Deadline) -> bool {
    let mut looks = 0;
    while word.0.load(Ordering::Acquire) == seen {
        looks += 1;
        if cfg!(loom) || looks < QUICK_LOOKS {
            thread::yield_now();
        } else if deadline.is_over() {
            return false;
        } else {
            // A pause between looks: see above.
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
    }
    true
}
