//! How a service fares where the GPU, or its client, is slow or does not answer.
#![expect(clippy::unwrap_used, reason = "helpers of the tests")]

use std::sync::Arc;
use std::time::Duration;

use wavescope_att_resources::{
    BufferId, Decision, Delivery, DispatchTrace, Error, Limits, ShutdownReport, TraceId,
};
use wavescope_core::sync::{Condvar, Mutex};
use wavescope_core::{ContextId, Dispatch, LossReason, Overflow, TraceChunk, record_stream};

use crate::stage::{Arena, Call, config};
use crate::support::{AGENT, MIB};
use crate::{HEADER, LONG, Tracing, World, writes};

/// For a GPU, or a client, that never answers.
const HASTY: Limits = Limits { patience: Duration::from_millis(50), traces: 16 };

#[test]
fn context_whose_dispatch_hung_keeps_what_its_packets_name() {
    let world = World::new();
    let tracing = world.context(1, config(1, 16 * MIB));
    tracing.service.start().unwrap();
    let launched = world.stage.launch(AGENT, 1);
    world.stage.lose(&launched, LossReason::TimedOut);
    tracing.service.stop(LONG).unwrap();
    let (arena, used) = (Arc::clone(&tracing.arena), tracing.arena.allocations());
    assert!(matches!(tracing.service.start(), Err(Error::AgentSilent { .. })));
    drop(tracing);
    assert_eq!(arena.allocations(), used);
    // The lease is back all the same, and the owner keeps the slot.
    assert_eq!(world.owner.shutdown().unwrap().leaked, [BufferId::Output(0)]);
}

#[test]
fn stop_returns_after_the_last_chunk_was_delivered() {
    let world = World::new();
    let arena = Arc::<Arena>::default();
    let stopped = Arc::new((Mutex::new(false), Condvar::new()));
    let (sink, chunks) = record_stream(1, Overflow::Block);
    let seen = Arc::clone(&stopped);
    // A slow client: it gives a stop that does not wait for it the time to return.
    let callback = move |chunk: TraceChunk| {
        let (guard, _) = seen.1.wait_timeout(seen.0.lock(), Duration::from_millis(100));
        assert!(!*guard, "stop returned before the chunk was delivered");
        sink.send(chunk);
    };
    let decide = Arc::new(|_: &Dispatch| Decision::StartAndStop { user_data: 0 });
    let config = config(1, 16 * MIB);
    let setup = world.setup(1, config.clone(), &arena, decide, Delivery::Callback(Box::new(callback)));
    let tracing = Tracing { service: DispatchTrace::new(setup).unwrap(), chunks, arena, config };
    tracing.service.start().unwrap();
    let launched = world.stage.launch(AGENT, 1);
    world.run(&tracing, &launched, &[]);
    tracing.service.stop(LONG).unwrap();
    *stopped.0.lock() = true;
    stopped.1.notify_all();
    assert!(tracing.chunks.try_recv().is_some());
}

#[test]
fn dispatch_that_outlives_its_dropped_service_frees_the_agent() {
    let world = World::with_limits(HASTY);
    let tracing = world.context(1, config(1, 16 * MIB));
    tracing.service.start().unwrap();
    let (first, second) = (world.stage.launch(AGENT, 1), world.stage.launch(AGENT, 1));
    let subscriber = world.stage.subscription().subscriber;
    drop(tracing.service); // its patience ends before the dispatches do
    assert_eq!(world.stage.calls().last(), Some(&Call::Unsubscribe));
    for launched in [first, second] {
        world.stage.finish(&subscriber, &launched);
        world.stage.wait_for(Call::ReturnGrant(launched.token()));
    }
}

/// Each dispatch overwrites the slot of the one before as soon as it may; the client takes up to 20 ms for each.
#[test]
fn slow_client_gets_every_chunk_whole_and_in_order() {
    const DISPATCHES: u8 = 24;
    let world = World::with_traces(DISPATCHES.into());
    let (sink, chunks) = record_stream(DISPATCHES.into(), Overflow::Block);
    let callback = move |chunk: TraceChunk| {
        let idle = Condvar::new();
        drop(idle.wait_timeout(
            Mutex::new(()).lock(),
            Duration::from_millis(u64::from(chunk.data[HEADER]) % 3 * 10),
        ));
        sink.send(chunk);
    };
    let (arena, config) = (Arc::<Arena>::default(), config(1, 16 * MIB));
    let decide = Arc::new(|_: &Dispatch| Decision::StartAndStop { user_data: 0 });
    let setup = world.setup(1, config.clone(), &arena, decide, Delivery::Callback(Box::new(callback)));
    let tracing = Tracing { service: DispatchTrace::new(setup).unwrap(), chunks, arena, config };
    tracing.service.start().unwrap();
    let launches: Vec<_> = (0..DISPATCHES).map(|_| world.stage.launch(AGENT, 1)).collect();
    for (launched, stamp) in launches.iter().zip(0..) {
        world.run(&tracing, launched, &[writes(0, stamp, 3)]);
        world.stage.wait_for(Call::ReturnGrant(launched.token()));
    }
    tracing.service.stop(LONG).unwrap();
    for (launched, stamp) in launches.iter().zip(0..) {
        let chunk = tracing.chunks.try_recv().unwrap();
        assert_eq!((chunk.dispatch, &chunk.data[HEADER..]), (Some(launched.id), &[stamp; 96][..]));
        assert!(!chunk.flags.lost);
    }
    assert_eq!(tracing.service.summary().delivered, u64::from(DISPATCHES));
}

