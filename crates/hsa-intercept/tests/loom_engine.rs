//! Models of interception: the product's engine, hooks and reaper on a GPU of a few lines. Each property has a twin with
//! one step of the product switched.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --profile loom -p wavescope-hsa-intercept --test loom_engine`
#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "helpers of the models")]

mod loom_gpu;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loom_gpu::probe::{Probe, count};
use loom_gpu::{AGENT, Gpu, NEVER, broken, kernel, submit};
use wavescope_core::sync::model::explore;
use wavescope_core::sync::thread;
use wavescope_core::{Answer, Dispatch, Grant, Interception, Token};
use wavescope_hsa_intercept::Engine;
use wavescope_hsa_intercept::fault::Fault;

fn decline(_: &Dispatch) -> Answer {
    Answer::Decline
}

/// Its first kernel keeps the agent until the grant is returned; the others it declines.
fn hold_first(dispatch: &Dispatch) -> Answer {
    if dispatch.id.0 > 1 {
        return Answer::Decline;
    }
    Answer::Instrument { token: Token { index: 1, generation: 0 }, grant: Grant::UntilReturned }
}

/// The subscribers are swapped while a hook runs on another thread.
fn swap_against_hook() {
    let gpu = Gpu::new();
    let engine = Engine::new(gpu.clone(), [AGENT]);
    let queue = engine.add_queue(AGENT).unwrap();
    let probe = Probe::new(decline);
    let id = engine.subscribe(probe.subscription(false)).unwrap();
    let hook = {
        let (gpu, queue) = (Arc::clone(&gpu), queue.clone());
        thread::spawn(move || submit(&gpu, &queue, 0))
    };
    engine.quiesce(id).unwrap();
    probe.silent.store(true, Ordering::Release);
    hook.join().unwrap();
    assert_eq!(gpu.run(0), 1, "the kernel runs once");
    engine.unsubscribe(id).unwrap();
    engine.shut_down(NEVER).unwrap();
}

#[test]
fn nobody_is_asked_after_quiesce_returned() {
    explore("nobody_is_asked_after_quiesce_returned", swap_against_hook);
}

#[test]
#[should_panic(expected = "asked after quiesce returned")]
fn a_swap_that_does_not_wait_asks_too_late() {
    broken(Fault::SwapWithoutWait, swap_against_hook);
}

/// The last dispatch retires while the subscriber is unhooked.
fn last_retirement_against_unhook() {
    let gpu = Gpu::new();
    let engine = Engine::new(gpu.clone(), [AGENT]);
    let queue = engine.add_queue(AGENT).unwrap();
    let probe = Probe::new(count);
    let id = engine.subscribe(probe.subscription(false)).unwrap();
    submit(&gpu, &queue, 0);
    let running = {
        let gpu = Arc::clone(&gpu);
        thread::spawn(move || gpu.run(0))
    };
    engine.quiesce(id).unwrap();
    engine.drain(id, NEVER).unwrap();
    probe.drained.store(true, Ordering::Release);
    engine.unsubscribe(id).unwrap();
    assert_eq!(running.join().unwrap(), 1);
    engine.shut_down(NEVER).unwrap();
    assert_eq!(probe.retired.load(Ordering::Relaxed), 1, "retired exactly once");
}

#[test]
fn a_drain_ends_with_the_last_retirement_and_nothing_comes_after_it() {
    explore(
        "a_drain_ends_with_the_last_retirement_and_nothing_comes_after_it",
        last_retirement_against_unhook,
    );
}

#[test]
#[should_panic(expected = "published after the drain")]
fn landing_before_publishing_lets_the_drain_end_early() {
    broken(Fault::LandedBeforePublished, last_retirement_against_unhook);
}

