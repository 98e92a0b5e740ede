//! The trace services, with the built-in packet programs and a GPU that the test plays.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "helpers of the tests")]

mod device;
mod ending;
mod stage;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use stage::{Arena, Call, EngineWrites, Launched, Slots, Stage, config, shape, write_trace};
use support::{AGENT, Event, Gpu, HANDLE, MIB};
use wavescope_aql_profile::{Builtin, TraceConfig};
use wavescope_att_resources::{
    AgentOwner, BufferId, Decision, Delivery, DispatchTrace, DispatchTraceSetup, Error, Limits, TracedAgent,
};
use wavescope_core::sync::thread;
use wavescope_core::{
    Answer, ClaimTable, CodeObjectId, ContextId, Dispatch, Fence, Grant, InterceptionError, LoadedCodeObject,
    LossReason, Overflow, PacketType, Records, TraceChunk, record_stream,
};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);

/// One agent and everything around it.
struct World {
    gpu: Gpu,
    owner: Arc<AgentOwner>,
    stage: Arc<Stage>,
    slots: Arc<Slots>,
    claims: Arc<ClaimTable>,
}

/// A context's service with what it delivers.
struct Tracing {
    service: DispatchTrace,
    chunks: Records<TraceChunk>,
    arena: Arc<Arena>,
    config: TraceConfig,
}

impl World {
    fn new() -> Self {
        Self::with_traces(16)
    }

    fn with_traces(traces: usize) -> Self {
        Self::with_limits(Limits { patience: LONG, traces })
    }

    fn with_limits(limits: Limits) -> Self {
        let gpu = Gpu::default();
        let owner = AgentOwner::new(AGENT, Box::new(gpu.clone()), limits);
        let (stage, slots, claims) = (Arc::default(), Arc::default(), Arc::default());
        Self { gpu, owner, stage, slots, claims }
    }

    fn context(&self, context: u64, config: TraceConfig) -> Tracing {
        self.try_context(context, config, |_| Decision::StartAndStop { user_data: 77 }).unwrap()
    }

    fn try_context(
        &self,
        context: u64,
        config: TraceConfig,
        decide: fn(&Dispatch) -> Decision,
    ) -> Result<Tracing, Error> {
        let (sink, chunks) = record_stream(64, Overflow::Block);
        let arena = Arc::new(Arena::default());
        let service = DispatchTrace::new(self.setup(
            context,
            config.clone(),
            &arena,
            Arc::new(decide),
            Delivery::Stream(sink),
        ))?;
        Ok(Tracing { service, chunks, arena, config })
    }

    fn setup(
        &self,
        context: u64,
        config: TraceConfig,
        arena: &Arc<Arena>,
        decide: Arc<wavescope_att_resources::Decide>,
        delivery: Delivery,
    ) -> DispatchTraceSetup {
        DispatchTraceSetup {
            context: ContextId(context),
            agents: vec![TracedAgent {
                owner: Arc::clone(&self.owner),
                agent_handle: HANDLE,
                shape: shape(),
                config,
                memory: arena.clone(),
                slots: self.slots.clone(),
            }],
            programs: Arc::new(Builtin),
            interception: self.stage.clone(),
            claims: Arc::clone(&self.claims),
            decide,
            serialize_all: false,
            delivery,
        }
    }

    /// The address of the shared slot, as the owner hands it out.
    fn slot(&self) -> u64 {
        self.gpu.raw_address(BufferId::Output(0)).next_multiple_of(4096)
    }

    /// The GPU runs a traced dispatch to its end.
    fn run(&self, tracing: &Tracing, launched: &Launched, writes: &[EngineWrites]) {
        write_trace(&tracing.arena, &self.slots, self.slot(), &tracing.config, writes);
        self.stage.retire(launched);
    }
}

/// `count` times 32 bytes of `value` by engine `engine`.
fn writes(engine: u32, value: u8, count: usize) -> EngineWrites {
    EngineWrites { engine, bytes: vec![value; 32 * count], full: false }
}

/// gfx9's 8-byte header of an engine's data.
const HEADER: usize = 8;

