//! Models of ends: the gate before a runtime that goes down, and what is let go before. Each property has a twin with one
//! step of the product switched.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --profile loom -p wavescope-hsa-intercept --test loom_ends`
#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "helpers of the models")]

mod loom_gpu;
#[path = "loom_gpu/mortal.rs"]
mod mortal;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use loom_gpu::probe::{Probe, count};
use loom_gpu::{AGENT, Gpu, NEVER, broken, submit};
use mortal::Mortal;
use wavescope_core::Interception;
use wavescope_core::sync::model::explore;
use wavescope_core::sync::thread;
use wavescope_hsa_intercept::Engine;
use wavescope_hsa_intercept::fault::Fault;
use wavescope_hsa_intercept::model::{Gate, called_by_application, create_thread, inside_shut_down, let_go};

/// A runtime behind the gate: whoever ends it while somebody calls it fails the model.
struct Runtime {
    gate: Gate,
    inside: Mortal,
}

impl Runtime {
    fn new() -> Arc<Self> {
        Arc::new(Self { gate: Gate::default(), inside: Mortal::new() })
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
        self.inside.use_it("a runtime that is gone is called");
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
    runtime.inside.end();
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
    runtime.inside.end();
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

/// The only queue is gone when the runtime may end.
fn farewell_against_reaper() {
    let gpu = Gpu::new();
    let engine = Engine::new(gpu.clone(), [AGENT]);
    let probe = Probe::new(count);
    engine.subscribe(probe.subscription(false)).unwrap();
    let queue = engine.add_queue(AGENT).unwrap();
    submit(&gpu, &queue, 0);
    gpu.run(0);
    engine.queue_destroyed(&queue);
    let_go(&engine, NEVER);
    assert_eq!(gpu.live(), 0, "no signal is kept");
    engine.shut_down(NEVER).unwrap();
    assert_eq!(gpu.live(), 0, "no signal is made again");
    assert_eq!(probe.retired.load(Ordering::Relaxed), 1);
}

#[test]
fn a_farewell_frees_the_signals_of_queues_that_are_gone_and_the_bell() {
    explore("a_farewell_frees_the_signals_of_queues_that_are_gone_and_the_bell", farewell_against_reaper);
}

#[test]
#[should_panic(expected = "a signal is read after its end")]
fn a_bell_destroyed_by_the_farewell_is_read_by_the_reaper() {
    broken(Fault::BellDroppedBesideReaper, farewell_against_reaper);
}

/// A queue is measured for the first time when the runtime may end, but does not.
fn farewell_against_new_queue() {
    let gpu = Gpu::new();
    let engine = Arc::new(Engine::new(gpu.clone(), [AGENT]));
    let probe = Probe::new(count);
    let id = engine.subscribe(probe.subscription(false)).unwrap();
    let queue = engine.add_queue(AGENT).unwrap();
    let submitting = {
        let (gpu, queue) = (Arc::clone(&gpu), queue.clone());
        thread::spawn(move || {
            submit(&gpu, &queue, 0);
            assert_eq!(gpu.run(0), 1);
        })
    };
    let_go(&engine, NEVER);
    submitting.join().unwrap();
    engine.drain(id, NEVER).unwrap();
    assert_eq!(probe.retired.load(Ordering::Relaxed), 1, "the new bell is heard");
    engine.queue_destroyed(&queue);
    let_go(&engine, NEVER);
    assert_eq!(gpu.live(), 0, "no signal is kept");
    engine.shut_down(NEVER).unwrap();
}

#[test]
fn a_queue_that_is_measured_during_a_farewell_has_a_bell() {
    explore("a_queue_that_is_measured_during_a_farewell_has_a_bell", farewell_against_new_queue);
}

#[test]
#[should_panic(expected = "a packet names a signal that is gone")]
fn a_bell_dropped_while_a_hook_has_it_is_named_by_packets() {
    broken(Fault::BellDroppedWhileHanded, farewell_against_new_queue);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_farewell_that_hears_nothing_of_a_new_queue_waits_in_vain() {
    broken(Fault::BellHandedUnheard, farewell_against_new_queue);
}

/// Two threads end their share of a runtime.
fn two_farewells() {
    let gpu = Gpu::new();
    let engine = Arc::new(Engine::new(gpu.clone(), [AGENT]));
    engine.subscribe(Probe::new(count).subscription(false)).unwrap();
    let other = {
        let engine = Arc::clone(&engine);
        // As the end does when it only wakes the reaper.
        thread::spawn(move || let_go(&engine, Duration::ZERO))
    };
    let_go(&engine, NEVER);
    assert_eq!(gpu.live(), 0, "the bell is not kept");
    other.join().unwrap();
    engine.shut_down(NEVER).unwrap();
}

#[test]
fn a_farewell_is_not_forgotten_when_another_ends() {
    explore("a_farewell_is_not_forgotten_when_another_ends", two_farewells);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_farewell_that_ends_others_lets_them_wait_in_vain() {
    broken(Fault::FarewellEndsOthers, two_farewells);
}

/// A farewell while interception shuts down.
fn farewell_against_shutdown() {
    let gpu = Gpu::new();
    let engine = Arc::new(Engine::new(gpu.clone(), [AGENT]));
    engine.subscribe(Probe::new(count).subscription(false)).unwrap();
    let other = {
        let engine = Arc::clone(&engine);
        thread::spawn(move || let_go(&engine, NEVER))
    };
    engine.shut_down(NEVER).unwrap();
    other.join().unwrap();
    assert_eq!(gpu.live(), 0, "the bell is not kept");
}

#[test]
fn a_farewell_ends_with_the_reaper() {
    explore("a_farewell_ends_with_the_reaper", farewell_against_shutdown);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_farewell_that_hears_nothing_of_the_end_waits_in_vain() {
    broken(Fault::BellEndedUnheard, farewell_against_shutdown);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_farewell_that_waits_for_a_reaper_stopped_before_it_began_waits_in_vain() {
    broken(Fault::ReaperBegunToEnd, farewell_against_shutdown);
}