/// The GPU executes a batch at once, while the hook has not returned.
fn hook_against_reaper() {
    let gpu = Gpu::new();
    let engine = Engine::new(gpu.clone(), [AGENT]);
    let queue = engine.add_queue(AGENT).unwrap();
    let probe = Probe::new(count);
    let id = engine.subscribe(probe.subscription(false)).unwrap();
    let hook = {
        let (gpu, queue) = (Arc::clone(&gpu), queue.clone());
        thread::spawn(move || {
            queue.rewrite(&[kernel()], 0, |packets| {
                gpu.rings.lock().entry(0).or_default().extend(packets);
                gpu.run(0);
            });
        })
    };
    hook.join().unwrap();
    engine.quiesce(id).unwrap();
    engine.drain(id, NEVER).unwrap();
    assert_eq!(probe.retired.load(Ordering::Relaxed), 1, "retired exactly once");
    engine.unsubscribe(id).unwrap();
    engine.shut_down(NEVER).unwrap();
}

#[test]
fn a_dispatch_that_retires_inside_the_hook_is_published_once() {
    explore("a_dispatch_that_retires_inside_the_hook_is_published_once", hook_against_reaper);
}

#[test]
#[should_panic(expected = "the retire counter fell by")]
fn a_batch_listed_after_it_was_written_retires_before_it_flies() {
    broken(Fault::ListedAfterWritten, hook_against_reaper);
}

/// A queue is destroyed while its last dispatch retires.
fn destroy_against_reaper() {
    let gpu = Gpu::new();
    let engine = Engine::new(gpu.clone(), [AGENT]);
    let queue = engine.add_queue(AGENT).unwrap();
    let probe = Probe::new(count);
    let id = engine.subscribe(probe.subscription(false)).unwrap();
    submit(&gpu, &queue, 0);
    gpu.run(0);
    engine.queue_destroyed(&queue);
    engine.quiesce(id).unwrap();
    engine.drain(id, NEVER).unwrap();
    assert_eq!(probe.retired.load(Ordering::Relaxed), 1, "retired exactly once");
    engine.unsubscribe(id).unwrap();
    engine.shut_down(NEVER).unwrap();
}

#[test]
fn a_destroyed_queue_keeps_its_signals_until_the_reaper_left_it() {
    explore("a_destroyed_queue_keeps_its_signals_until_the_reaper_left_it", destroy_against_reaper);
}

#[test]
#[should_panic(expected = "a signal is read after its end")]
fn signals_freed_by_the_destroyer_are_read_by_the_reaper() {
    broken(Fault::SignalsFreedByDestroyer, destroy_against_reaper);
}

/// A subscriber stops while its kernel runs; another queue dispatches. Kernel of ring 0 is in flight until its last packet.
fn hold_against_drain() {
    let gpu = Gpu::new();
    let engine = Arc::new(Engine::new(gpu.clone(), [AGENT]));
    let (first, second) = (engine.add_queue(AGENT).unwrap(), engine.add_queue(AGENT).unwrap());
    let probe = Probe::new(count);
    let id = engine.subscribe(probe.subscription(true)).unwrap();
    submit(&gpu, &first, 0);
    let stop = {
        let engine = Arc::clone(&engine);
        thread::spawn(move || {
            engine.quiesce(id).unwrap();
            engine.drain(id, NEVER).unwrap();
            engine.unsubscribe(id).unwrap();
        })
    };
    submit(&gpu, &second, 1);
    assert_eq!(gpu.run(1), 0, "a kernel runs beside one that is being counted");
    assert_eq!(gpu.run(0), 1);
    while gpu.run(1) == 0 {
        thread::yield_now();
    }
    stop.join().unwrap();
    engine.shut_down(NEVER).unwrap();
}

#[test]
fn the_hold_outlasts_the_drain() {
    explore("the_hold_outlasts_the_drain", hold_against_drain);
}

#[test]
#[should_panic(expected = "a kernel runs beside one that is being counted")]
fn a_hold_returned_before_the_drain_lets_kernels_overlap() {
    broken(Fault::HoldReturnedWhenSilent, hold_against_drain);
}

