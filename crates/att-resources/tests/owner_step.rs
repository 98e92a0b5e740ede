//! The state machine by itself: what it reports, when its timer runs, what it does without a shutdown.
#![cfg(not(loom))]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use support::{AGENT, Event, Gpu, HANDLE, MIB, trace};
use wavescope_att_resources::{
    BufferId, Device, DeviceEvent, Effect, Message, Need, Owner, OwnerActor, Source, TraceClient, TraceId,
    Violation,
};
use wavescope_core::actor::{Actor, reply};
use wavescope_core::{ContextId, LossReason, QueueId};

const CONTEXT: ContextId = ContextId(1);
const QUEUE: QueueId = QueueId(7);
const SLOT0: BufferId = BufferId::Output(0);

struct Silent;

impl TraceClient for Silent {
    fn ended(&self, _trace: TraceId, _outcome: Result<(), LossReason>) {}
    fn release(&self, _trace: TraceId) {}
}

fn register() -> Message {
    let need = Need { buffer_bytes: MIB, buffers: 1 };
    Message::Register { context: CONTEXT, agent_handle: HANDLE, need, reply: reply("test").0 }
}

fn acquire() -> Message {
    let client = Arc::new(Silent);
    Message::Acquire { context: CONTEXT, agent_handle: HANDLE, client, reply: reply("test").0 }
}

fn resolve() -> Message {
    Message::Resolve { context: CONTEXT, buffer: SLOT0, bytes: MIB, reply: reply("test").0 }
}

fn begin(trace: TraceId) -> Message {
    Message::Begin { trace, source: Source::Dispatch { queue: QUEUE }, reply: None }
}

/// An owner whose one context has claimed the agent.
fn claimed() -> Owner {
    let mut owner = Owner::new(AGENT, Duration::from_secs(1));
    let queue = Message::Device(DeviceEvent::QueueCreated(Ok(())));
    let claim = Message::Claim { context: CONTEXT, reply: reply("test").0 };
    for message in [register(), acquire(), queue, claim] {
        owner.step(message);
    }
    owner
}

fn reports(effects: &[Effect]) -> Vec<Violation> {
    let report = |effect: &Effect| match effect {
        Effect::Report(violation) => Some(*violation),
        _ => None,
    };
    effects.iter().filter_map(report).collect()
}

/// What a step does to the timer.
fn timer(effects: &[Effect]) -> &'static str {
    let arms = effects.iter().any(|effect| matches!(effect, Effect::ArmTimer));
    let disarms = effects.iter().any(|effect| matches!(effect, Effect::DisarmTimer));
    match (arms, disarms) {
        (true, false) => "armed",
        (false, true) => "disarmed",
        (false, false) => "left",
        (true, true) => "both",
    }
}

#[test]
fn timer_runs_while_somebody_waits_and_each_sign_of_life_restarts_it() {
    let mut owner = claimed();
    let (one, two) = (trace(1, 0), trace(1, 1));
    let copied = |trace| Message::SlotCopied { trace };
    let retired = |trace| Message::StopRetired { trace, outcome: Ok(()) };
    let unhook = Message::Unhook { context: CONTEXT, reply: reply("test").0 };
    let drained = Message::Drained { context: CONTEXT, queue: QUEUE };
    for (message, expected) in [
        (begin(one), "left"), // kernels may run as long as they like
        (begin(two), "left"),
        (unhook, "armed"),
        (Message::StopSubmitted { trace: one }, "left"), // said by the host, not by the GPU
        (retired(one), "armed"),
        (copied(one), "armed"),
        (retired(two), "armed"),
        (copied(two), "armed"),
        (drained, "disarmed"),
    ] {
        assert_eq!(timer(&owner.step(message)), expected);
    }
}

#[test]
fn broken_protocol_is_reported() {
    let mut owner = claimed();
    let (one, two) = (trace(1, 0), trace(1, 1));
    let unexpected = |event| vec![Violation::Unexpected { event, trace: one }];
    assert_eq!(reports(&owner.step(Message::StopSubmitted { trace: one })), unexpected("StopSubmitted"));
    assert_eq!(reports(&owner.step(Message::SlotCopied { trace: one })), unexpected("SlotCopied"));
    let retired = Message::StopRetired { trace: one, outcome: Ok(()) };
    assert_eq!(reports(&owner.step(retired)), unexpected("StopRetired"));
    assert_eq!(reports(&owner.step(begin(trace(2, 0)))), [Violation::Unclaimed(trace(2, 0))]);
    assert_eq!(reports(&owner.step(begin(one))), []);
    owner.step(begin(two));
    let drained = Message::Drained { context: CONTEXT, queue: QUEUE };
    let (queue, context) = (QUEUE, CONTEXT);
    assert_eq!(reports(&owner.step(drained)), [Violation::NotDrained { queue, context, in_flight: 2 }]);
    let dropped = || Message::LeaseDropped { context: CONTEXT };
    assert_eq!(reports(&owner.step(dropped())), [Violation::LeaseInUse { context, in_flight: 2 }]);
    assert_eq!(reports(&owner.step(dropped())), [Violation::LeaseUnderflow(CONTEXT)]);
    let overrun = [one, two].map(|trace| Message::StopRetired { trace, outcome: Ok(()) });
    let found: Vec<_> = overrun.into_iter().map(|message| reports(&owner.step(message))).collect();
    assert_eq!(found, [vec![], vec![Violation::Overrun(two)]]);
}

/// An owner that has its slot, without a thread.
fn with_slot(gpu: &Gpu) -> OwnerActor {
    let device: Box<dyn Device> = Box::new(gpu.clone());
    let mut actor = OwnerActor::new(Owner::new(AGENT, Duration::from_secs(1)), device);
    for message in [register(), acquire(), resolve()] {
        assert!(actor.handle(message).is_continue());
    }
    actor
}

#[test]
fn owner_that_ends_without_a_shutdown_frees_what_nobody_uses() {
    let gpu = Gpu::default();
    let mut actor = with_slot(&gpu);
    assert!(actor.handle(Message::LeaseDropped { context: CONTEXT }).is_continue());
    drop(actor);
    assert_eq!(gpu.log().split_off(2), [Event::DestroyQueue, Event::Free(SLOT0)]);
}

#[test]
fn owner_that_ends_with_leases_out_keeps_their_memory() {
    let gpu = Gpu::default();
    drop(with_slot(&gpu));
    assert_eq!(gpu.log().split_off(2), [Event::DestroyQueue, Event::Leak(SLOT0)]);
}

#[test]
fn owner_that_panics_keeps_all_memory() {
    let gpu = Gpu::default();
    let mut actor = with_slot(&gpu);
    assert!(actor.handle(Message::LeaseDropped { context: CONTEXT }).is_continue());
    let outcome = catch_unwind(AssertUnwindSafe(move || {
        let _dropped_while_unwinding = actor;
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    outcome.unwrap_err();
    assert_eq!(gpu.log().split_off(2), [Event::DestroyQueue, Event::Leak(SLOT0)]);
}