#[test]
fn two_dispatches_of_one_context_deliver_different_data() {
    let world = World::new();
    let tracing = world.context(1, config(0b101, 16 * MIB));
    tracing.service.start().unwrap();
    let first = world.stage.launch(AGENT, 1);
    let second = world.stage.launch(AGENT, 1);
    world.run(&tracing, &first, &[writes(0, 0xA1, 2), writes(2, 0xA3, 1)]);
    world.stage.wait_for(Call::ReturnGrant(first.token()));
    world.run(&tracing, &second, &[writes(0, 0xB1, 1), writes(2, 0xB3, 3)]);
    tracing.service.stop(LONG).unwrap();
    let chunks: Vec<_> = std::iter::from_fn(|| tracing.chunks.try_recv()).collect();
    let content: Vec<_> = chunks
        .iter()
        .map(|chunk| (chunk.dispatch, chunk.shader_engine, chunk.index, chunk.data[HEADER..].to_vec()))
        .collect();
    assert_eq!(
        content,
        [
            (Some(first.id), 0, 0, vec![0xA1; 64]),
            (Some(first.id), 2, 1, vec![0xA3; 32]),
            (Some(second.id), 0, 0, vec![0xB1; 32]),
            (Some(second.id), 2, 1, vec![0xB3; 96]),
        ]
    );
    assert!(
        chunks.iter().all(|chunk| chunk.flags.end && !chunk.flags.gpu_buffer_full && chunk.user_data == 77)
    );
    // gfx9's header names the engine in bits 31:26.
    let engine = |chunk: &TraceChunk| u32::from_le_bytes(*chunk.data.first_chunk().unwrap()) >> 26;
    assert_eq!(chunks.iter().map(engine).collect::<Vec<_>>(), [0, 2, 0, 2]);
}

#[test]
fn packets_stand_around_the_kernel_with_their_headers() {
    let world = World::new();
    let tracing = world.context(1, config(1, 16 * MIB));
    tracing.service.start().unwrap();
    let (first, second) = (world.stage.launch(AGENT, 1), world.stage.launch(AGENT, 1));
    let other_queue = world.stage.launch(AGENT, 2);
    // Once for each queue: the packet that lets the queue's pipe be profiled.
    assert_eq!([first.before.len(), second.before.len(), other_queue.before.len()], [2, 1, 2]);
    assert_eq!(first.before[1], second.before[0]);
    assert_eq!((first.after.len(), &first.after), (1, &second.after));
    assert!(matches!(first.answer, Answer::Instrument { grant: Grant::UntilReturned, .. }));
    let header = |packet: &wavescope_core::AqlPacket| packet.header();
    assert_eq!(header(&first.before[1]).kind(), PacketType::VENDOR_SPECIFIC);
    assert!(!header(&first.before[1]).barrier() && header(&first.after[0]).barrier());
    assert_eq!(first.after[0].0[0] >> 11 & 3, Fence::System as u32, "release scope of stop");
    let subscription = world.stage.subscription();
    assert_eq!((subscription.context, subscription.agents), (ContextId(1), vec![AGENT]));
    for launched in [first, second, other_queue] {
        world.run(&tracing, &launched, &[]);
        world.stage.wait_for(Call::ReturnGrant(launched.token()));
    }
}

#[test]
fn grant_returns_after_the_slot_was_copied_and_hook_leaves_last() {
    let world = World::new();
    let tracing = world.context(1, config(1, 16 * MIB));
    tracing.service.start().unwrap();
    let launched = world.stage.launch(AGENT, 1);
    assert_eq!(world.stage.calls(), [Call::Subscribe]);
    world.run(&tracing, &launched, &[writes(0, 1, 1)]);
    tracing.service.stop(LONG).unwrap();
    let calls: Vec<_> =
        world.stage.calls().into_iter().filter(|call| !matches!(call, Call::ReturnGrant(_))).collect();
    assert_eq!(calls, [Call::Subscribe, Call::Quiesce, Call::Drain, Call::Unsubscribe]);
    let position = |wanted: Call| world.stage.calls().iter().position(|call| *call == wanted).unwrap();
    assert!(position(Call::ReturnGrant(launched.token())) < position(Call::Unsubscribe));
    let order: Vec<_> = world.gpu.log();
    assert_eq!(order.len(), 2, "one queue and one slot: {order:?}");
}

