//! What a queue's owner and its consumer thread share: doorbell, stop flag, and how the consumer sleeps.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::sync::lock;

/// A consumer: looks whether there is anything to do, and passes time when there is not.
pub(super) trait Consumer {
    /// Why there was nothing to do.
    type Lull;

    /// Does what there is to do; `None` if that was something.
    fn look(&mut self) -> Option<Self::Lull>;

    /// Passes time. `limit` is the doorbell as it was before the look, for [`Control::sleep`].
    fn rest(&mut self, limit: u64, lull: Self::Lull);
}

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
    /// Serves a queue until it is stopped.
    #[inline]
    pub(super) fn serve(&self, consumer: &mut impl Consumer) {
        while !self.stopped() {
            // Taken before the look: a doorbell that comes during the look must keep the consumer from sleeping.
            let limit = self.limit();
            if let Some(lull) = consumer.look() {
                consumer.rest(limit, lull);
            }
        }
    }

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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;

    /// Looks at the doorbell, and has it rung right behind its look.
    struct RungTooLate {
        control: Arc<Control>,
        packets: u64,
    }

    impl Consumer for RungTooLate {
        type Lull = ();

        fn look(&mut self) -> Option<()> {
            if self.packets < self.control.limit() {
                self.packets += 1;
                self.control.stop();
                return None;
            }
            self.control.ring(0);
            Some(())
        }

        fn rest(&mut self, limit: u64, (): ()) {
            self.control.sleep(limit, None);
        }
    }

    #[test]
    fn a_doorbell_behind_the_last_look_keeps_the_consumer_awake() {
        let (done, wait) = mpsc::channel();
        std::thread::spawn(move || {
            let control = Arc::new(Control::default());
            let mut consumer = RungTooLate { control: Arc::clone(&control), packets: 0 };
            control.serve(&mut consumer);
            done.send(consumer.packets)
        });
        let served = wait.recv_timeout(Duration::from_secs(10));
        assert_eq!(served, Ok(1), "it sleeps though the doorbell was rung");
    }
}
