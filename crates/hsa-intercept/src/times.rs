//! Kernel times for the application.
//!
//! An instrumented kernel completes a signal of ours, so the runtime knows no times for the application's. This
//! table answers for it, from the moment the application's signal falls (which is before our packets retired: then
//! the carrier in flight is asked) until that signal is used again or destroyed.

use std::collections::HashMap;

use wavescope_core::sync::Mutex;
use wavescope_core::sync::atomic::{AtomicUsize, Ordering};
use wavescope_core::{DispatchId, DispatchTimes};

use crate::device::Signal;

/// The application's signals of one agent that completed an instrumented kernel last.
#[derive(Debug, Default)]
pub(crate) struct Times {
    known: Mutex<Known>,
    /// Size of the table, readable without the lock.
    length: AtomicUsize,
}

/// Entries in all tables of the process, for entries of the API table that ask on every call.
static KNOWN: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Whether the times of any signal are known.
pub(crate) fn any_known() -> bool {
    KNOWN.load(std::sync::atomic::Ordering::Relaxed) != 0
}

#[derive(Debug, Default)]
struct Known {
    /// By the application's signal.
    entries: HashMap<u64, Entry>,
    /// What the application was told of dispatches that have not retired.
    told: HashMap<DispatchId, DispatchTimes>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    dispatch: DispatchId,
    ended: Ended,
}

#[derive(Clone, Copy, Debug)]
enum Ended {
    /// Perhaps not yet: this signal completes with the kernel.
    Carrier(Signal),
    At(DispatchTimes),
}

impl Drop for Times {
    fn drop(&mut self) {
        self.update(0);
    }
}

impl Times {
    /// The table has this size now. Called with its lock held.
    fn update(&self, length: usize) {
        let before = self.length.load(Ordering::Relaxed);
        self.length.store(length, Ordering::Release);
        if length > before {
            KNOWN.fetch_add(length - before, std::sync::atomic::Ordering::Relaxed);
        } else if length < before {
            KNOWN.fetch_sub(before - length, std::sync::atomic::Ordering::Relaxed);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length.load(Ordering::Acquire) == 0
    }

    /// `signal` is about to be forwarded for `dispatch`.
    pub(crate) fn forward(&self, signal: u64, dispatch: DispatchId, carrier: Signal) {
        let mut known = self.known.lock();
        known.entries.insert(signal, Entry { dispatch, ended: Ended::Carrier(carrier) });
        self.update(known.entries.len());
    }

    /// `dispatch` retired; its carrier must not be asked any more. Returns its times: what the application was told, if it
    /// asked before, else what `ask` says. A runtime converts GPU time to system time a little differently each time.
    pub(crate) fn retired(
        &self,
        signal: u64,
        dispatch: DispatchId,
        ask: impl FnOnce() -> Option<DispatchTimes>,
    ) -> Option<DispatchTimes> {
        let mut known = self.known.lock();
        let times = known.told.remove(&dispatch).or_else(ask);
        if let Some(entry) = known.entries.get_mut(&signal).filter(|entry| entry.dispatch == dispatch) {
            match times {
                Some(times) => entry.ended = Ended::At(times),
                None => drop(known.entries.remove(&signal)),
            }
        }
        self.update(known.entries.len());
        times
    }

    /// `signal` is used for something else, or destroyed. Returns whether the table became empty.
    pub(crate) fn forget(&self, signal: u64) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut known = self.known.lock();
        let removed = known.entries.remove(&signal).is_some();
        self.update(known.entries.len());
        removed && known.entries.is_empty()
    }

    /// The times for `signal`; `ask` reads a carrier. `None` if the runtime is to be asked itself.
    pub(crate) fn get(
        &self,
        signal: u64,
        ask: impl FnOnce(Signal) -> Option<DispatchTimes>,
    ) -> Option<DispatchTimes> {
        if self.is_empty() {
            return None;
        }
        // The lock keeps the carrier from being recycled while it is read.
        let mut known = self.known.lock();
        let entry = *known.entries.get(&signal)?;
        match entry.ended {
            Ended::At(times) => Some(times),
            Ended::Carrier(carrier) => match known.told.get(&entry.dispatch) {
                Some(told) => Some(*told),
                None => {
                    let times = ask(carrier)?;
                    known.told.insert(entry.dispatch, times);
                    Some(times)
                }
            },
        }
    }
}