#[test]
fn dispatch_in_flight_at_stop_is_delivered() {
    let world = World::new();
    let tracing = world.context(1, config(1, 16 * MIB));
    tracing.service.start().unwrap();
    let launched = world.stage.launch(AGENT, 1);
    let service = tracing.service;
    let stopping = thread::spawn(move || service.stop(LONG));
    world.stage.wait_for(Call::Drain);
    write_trace(&tracing.arena, &world.slots, world.slot(), &tracing.config, &[writes(0, 9, 1)]);
    world.stage.retire(&launched);
    stopping.join().unwrap().unwrap();
    assert_eq!(tracing.chunks.try_recv().unwrap().data[HEADER..], [9; 32]);
}

#[test]
fn stop_that_times_out_keeps_everything_and_can_be_repeated() {
    let world = World::new();
    let tracing = world.context(1, config(1, 16 * MIB));
    let other = world.context(2, config(1, 16 * MIB));
    tracing.service.start().unwrap();
    let launched = world.stage.launch(AGENT, 1);
    let error = tracing.service.stop(Duration::from_millis(10)).unwrap_err();
    assert!(error.to_string().starts_with("1 dispatches of subscription 1 did not retire"), "{error}");
    assert!(matches!(tracing.service.start(), Err(Error::NotStopped { context: ContextId(1) })));
    assert!(matches!(other.service.start(), Err(Error::Conflict(_))));
    world.run(&tracing, &launched, &[writes(0, 9, 1)]);
    tracing.service.stop(LONG).unwrap();
    assert_eq!(tracing.service.summary().delivered, 1);
    other.service.start().unwrap();
}

// It is named as what it is, not as a dispatch that did not retire.
#[test]
fn stop_that_finds_a_callback_busy_keeps_everything_and_can_be_repeated() {
    let world = World::new();
    let (tracing, other) = (world.context(1, config(1, 16 * MIB)), world.context(2, config(1, 16 * MIB)));
    tracing.service.start().unwrap();
    world.stage.set_inside_callback(true);
    let error = tracing.service.stop(LONG).unwrap_err();
    assert!(matches!(error, Error::Interception(InterceptionError::CallbackBusy { .. })), "{error:?}");
    assert_eq!(
        error.to_string(),
        "a callback of subscription 1 for queue 7 on agent 0 did not return within 10s"
    );
    assert_eq!(world.stage.calls(), [Call::Subscribe, Call::Quiesce], "the hold stays");
    let refused = tracing.service.start().unwrap_err().to_string();
    assert_eq!(refused, "context 1 was not stopped to the end: stop it again");
    assert!(matches!(other.service.start(), Err(Error::Conflict(_))));
    world.stage.set_inside_callback(false);
    tracing.service.stop(LONG).unwrap();
    assert_eq!(world.stage.calls().last(), Some(&Call::Unsubscribe));
    other.service.start().unwrap();
}

// Whoever drops a service is not kept by its callback, and the agent is free for others.
#[test]
fn service_dropped_inside_a_callback_gives_its_agent_back() {
    let world = World::new();
    let (tracing, other) = (world.context(1, config(1, 16 * MIB)), world.context(2, config(1, 16 * MIB)));
    tracing.service.start().unwrap();
    world.stage.set_inside_callback(true);
    drop(tracing);
    assert_eq!(world.stage.calls(), [Call::Subscribe, Call::Quiesce, Call::Unsubscribe]);
    other.service.start().unwrap();
    world.stage.set_inside_callback(false);
}