/// A service whose client does not read; `dispatches` of two engines have retired, and their first chunk fills the
/// stream.
fn stalled(world: &World, dispatches: usize) -> Tracing {
    let (sink, chunks) = record_stream(1, Overflow::Block);
    let (arena, config) = (Arc::<Arena>::default(), config(0b11, 16 * MIB));
    let decide = Arc::new(|_: &Dispatch| Decision::StartAndStop { user_data: 0 });
    let setup = world.setup(1, config.clone(), &arena, decide, Delivery::Stream(sink));
    let tracing = Tracing { service: DispatchTrace::new(setup).unwrap(), chunks, arena, config };
    tracing.service.start().unwrap();
    for dispatch in 0..dispatches {
        let launched = world.stage.launch(AGENT, 1);
        world.run(&tracing, &launched, &[writes(0, 1, 1), writes(1, 1, 1)]);
        if dispatch == 0 {
            world.stage.wait_for(Call::ReturnGrant(launched.token()));
        }
    }
    tracing
}

#[test]
fn stop_waits_for_an_idle_client_no_longer_than_it_may() {
    for dispatches in 1..3 {
        let world = World::new();
        // With two the second is not even copied, so the owner does not let the context go.
        let tracing = stalled(&world, dispatches);
        assert!(matches!(tracing.service.stop(Duration::from_millis(50)), Err(Error::Core(_))));
        let all: Vec<_> = tracing.chunks.iter().take(2 * dispatches).collect();
        tracing.service.stop(LONG).unwrap();
        assert_eq!((all.len(), tracing.service.summary().delivered), (2 * dispatches, dispatches as u64));
    }
}

#[test]
fn dropping_a_service_does_not_wait_for_an_idle_client_for_ever() {
    let world = World::with_limits(HASTY);
    let Tracing { service, chunks, .. } = stalled(&world, 1);
    drop(service);
    assert_eq!(chunks.iter().count(), 2, "delivered when the client reads after all");
}

/// What a dropped service leaves behind when its dispatch never ends: the error goes to the log, the slot is kept.
#[test]
fn owner_of_a_dispatch_that_never_ends_shuts_down_and_reports_what_it_kept() {
    let world = World::with_limits(HASTY);
    let tracing = world.context(1, config(1, 16 * MIB));
    tracing.service.start().unwrap();
    let launched = world.stage.launch(AGENT, 1);
    // Interception keeps it for what is in flight.
    let subscriber = world.stage.subscription().subscriber;
    let (arena, used) = (Arc::clone(&tracing.arena), tracing.arena.allocations());
    drop(tracing);
    assert_eq!(world.claims.holders(AGENT), [], "who is gone claims nothing");
    let report = world.owner.shutdown().unwrap();
    let trace = TraceId { context: ContextId(1), token: launched.token() };
    assert_eq!(report, ShutdownReport { cut_short: vec![trace], leaked: vec![BufferId::Output(0)] });
    assert_eq!(arena.allocations(), used, "the GPU may still run the packets");
    // It ends after all, and finds nobody.
    world.stage.finish(&subscriber, &launched);
}

#[test]
fn agent_is_free_when_the_dispatch_of_a_dropped_service_ends() {
    let world = World::with_limits(HASTY);
    let (first, second) = (world.context(1, config(1, 16 * MIB)), world.context(2, config(1, 16 * MIB)));
    first.service.start().unwrap();
    let launched = world.stage.launch(AGENT, 1);
    let subscriber = world.stage.subscription().subscriber;
    drop(first);
    let refusal = second.service.start().unwrap_err();
    assert!(
        matches!(refusal, Error::Busy { holder: ContextId(1), .. }),
        "its packets are in a queue: {refusal}"
    );
    world.stage.finish(&subscriber, &launched);
    world.stage.wait_for(Call::ReturnGrant(launched.token()));
    second.service.start().unwrap();
    second.service.stop(LONG).unwrap();
    drop(second);
    assert_eq!(world.owner.shutdown().unwrap(), ShutdownReport::default());
}

#[test]
fn owner_does_not_wait_for_a_client_that_does_not_read() {
    let world = World::with_limits(HASTY);
    let Tracing { service, chunks, arena, .. } = stalled(&world, 1);
    let used = arena.allocations();
    drop(service);
    // Its trace was copied: nobody needs the slot.
    assert_eq!(world.owner.shutdown().unwrap(), ShutdownReport::default());
    assert_eq!(arena.allocations(), used, "the worker still has its packets");
    assert_eq!(chunks.iter().count(), 2);
    while arena.allocations() > 0 {
        wavescope_core::sync::thread::yield_now();
    }
}

#[test]
fn slot_that_was_not_copied_for_a_client_that_does_not_read_is_kept() {
    let world = World::with_limits(HASTY);
    let Tracing { service, chunks, .. } = stalled(&world, 2);
    drop(service);
    let report = world.owner.shutdown().unwrap();
    assert_eq!((report.cut_short.len(), report.leaked), (1, vec![BufferId::Output(0)]));
    drop(chunks);
}
