//! Whether the runtime may be called: not while it may be going down, and never again once it is gone.
//!
//! Whether an `hsa_shut_down` is the last is known only afterwards. So the gate is shut around each: nobody is inside, and
//! who comes has to wait. Then it opens again, or else the runtime is gone and every call is answered without it. The
//! thread that is inside `hsa_shut_down` may pass: what runs there is a tool that is unloaded, while everything is there.

use std::cell::Cell;
use std::time::Duration;

// Asked before every call of the runtime.
use std::sync::atomic::{AtomicU64, Ordering};
use wavescope_core::sync::{Condvar, Deadline, Mutex};

/// Bits of the word. Below them: how many are inside.
const SHUT: u64 = 1 << 32;
const GONE: u64 = 1 << 33;

/// Between two looks at who is still inside.
const PAUSE: Duration = Duration::from_micros(50);

thread_local! {
    /// How often the current thread is inside `hsa_shut_down`.
    static GOING_DOWN: Cell<u32> = const { Cell::new(0) };
}

/// Marks the current thread as inside the runtime's `hsa_shut_down` until dropped.
#[derive(Debug)]
pub(crate) struct GoingDown(());

impl GoingDown {
    pub(crate) fn enter() -> Self {
        let _ = GOING_DOWN.try_with(|depth| depth.set(depth.get() + 1));
        Self(())
    }

    /// Whether the current thread is there: it runs a tool that the runtime unloads, and only at its end does it do that.
    pub(crate) fn is_current() -> bool {
        GOING_DOWN.try_with(|depth| depth.get() > 0).unwrap_or(false)
    }
}

impl Drop for GoingDown {
    fn drop(&mut self) {
        let _ = GOING_DOWN.try_with(|depth| depth.set(depth.get() - 1));
    }
}

/// The gate before one runtime.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    word: AtomicU64,
    /// How many shut it.
    shut: Mutex<u32>,
    changed: Condvar,
}

/// Leave to call the runtime, until dropped.
#[derive(Debug)]
pub(crate) struct Pass<'a>(&'a Gate);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.word.fetch_sub(1, Ordering::Release);
    }
}

impl Gate {
    /// Waits while the gate is shut. `None` if the runtime is gone.
    pub(crate) fn enter(&self) -> Option<Pass<'_>> {
        loop {
            let before = self.word.fetch_add(1, Ordering::SeqCst);
            let pass = Pass(self);
            if before < SHUT {
                return Some(pass);
            }
            if before & GONE != 0 {
                return None;
            }
            if GoingDown::is_current() {
                return Some(pass);
            }
            drop(pass);
            self.wait_open();
        }
    }

    fn wait_open(&self) {
        let mut shut = self.shut.lock();
        while *shut > 0 && !self.is_gone() {
            shut = self.changed.wait(shut);
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.word.load(Ordering::SeqCst) & GONE != 0
    }

    /// Lets nobody in until [`open`](Self::open).
    pub(crate) fn shut(&self) {
        let mut shut = self.shut.lock();
        *shut += 1;
        self.word.fetch_or(SHUT, Ordering::SeqCst);
    }

    /// Waits until those who were let in have left. `false` if somebody was still inside at the `deadline`.
    pub(crate) fn wait_empty(&self, deadline: Deadline) -> bool {
        while self.word.load(Ordering::SeqCst) & (SHUT - 1) != 0 {
            if deadline.is_over() {
                return false;
            }
            std::thread::park_timeout(PAUSE);
        }
        true
    }

    /// Takes back one [`shut`](Self::shut).
    pub(crate) fn open(&self) {
        let mut shut = self.shut.lock();
        *shut = shut.saturating_sub(1);
        if *shut == 0 {
            self.word.fetch_and(!SHUT, Ordering::SeqCst);
            self.changed.notify_all();
        }
    }

    /// The runtime is gone.
    pub(crate) fn set_gone(&self) {
        let shut = self.shut.lock();
        self.word.fetch_or(GONE, Ordering::SeqCst);
        drop(shut);
        self.changed.notify_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(20);

    #[test]
    fn who_comes_to_a_shut_gate_waits_and_is_not_counted_as_inside() {
        let gate = Gate::default();
        let inside = gate.enter();
        gate.shut();
        assert!(!gate.wait_empty(Deadline::after(MOMENT)), "somebody is inside");
        drop(inside);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.enter().is_some());
            std::thread::park_timeout(MOMENT);
            assert!(!waiting.is_finished());
            assert!(gate.wait_empty(Deadline::after(Duration::from_secs(10))));
            gate.open();
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn nobody_passes_once_the_runtime_is_gone() {
        let gate = Gate::default();
        gate.shut();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.enter().is_some());
            gate.set_gone();
            assert!(!waiting.join().unwrap());
        });
        gate.open();
        assert!(gate.enter().is_none());
    }

    #[test]
    fn the_thread_that_is_inside_the_end_passes() {
        let gate = Gate::default();
        gate.shut();
        let going_down = GoingDown::enter();
        assert!(gate.enter().is_some());
        drop(going_down);
        assert!(!GoingDown::is_current());
    }
}