#[test]
fn second_context_is_refused_and_takes_nothing() {
    let world = World::new();
    let (first, second) = (world.context(1, config(1, 16 * MIB)), world.context(2, config(1, 16 * MIB)));
    first.service.start().unwrap();
    let error = second.service.start().unwrap_err();
    assert_eq!(
        error.to_string(),
        "context 2 cannot start thread trace on agent 0: context 1 is active with thread trace"
    );
    first.service.start().unwrap();
    first.service.stop(LONG).unwrap();
    second.service.start().unwrap();
    second.service.stop(LONG).unwrap();
}

#[test]
fn failing_start_gives_everything_back() {
    let world = World::new();
    let (first, second) = (world.context(1, config(1, 16 * MIB)), world.context(2, config(1, 16 * MIB)));
    world.stage.refuse_subscriptions(true);
    assert!(matches!(first.service.start(), Err(Error::Interception(_))));
    world.stage.refuse_subscriptions(false);
    second.service.start().unwrap();
    second.service.stop(LONG).unwrap();
    first.service.start().unwrap();
}

#[test]
fn slot_that_cannot_be_had_fails_the_start_with_its_reason() {
    let world = World::new();
    let tracing = world.context(1, config(1, 16 * MIB));
    world.gpu.refuse_allocations(1);
    let error = tracing.service.start().unwrap_err();
    assert_eq!(error.to_string(), "agent 0: allocate returned 0x1008");
    tracing.service.start().unwrap();
}

#[test]
fn contexts_of_different_sizes_share_one_queue_and_one_slot() {
    let world = World::new();
    let contexts = [world.context(1, config(1, 16 * MIB)), world.context(2, config(0b11, 64 * MIB))];
    for (value, tracing) in (1..).zip(&contexts) {
        tracing.service.start().unwrap();
        let launched = world.stage.launch(AGENT, 1);
        world.run(tracing, &launched, &[writes(0, value, 1)]);
        tracing.service.stop(LONG).unwrap();
        assert_eq!(tracing.chunks.try_recv().unwrap().data[HEADER..], [value; 32]);
    }
    assert_eq!(world.gpu.count(|event| matches!(event, Event::CreateQueue(_))), 1);
    assert_eq!(world.gpu.output_allocations(), [64 * MIB + 0x2000]);
    // Dropping a context frees what is its own, and never the slot.
    let arenas: Vec<_> = contexts.iter().map(|tracing| Arc::clone(&tracing.arena)).collect();
    drop(contexts);
    assert!(arenas.iter().all(|arena| arena.allocations() == 0 && arena.strays().is_empty()));
    assert_eq!(world.gpu.count(|event| matches!(event, Event::Free(_))), 0);
    world.owner.shutdown().unwrap();
    assert_eq!(world.gpu.count(|event| matches!(event, Event::Free(_))), 1);
}

#[test]
fn control_record_is_cleared_between_traces() {
    let world = World::new();
    let tracing = world.context(1, config(1, 16 * MIB));
    tracing.service.start().unwrap();
    let first = world.stage.launch(AGENT, 1);
    world.run(&tracing, &first, &[writes(0, 5, 4)]);
    world.stage.wait_for(Call::ReturnGrant(first.token()));
    let second = world.stage.launch(AGENT, 1);
    world.stage.retire(&second); // wrote nothing
    tracing.service.stop(LONG).unwrap();
    let sizes: Vec<_> =
        std::iter::from_fn(|| tracing.chunks.try_recv()).map(|chunk| chunk.data.len() - HEADER).collect();
    assert_eq!(sizes, [128, 0]);
}

#[test]
fn full_buffer_is_flagged_on_its_engine() {
    let world = World::new();
    let tracing = world.context(1, config(0b11, 16 * MIB));
    tracing.service.start().unwrap();
    let launched = world.stage.launch(AGENT, 1);
    let full = EngineWrites { full: true, ..writes(1, 2, 1) };
    world.run(&tracing, &launched, &[writes(0, 1, 1), full]);
    tracing.service.stop(LONG).unwrap();
    let flags: Vec<_> = std::iter::from_fn(|| tracing.chunks.try_recv())
        .map(|chunk| (chunk.shader_engine, chunk.flags.gpu_buffer_full))
        .collect();
    assert_eq!(flags, [(0, false), (1, true)]);
}