/// A service subscribes while interception shuts down, and then there is a kernel.
fn subscribe_against_shutdown() {
    let gpu = Gpu::new();
    let engine = Arc::new(Engine::new(gpu.clone(), [AGENT]));
    let queue = engine.add_queue(AGENT).unwrap();
    let probe = Probe::new(decline);
    let subscribing = {
        let (gpu, engine, probe) = (Arc::clone(&gpu), Arc::clone(&engine), Arc::clone(&probe));
        thread::spawn(move || {
            let id = engine.subscribe(probe.subscription(true)).ok();
            submit(&gpu, &queue, 0);
            gpu.run(0);
            (id, queue)
        })
    };
    engine.shut_down(NEVER).unwrap();
    let (id, queue) = subscribing.join().unwrap();
    probe.silent.store(true, Ordering::Release);
    submit(&gpu, &queue, 0);
    gpu.run(0);
    if let Some(id) = id {
        assert!(engine.quiesce(id).is_err(), "the subscription is forgotten");
    }
}

#[test]
fn no_subscription_outlives_the_shutdown() {
    explore("no_subscription_outlives_the_shutdown", subscribe_against_shutdown);
}

#[test]
#[should_panic(expected = "asked after quiesce returned")]
fn a_subscription_admitted_too_early_outlives_the_shutdown() {
    broken(Fault::SubscribedAfterShutDown, subscribe_against_shutdown);
}

/// A service gives an output back to its pool while interception shuts down; a kernel of another queue waits for it.
fn pool_return_against_shutdown() {
    let gpu = Gpu::new();
    let engine = Arc::new(Engine::new(gpu.clone(), [AGENT]));
    let (first, second) = (engine.add_queue(AGENT).unwrap(), engine.add_queue(AGENT).unwrap());
    let probe = Probe::new(hold_first);
    let id = engine.subscribe(probe.subscription(true)).unwrap();
    submit(&gpu, &first, 0);
    submit(&gpu, &second, 1);
    assert_eq!(gpu.run(0), 1);
    engine.drain(id, NEVER).unwrap();
    let returning = {
        let (gpu, engine) = (Arc::clone(&gpu), Arc::clone(&engine));
        thread::spawn(move || {
            engine.return_grant(id, Token { index: 1, generation: 0 });
            assert_eq!(gpu.run(1), 1, "a returned grant lets the next kernel run");
        })
    };
    engine.shut_down(NEVER).unwrap();
    returning.join().unwrap();
    engine.queue_destroyed(&first);
    engine.queue_destroyed(&second);
    // A packet that rings may be behind the shutdown: then the bell stays.
    assert!(gpu.live() <= 1, "every signal went back");
}

#[test]
fn a_grant_returned_during_the_shutdown_lets_the_next_kernel_run() {
    explore("a_grant_returned_during_the_shutdown_lets_the_next_kernel_run", pool_return_against_shutdown);
}

#[test]
#[should_panic(expected = "a returned grant lets the next kernel run")]
fn a_grant_that_nobody_remembers_keeps_the_agent() {
    broken(Fault::GrantsForgottenWhenLeft, pool_return_against_shutdown);
}

/// A queue goes while another comes, which gets its place in the serializer.
fn lane_used_again() {
    let gpu = Gpu::new();
    let engine = Engine::new(gpu.clone(), [AGENT]);
    let (gone, holder) = (engine.add_queue(AGENT).unwrap(), engine.add_queue(AGENT).unwrap());
    let id = engine.subscribe(Probe::new(count).subscription(true)).unwrap();
    submit(&gpu, &gone, 0);
    assert_eq!(gpu.run(0), 1);
    engine.drain(id, NEVER).unwrap();
    submit(&gpu, &holder, 1);
    engine.queue_destroyed(&gone);
    let new = engine.add_queue(AGENT).unwrap();
    submit(&gpu, &new, 2);
    assert_eq!(gpu.run(1), 1);
    assert!(holder.wait_empty(NEVER));
    assert_eq!(gpu.run(2), 1, "a queue in the place of another has its gate");
    engine.shut_down(NEVER).unwrap();
}

#[test]
fn a_queue_in_the_place_of_another_gets_the_agent() {
    explore("a_queue_in_the_place_of_another_gets_the_agent", lane_used_again);
}

#[test]
#[should_panic(expected = "a queue in the place of another has its gate")]
fn a_lane_given_up_in_two_steps_takes_the_gate_of_the_next_queue() {
    broken(Fault::LaneFreedBeforeGate, lane_used_again);
}
