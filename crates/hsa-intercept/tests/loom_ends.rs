//! Models of ends: the gate before a runtime that goes down. Each property has a twin with one step of the product switched.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --profile loom -p wavescope-hsa-intercept --test loom_ends`
#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "helpers of the models")]

use std::sync::Arc;
use std::time::Duration;

use loom::cell::UnsafeCell;
use wavescope_core::sync::model::explore;
use wavescope_core::sync::thread;
use wavescope_hsa_intercept::fault::{self, Fault};
use wavescope_hsa_intercept::model::{Gate, called_by_application, create_thread, inside_shut_down};

/// Time does not pass in a model.
const NEVER: Duration = Duration::from_secs(1);

fn broken(fault: Fault, body: fn()) {
    fault::set(fault);
    loom::model(body);
}

/// A runtime behind the gate: whoever ends it while somebody calls it fails the model.
struct Runtime {
    gate: Gate,
    is_there: UnsafeCell<bool>,
}

// SAFETY: the cell fails the model if two threads use it at a time and one of them changes it.
unsafe impl Sync for Runtime {}

impl Runtime {
    fn new() -> Arc<Self> {
        Arc::new(Self { gate: Gate::default(), is_there: UnsafeCell::new(true) })
    }

    /// Calls it with a pass. Whether there was one.
    fn call(&self) -> bool {
        let pass = self.gate.enter();
        if pass.is_some() {
            self.use_it();
            assert!(self.gate.enter().is_some(), "who is inside gets further passes");
            self.use_it();
        }
        pass.is_some()
    }

    fn use_it(&self) {
        // SAFETY: the cell is its owner's, and checks that nobody changes it.
        self.is_there.with(|is_there| assert!(unsafe { *is_there }, "a runtime that is gone is called"));
    }

    /// It ends.
    fn end(&self) {
        // SAFETY: as above.
        self.is_there.with_mut(|is_there| unsafe { *is_there = false });
    }
}

/// A runtime ends while threads of ours call it.
fn end_against_callers() {
    let runtime = Runtime::new();
    let callers = [2, 1].map(|calls| {
        let runtime = Arc::clone(&runtime);
        create_thread(move || {
            let passed: Vec<_> = (0..calls).map(|_| runtime.call()).collect();
            assert_ne!(passed, [false, true], "a pass after the end");
        })
    });
    runtime.gate.shut();
    assert!(runtime.gate.wait_empty(NEVER));
    runtime.end();
    runtime.gate.set_gone();
    callers.into_iter().for_each(|caller| caller.unwrap().join().unwrap());
    assert!(!runtime.call(), "nobody passes after the end");
}

#[test]
fn nobody_of_ours_is_inside_a_runtime_that_ends_or_comes_later() {
    explore("nobody_of_ours_is_inside_a_runtime_that_ends_or_comes_later", end_against_callers);
}

#[test]
#[should_panic(expected = "a runtime that is gone is called")]
fn a_gate_asked_before_counting_lets_a_caller_into_the_end() {
    broken(Fault::GateAskedBeforeCounted, end_against_callers);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_call_that_is_not_over_when_its_caller_left_meets_the_end() {
    broken(Fault::GateLeftUnordered, end_against_callers);
}

/// Two threads try to end a runtime, which goes on, while a thread of ours calls it.
fn reopened_against_caller() {
    let runtime = Runtime::new();
    let caller = {
        let runtime = Arc::clone(&runtime);
        create_thread(move || assert!(runtime.call(), "the runtime goes on"))
    };
    let try_to_end = |runtime: &Runtime| {
        runtime.gate.shut();
        let _ = runtime.gate.wait_empty(Duration::ZERO);
        runtime.gate.open();
    };
    let other = {
        let runtime = Arc::clone(&runtime);
        thread::spawn(move || try_to_end(&runtime))
    };
    try_to_end(&runtime);
    caller.unwrap().join().unwrap();
    other.join().unwrap();
    assert!(runtime.gate.wait_empty(Duration::ZERO), "everybody was counted out again");
}

#[test]
fn who_waits_at_a_gate_goes_on_when_it_opens() {
    explore("who_waits_at_a_gate_goes_on_when_it_opens", reopened_against_caller);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_gate_that_opens_unheard_keeps_a_caller() {
    broken(Fault::GateOpenedUnheard, reopened_against_caller);
}

/// The end of a runtime waits for a thread of ours that the application called, and for one that unloads a tool.
fn exempt_against_end() {
    let runtime = Runtime::new();
    let called = {
        let runtime = Arc::clone(&runtime);
        create_thread(move || {
            let _called = called_by_application();
            runtime.call();
        })
    };
    let unloading = {
        let runtime = Arc::clone(&runtime);
        create_thread(move || {
            let _inside = inside_shut_down();
            runtime.call();
        })
    };
    runtime.gate.shut();
    called.unwrap().join().unwrap();
    unloading.unwrap().join().unwrap();
    assert!(runtime.gate.wait_empty(Duration::ZERO), "who passes a shut gate does not count");
    runtime.end();
    runtime.gate.set_gone();
}

#[test]
fn the_end_may_wait_for_who_is_exempt_from_the_gate() {
    explore("the_end_may_wait_for_who_is_exempt_from_the_gate", exempt_against_end);
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_end_that_waits_for_who_waits_at_its_gate_is_a_deadlock() {
    broken(Fault::ExemptWaitAtGate, exempt_against_end);
}
