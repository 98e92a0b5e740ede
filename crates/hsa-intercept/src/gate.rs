//! Whether the runtime may be called: not while it may be going down, and never again once it is gone.
//!
//! Whether an `hsa_shut_down` is the last is known only afterwards. So the gate is shut around each: nobody is inside, and
//! threads of ours that come have to wait. Then it opens again, or else the runtime is gone and every call is answered
//! without it.
//!
//! Only threads of ours wait, before they lock anything. A thread of the application or of the runtime may be one that the
//! end waits for: ROCr joins the thread that runs handlers and error callbacks. It passes, as does the one that is inside
//! `hsa_shut_down`, where tools are unloaded: who calls a runtime knows that it is there.

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::Duration;

use wavescope_core::sync::atomic::{AtomicU64, Ordering};
use wavescope_core::sync::{Condvar, Deadline, Mutex};

use crate::fault::{self, Fault};
use crate::local::thread_local_of_model;
use crate::thread_mark::InsideHook;
use crate::threads;

/// Bits of the word. Below them: how many are inside.
const SHUT: u64 = 1 << 32;
const GONE: u64 = 1 << 33;

/// Between two looks at who is still inside.
const PAUSE: Duration = Duration::from_micros(50);

thread_local_of_model! {
    /// How often the current thread is inside `hsa_shut_down`.
    static GOING_DOWN: Cell<u32> = Cell::new(0);
    /// How many passes the current thread holds, and how often it works for the application.
    static EXEMPT: Cell<u32> = Cell::new(0);
}

/// Whether the current thread waits at a gate that is shut. Inside a hook it does not: it may hold locks there.
fn has_to_wait() -> bool {
    let is_exempt = EXEMPT.try_with(|exempt| exempt.get() > 0).unwrap_or(true);
    let is_exempt = is_exempt && !fault::is(Fault::ExemptWaitAtGate);
    threads::is_ours() && !is_exempt && !InsideHook::is_current() && !GoingDown::is_current()
}

/// Exempts the current thread until dropped; stays on it.
#[derive(Debug)]
struct Exempt(PhantomData<*mut ()>);

impl Exempt {
    fn enter() -> Self {
        let _ = EXEMPT.try_with(|exempt| exempt.set(exempt.get() + 1));
        Self(PhantomData)
    }
}

impl Drop for Exempt {
    fn drop(&mut self) {
        let _ = EXEMPT.try_with(|exempt| exempt.set(exempt.get() - 1));
    }
}

/// Says until dropped that the current thread, maybe one of ours that runs a callback, was called by the application.
#[derive(Debug)]
pub(crate) struct ForApplication {
    _exempt: Exempt,
}

impl ForApplication {
    pub(crate) fn enter() -> Self {
        Self { _exempt: Exempt::enter() }
    }
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

/// Leave to call the runtime, until dropped. Who has one gets further ones at once.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    /// Where its holder counts as inside; not if it passed while the gate was shut.
    inside: Option<&'a Gate>,
    _exempt: Exempt,
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.inside.inspect(|gate| gate.leave());
    }
}

impl Gate {
    /// A pass. Threads of ours wait while the gate is shut. `None` if the runtime is gone.
    pub(crate) fn enter(&self) -> Option<Pass<'_>> {
        loop {
            let before = self.come();
            if before < SHUT {
                return Some(Pass { inside: Some(self), _exempt: Exempt::enter() });
            }
            self.leave();
            if before & GONE != 0 {
                return None;
            }
            if !has_to_wait() {
                return Some(Pass { inside: None, _exempt: Exempt::enter() });
            }
            self.wait_open();
        }
    }

    /// Counts the caller as inside. Returns what the word was: counting and asking are one step.
    fn come(&self) -> u64 {
        let asked = fault::is(Fault::GateAskedBeforeCounted).then(|| self.word.load(Ordering::SeqCst));
        let before = self.word.fetch_add(1, Ordering::SeqCst);
        asked.unwrap_or(before)
    }

    fn leave(&self) {
        let unordered = fault::is(Fault::GateLeftUnordered);
        self.word.fetch_sub(1, if unordered { Ordering::Relaxed } else { Ordering::Release });
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
            threads::rest(PAUSE);
        }
        true
    }

    /// Takes back one [`shut`](Self::shut).
    pub(crate) fn open(&self) {
        let mut shut = self.shut.lock();
        *shut = shut.saturating_sub(1);
        if *shut == 0 {
            self.word.fetch_and(!SHUT, Ordering::SeqCst);
            if !fault::is(Fault::GateOpenedUnheard) {
                self.changed.notify_all();
            }
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
    use wavescope_core::sync::thread::JoinHandle;

    use super::*;

    const MOMENT: Duration = Duration::from_millis(20);

    /// On a thread of ours.
    fn ours(run: impl FnOnce() -> bool + Send + 'static) -> std::io::Result<JoinHandle<bool>> {
        wavescope_core::threads::create("wavescope-test", run)
    }

    fn leaked() -> &'static Gate {
        Box::leak(Box::default())
    }

    #[test]
    fn a_thread_of_ours_waits_at_a_shut_gate_and_is_not_counted_as_inside() {
        let gate = leaked();
        let inside = gate.enter();
        gate.shut();
        assert!(!gate.wait_empty(Deadline::after(MOMENT)), "somebody is inside");
        drop(inside);
        let waiting = ours(|| gate.enter().is_some()).unwrap();
        std::thread::park_timeout(MOMENT);
        assert!(!waiting.is_finished());
        assert!(gate.wait_empty(Deadline::after(Duration::from_secs(10))));
        gate.open();
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn who_is_inside_or_was_called_by_the_application_passes_a_shut_gate() {
        let gate = leaked();
        let (entered, inside) = std::sync::mpsc::channel();
        let (shut, is_shut) = std::sync::mpsc::channel();
        let nested = ours(move || {
            let pass = gate.enter();
            entered.send(()).unwrap();
            is_shut.recv().unwrap();
            gate.enter().is_some() && pass.is_some()
        })
        .unwrap();
        inside.recv().unwrap();
        gate.shut();
        shut.send(()).unwrap();
        assert!(nested.join().unwrap());
        let called = ours(|| {
            let _for = ForApplication::enter();
            gate.enter().is_some()
        })
        .unwrap();
        assert!(called.join().unwrap());
        let foreign = gate.enter();
        assert!(foreign.is_some());
        assert!(
            gate.wait_empty(Deadline::after(Duration::ZERO)),
            "who passes a shut gate is waited for by nobody"
        );
    }

    #[test]
    fn nobody_passes_once_the_runtime_is_gone() {
        let gate = leaked();
        gate.shut();
        let waiting = ours(|| gate.enter().is_some()).unwrap();
        gate.set_gone();
        assert!(!waiting.join().unwrap());
        gate.open();
        assert!(gate.enter().is_none());
    }

    #[test]
    fn the_thread_that_is_inside_the_end_passes() {
        let gate = leaked();
        gate.shut();
        let passes = ours(|| {
            let going_down = GoingDown::enter();
            let passes = gate.enter().is_some();
            drop(going_down);
            passes && !GoingDown::is_current()
        })
        .unwrap();
        assert!(passes.join().unwrap());
    }
}
