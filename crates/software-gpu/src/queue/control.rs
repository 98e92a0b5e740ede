//! What a queue's owner and its consumer thread share: doorbell, stop flag, and how the consumer sleeps.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::sync::lock;

/// Shared between [`Queue`](super::Queue) and its consumer.
///
/// A sleeper announces itself (`sleeping`) and looks again at what could have changed before it waits; a waker
/// changes something and then looks at `sleeping`. All of these are sequentially consistent, so one of the two sees
/// the other, and the mutex keeps the notification from falling between the last look and the wait.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// Packets below this index may be read: the highest doorbell value plus one.
    limit: AtomicU64,
    stop: AtomicBool,
    inactive: AtomicBool,
    poked: AtomicBool,
    sleeping: AtomicBool,
    mutex: Mutex<()>,
    wake: Condvar,
}

impl Control {
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::SeqCst)
    }

    /// Writes the doorbell. All ones is its preset value and says nothing.
    pub(crate) fn ring(&self, index: u64) {
        self.limit.fetch_max(index.wrapping_add(1), Ordering::SeqCst);
        self.notify();
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.notify();
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    pub(crate) fn inactivate(&self) {
        self.inactive.store(true, Ordering::SeqCst);
        self.notify();
    }

    pub(crate) fn inactive(&self) -> bool {
        self.inactive.load(Ordering::SeqCst)
    }

    /// Makes a sleeping consumer look at its signals again.
    pub(crate) fn poke(&self) {
        self.poked.store(true, Ordering::SeqCst);
        self.notify();
    }

    fn notify(&self) {
        if self.sleeping.load(Ordering::SeqCst) {
            drop(lock(&self.mutex));
            self.wake.notify_one();
        }
    }

    /// Sleeps until something changes or `timeout` passes. `limit` is the doorbell as the caller last saw it.
    pub(crate) fn sleep(&self, limit: u64, timeout: Option<Duration>) {
        let guard = lock(&self.mutex);
        self.sleeping.store(true, Ordering::SeqCst);
        let changed = self.limit() != limit || self.stopped() || self.poked.swap(false, Ordering::SeqCst);
        if !changed {
            // Either end of the wait is fine: the caller looks at everything again.
            match timeout {
                Some(timeout) => drop(self.wake.wait_timeout(guard, timeout)),
                None => drop(self.wake.wait(guard)),
            }
        }
        self.sleeping.store(false, Ordering::SeqCst);
    }
}