#[test]
fn lost_dispatch_delivers_a_lost_chunk_and_the_next_runs() {
    let world = World::new();
    let tracing = world.context(1, config(1, 16 * MIB));
    tracing.service.start().unwrap();
    let first = world.stage.launch(AGENT, 1);
    world.stage.lose(&first, LossReason::QueueDestroyed);
    world.stage.wait_for(Call::ReturnGrant(first.token()));
    let second = world.stage.launch(AGENT, 2);
    world.run(&tracing, &second, &[writes(0, 3, 1)]);
    tracing.service.stop(LONG).unwrap();
    let chunks: Vec<_> = std::iter::from_fn(|| tracing.chunks.try_recv()).collect();
    assert_eq!((chunks[0].dispatch, chunks[0].flags.lost, chunks[0].data.len()), (Some(first.id), true, 0));
    assert_eq!((chunks[1].dispatch, chunks[1].flags.lost), (Some(second.id), false));
    let summary = tracing.service.summary();
    assert_eq!((summary.traced, summary.lost, summary.delivered), (2, 1, 1));
}

#[test]
fn slot_that_cannot_be_read_is_a_lost_chunk() {
    let world = World::new();
    let tracing = world.context(1, config(1, 16 * MIB));
    tracing.service.start().unwrap();
    *world.slots.refuse.lock() = true;
    let launched = world.stage.launch(AGENT, 1);
    world.run(&tracing, &launched, &[writes(0, 3, 1)]);
    tracing.service.stop(LONG).unwrap();
    assert!(tracing.chunks.try_recv().unwrap().flags.lost);
}

#[test]
fn declined_dispatch_gets_no_packets() {
    let world = World::new();
    let odd = |dispatch: &Dispatch| match dispatch.id.0 % 2 {
        1 => Decision::None,
        _ => Decision::StartAndStop { user_data: dispatch.id.0 },
    };
    let tracing = world.try_context(1, config(1, 16 * MIB), odd).unwrap();
    tracing.service.start().unwrap();
    let (first, second) = (world.stage.launch(AGENT, 1), world.stage.launch(AGENT, 1));
    assert_eq!((first.answer, first.before.len() + first.after.len()), (Answer::Ignore, 0));
    world.run(&tracing, &second, &[]);
    tracing.service.stop(LONG).unwrap();
    assert_eq!(tracing.chunks.try_recv().unwrap().user_data, 2);
    assert_eq!(tracing.service.summary().declined, 1);
}

#[test]
fn serialize_all_serializes_what_is_declined() {
    let world = World::new();
    let arena = Arc::default();
    let (sink, _chunks) = record_stream(1, Overflow::DropNewest);
    let decide = Arc::new(|_: &Dispatch| Decision::None);
    let setup = world.setup(1, config(1, 16 * MIB), &arena, decide, Delivery::Stream(sink));
    let service = DispatchTrace::new(DispatchTraceSetup { serialize_all: true, ..setup }).unwrap();
    service.start().unwrap();
    assert_eq!(world.stage.launch(AGENT, 1).answer, Answer::Decline);
}

#[test]
fn dispatch_of_another_agent_is_left_alone() {
    let world = World::new();
    let tracing = world.try_context(1, config(1, 16 * MIB), |_| unreachable!("asked about it")).unwrap();
    tracing.service.start().unwrap();
    let other = world.stage.launch(wavescope_core::AgentId(1), 1);
    assert_eq!((other.answer, other.before.len()), (Answer::Ignore, 0));
}

#[test]
fn more_dispatches_than_places_are_skipped_and_counted() {
    let world = World::with_traces(2);
    let tracing = world.context(1, config(1, 16 * MIB));
    tracing.service.start().unwrap();
    let launched: Vec<_> = (0..3).map(|_| world.stage.launch(AGENT, 1)).collect();
    assert_eq!(launched[2].answer, Answer::Ignore);
    assert_eq!(tracing.service.summary().skipped, 1);
    for launched in &launched[..2] {
        world.run(&tracing, launched, &[]);
        world.stage.wait_for(Call::ReturnGrant(launched.token()));
    }
    let again = world.stage.launch(AGENT, 1);
    world.run(&tracing, &again, &[]);
    tracing.service.stop(LONG).unwrap();
    assert_eq!(tracing.service.summary().delivered, 3);
}

