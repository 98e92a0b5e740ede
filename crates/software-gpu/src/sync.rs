//! Locks that outlive a panic: the state behind them is plain data, valid at every moment.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after another thread panicked with the lock held.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
