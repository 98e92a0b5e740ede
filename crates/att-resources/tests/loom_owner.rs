//! Models of the owner: the product's state machine, actor loop and mailbox on a GPU of a few lines. Each property
//! has a twin with one step of the product switched. At bound 3, a release's, each model explores 64,000 to 230,000
//! schedules, in five minutes altogether.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --profile loom -p wavescope-att-resources --test loom_owner`
#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "helpers of the models")]

mod loom_gpu;

use std::sync::Arc;

use loom_gpu::{World, run_gpu, run_worker};
use wavescope_att_resources::fault::{self, Fault};
use wavescope_att_resources::{Error, Message};
use wavescope_core::ContextId;
use wavescope_core::actor::Address;
use wavescope_core::sync::model::explore;
use wavescope_core::sync::{Mutex, thread};

fn broken(fault: Fault, body: fn()) {
    fault::set(fault);
    loom::model(body);
}

/// Two traced dispatches of one context; the GPU runs the second when the first was released.
fn two_dispatches() {
    let mut world = World::new(1, true);
    world.dispatch(0);
    world.dispatch(1);
    let gpu = run_gpu(&mut world, 2);
    let worker = run_worker(&mut world, 2);
    gpu.join().unwrap();
    worker.join().unwrap();
    world.owner.close_and_join().unwrap();
    assert_eq!(world.gpu.lock().copied, 2, "traces whose data were copied");
}

#[test]
fn stop_retires_and_data_are_copied_before_the_next_begin() {
    explore("stop_retires_and_data_are_copied_before_the_next_begin", two_dispatches);
}

#[test]
#[should_panic(expected = "the slot did not hold the data of the trace that was copied")]
fn copying_before_the_stop_retired_reads_other_data() {
    broken(Fault::CopyBeforeRetired, two_dispatches);
}

#[test]
#[should_panic(expected = "the slot did not hold the data of the trace that was copied")]
fn releasing_before_the_copy_reads_other_data() {
    broken(Fault::ReleaseBeforeCopied, two_dispatches);
}

/// A shutdown races a dispatch in flight.
fn shutdown_during_dispatch() {
    let mut world = World::new(1, true);
    world.dispatch(0);
    let gpu = run_gpu(&mut world, 1);
    let worker = run_worker(&mut world, 1);
    world.owner.address().send(Message::LeaseDropped { context: ContextId(1) }).unwrap();
    let mut shutdown = world.owner.address().ask(|reply| Message::Shutdown { reply });
    gpu.join().unwrap();
    worker.join().unwrap();
    world.owner.close_and_join().unwrap();
    match shutdown.try_take() {
        Some(Ok(Ok(report))) => assert_eq!(report.leaked, []),
        other => unreachable!("a shutdown during a dispatch did not end: {other:?}"),
    }
}

#[test]
fn shutdown_during_a_dispatch_ends() {
    explore("shutdown_during_a_dispatch_ends", shutdown_during_dispatch);
}

#[test]
#[should_panic(expected = "a shutdown during a dispatch did not end")]
fn shutdown_that_the_last_trace_does_not_resume_never_ends() {
    broken(Fault::ShutdownForgotten, shutdown_during_dispatch);
}

#[test]
#[should_panic(expected = "the GPU wrote a slot that was freed")]
fn shutdown_that_does_not_wait_frees_the_slot_in_flight() {
    broken(Fault::FreeInFlight, shutdown_during_dispatch);
}

#[test]
fn no_slot_is_freed_while_in_flight() {
    explore("no_slot_is_freed_while_in_flight", shutdown_during_dispatch);
}

/// Two contexts start at the same time; whoever wins traces until its unhook.
fn two_contexts_start() {
    let world = World::new(2, false);
    let tracing = Arc::new(Mutex::new(None));
    let (address, also_tracing) = (world.owner.address().clone(), Arc::clone(&tracing));
    let second = thread::spawn(move || start_and_stop(&address, &also_tracing, ContextId(2)));
    let first = start_and_stop(world.owner.address(), &tracing, ContextId(1));
    assert!(second.join().unwrap() || first, "nobody could start");
    world.owner.close_and_join().unwrap();
}

/// Claims the agent and gives it back; whether it was had.
fn start_and_stop(owner: &Address<Message>, tracing: &Mutex<Option<ContextId>>, context: ContextId) -> bool {
    let claim = owner.ask(|reply| Message::Claim { context, reply }).wait().unwrap();
    if let Err(error) = claim {
        assert!(matches!(error, Error::Busy { contender, .. } if contender == context));
        return false;
    }
    assert_eq!(tracing.lock().replace(context), None, "two contexts trace one agent");
    *tracing.lock() = None;
    owner.ask(|reply| Message::Unhook { context, reply }).wait().unwrap().unwrap();
    true
}

#[test]
fn second_context_is_refused_while_the_first_is_active() {
    explore("second_context_is_refused_while_the_first_is_active", two_contexts_start);
}

#[test]
#[should_panic(expected = "two contexts trace one agent")]
fn admitting_a_second_context_lets_two_trace() {
    broken(Fault::AdmitSecondContext, two_contexts_start);
}

/// A context stops while its dispatch is in flight.
fn unhook_during_dispatch() {
    let mut world = World::new(1, true);
    world.dispatch(0);
    let gpu = run_gpu(&mut world, 1);
    let worker = run_worker(&mut world, 1);
    let context = ContextId(1);
    world.owner.address().ask(|reply| Message::Unhook { context, reply }).wait().unwrap().unwrap();
    assert_eq!(world.gpu.lock().copied, 1, "unhook returned while a dispatch was in flight");
    gpu.join().unwrap();
    worker.join().unwrap();
    world.owner.close_and_join().unwrap();
}

#[test]
fn unhook_completes_only_after_drain() {
    explore("unhook_completes_only_after_drain", unhook_during_dispatch);
}

#[test]
#[should_panic(expected = "unhook returned while a dispatch was in flight")]
fn unhook_before_drain_returns_too_early() {
    broken(Fault::UnhookBeforeDrained, unhook_during_dispatch);
}