#[test]
fn loaded_code_objects_are_named_until_they_are_unloaded() {
    let world = World::new();
    let tracing = world.context(1, config(1, 16 * MIB));
    let load = |id, agent| {
        let code = LoadedCodeObject { id: CodeObjectId(id), agent, base: 0x10_0000, size: 0x2000 };
        tracing.service.code_object_loaded(&code).unwrap();
    };
    load(1, AGENT);
    load(2, AGENT);
    load(3, wavescope_core::AgentId(1));
    tracing.service.start().unwrap();
    let finish = |launched: &Launched| {
        world.run(&tracing, launched, &[]);
        world.stage.wait_for(Call::ReturnGrant(launched.token()));
    };
    let both = world.stage.launch(AGENT, 1);
    assert_eq!(both.before.len(), 4, "enable, start, two markers");
    let before_unload = tracing.arena.allocations();
    tracing.service.code_object_unloaded(CodeObjectId(1));
    assert_eq!(tracing.arena.allocations(), before_unload, "a packet in flight names the marker");
    let one = world.stage.launch(AGENT, 1);
    assert_eq!(one.before, [both.before[1], both.before[3]]);
    finish(&both);
    finish(&one);
    tracing.service.stop(LONG).unwrap();
    assert_eq!(tracing.arena.allocations(), before_unload - 1);
}

#[test]
fn panicking_callback_does_not_stop_the_deliveries() {
    let world = World::new();
    let arena = Arc::<Arena>::default();
    let (sink, chunks) = record_stream(8, Overflow::Block);
    let callback = move |chunk: TraceChunk| {
        assert_ne!(chunk.dispatch.unwrap().0, 1, "the client panics on purpose");
        sink.send(chunk);
    };
    let decide = Arc::new(|_: &Dispatch| Decision::StartAndStop { user_data: 0 });
    let config = config(1, 16 * MIB);
    let setup = world.setup(1, config.clone(), &arena, decide, Delivery::Callback(Box::new(callback)));
    let service = DispatchTrace::new(setup).unwrap();
    let tracing = Tracing { service, chunks, arena, config };
    tracing.service.start().unwrap();
    for value in 0..2 {
        let launched = world.stage.launch(AGENT, 1);
        world.run(&tracing, &launched, &[writes(0, value, 1)]);
        world.stage.wait_for(Call::ReturnGrant(launched.token()));
    }
    tracing.service.stop(LONG).unwrap();
    assert_eq!(tracing.chunks.try_recv().unwrap().data[HEADER..], [1; 32]);
}

#[test]
fn restart_delivers_the_data_of_both_runs() {
    let world = World::new();
    let tracing = world.context(1, config(1, 16 * MIB));
    tracing.service.stop(LONG).unwrap();
    for value in 0..3 {
        tracing.service.start().unwrap();
        let launched = world.stage.launch(AGENT, 1);
        world.run(&tracing, &launched, &[writes(0, value, 1)]);
        tracing.service.stop(LONG).unwrap();
        let chunk = tracing.chunks.try_recv().unwrap();
        assert_eq!((chunk.dispatch, &chunk.data[HEADER..]), (Some(launched.id), &[value; 32][..]));
    }
}

#[test]
fn impossible_buffer_is_refused_when_it_is_configured() {
    let world = World::new();
    let small = world.try_context(1, config(1, 4096), |_| Decision::None).err().unwrap();
    assert!(matches!(small, Error::Program(_)), "{small}");
    let first = world.context(1, config(1, 16 * MIB));
    first.service.start().unwrap();
    let late = world.try_context(2, config(1, 32 * MIB), |_| Decision::None).err().unwrap();
    assert!(matches!(late, Error::GrowthRefused { context: ContextId(2), .. }), "{late}");
}
