//! The device trace service.

use std::sync::Arc;
use std::time::Duration;

use wavescope_aql_profile::Builtin;
use wavescope_att_resources::{
    AgentOwner, BufferId, Delivery, DeviceTrace, DeviceTraceSetup, Error, Limits, TracedAgent,
};
use wavescope_core::sync::thread;
use wavescope_core::{
    AgentId, ClaimTable, CodeObjectId, ContextId, LoadedCodeObject, Overflow, Records, TraceChunk,
    record_stream,
};

use crate::stage::{Arena, Slots, config, shape, write_trace};
use crate::support::{Event, Gpu, HANDLE, MIB};
use crate::{HEADER, writes};

/// Agents of one kind, each with its GPU and memory.
struct Machine {
    gpus: Vec<Gpu>,
    owners: Vec<Arc<AgentOwner>>,
    arenas: Vec<Arc<Arena>>,
    slots: Vec<Arc<Slots>>,
    claims: Arc<ClaimTable>,
}

impl Machine {
    fn new(agents: u32, patience: Duration) -> Self {
        let gpus: Vec<_> = (0..agents).map(|_| Gpu::default()).collect();
        let limits = Limits { patience, traces: 4 };
        let owner =
            |(agent, gpu): (u32, &Gpu)| AgentOwner::new(AgentId(agent), Box::new(gpu.clone()), limits);
        let owners = (0..).zip(&gpus).map(owner).collect();
        let arenas = gpus.iter().map(|_| Arc::default()).collect();
        let slots = gpus.iter().map(|_| Arc::default()).collect();
        Self { gpus, owners, arenas, slots, claims: Arc::default() }
    }

    /// A service on the agents at `places`.
    fn context(&self, context: u64, places: &[usize]) -> (Arc<DeviceTrace>, Records<TraceChunk>) {
        let (sink, chunks) = record_stream(16, Overflow::Block);
        let agent = |&place: &usize| TracedAgent {
            owner: Arc::clone(&self.owners[place]),
            agent_handle: HANDLE,
            shape: shape(),
            config: config(1, 16 * MIB),
            memory: self.arenas[place].clone(),
            slots: self.slots[place].clone(),
        };
        let setup = DeviceTraceSetup {
            context: ContextId(context),
            agents: places.iter().map(agent).collect(),
            programs: Arc::new(Builtin),
            claims: Arc::clone(&self.claims),
            user_data: 42,
            delivery: Delivery::Stream(sink),
        };
        (Arc::new(DeviceTrace::new(setup).unwrap()), chunks)
    }

    /// Batches submitted to an agent's queue so far, in packets.
    fn submitted(&self, place: usize) -> Vec<usize> {
        let batches = self.gpus[place].log().into_iter().filter_map(|event| match event {
            Event::Submit(packets) => Some(packets.len()),
            _ => None,
        });
        batches.collect()
    }

    fn write(&self, place: usize, value: u8) {
        let slot = self.gpus[place].raw_address(BufferId::Output(0)).next_multiple_of(4096);
        write_trace(
            &self.arenas[place],
            &self.slots[place],
            slot,
            &config(1, 16 * MIB),
            &[writes(0, value, 1)],
        );
    }
}

const LONG: Duration = Duration::from_secs(60);

/// Calls `call` on a thread of its own.
fn spawn(
    service: &Arc<DeviceTrace>,
    call: fn(&DeviceTrace) -> Result<(), Error>,
) -> thread::JoinHandle<Result<(), Error>> {
    let service = Arc::clone(service);
    thread::spawn(move || call(&service))
}

fn start(machine: &Machine, service: &Arc<DeviceTrace>, places: &[usize]) {
    let starting = spawn(service, DeviceTrace::start);
    places.iter().for_each(|&place| machine.gpus[place].retire());
    starting.join().unwrap().unwrap();
}

fn stop(machine: &Machine, service: &Arc<DeviceTrace>, places: &[usize]) {
    let stopping = spawn(service, DeviceTrace::stop);
    places.iter().for_each(|&place| machine.gpus[place].retire());
    stopping.join().unwrap().unwrap();
}

#[test]
fn device_trace_delivers_what_was_written_between_start_and_stop() {
    let machine = Machine::new(1, LONG);
    let (service, chunks) = machine.context(1, &[0]);
    for value in 1..3 {
        start(&machine, &service, &[0]);
        service.start().unwrap(); // a second start changes nothing
        machine.write(0, value);
        stop(&machine, &service, &[0]);
        service.stop().unwrap();
        let chunk = chunks.try_recv().unwrap();
        assert_eq!((chunk.dispatch, chunk.user_data, chunk.flags.end), (None, 42, true));
        assert_eq!(chunk.data[HEADER..], [value; 32]);
        assert!(chunks.try_recv().is_none());
    }
    assert_eq!(machine.submitted(0), [1, 1, 1, 1]);
}

#[test]
fn agents_start_at_the_same_time() {
    let machine = Machine::new(2, LONG);
    let (service, chunks) = machine.context(1, &[0, 1]);
    let starting = spawn(&service, DeviceTrace::start);
    // Both batches are in their queues before either retires.
    let completions = [machine.gpus[0].next_submission(), machine.gpus[1].next_submission()];
    completions.into_iter().for_each(|done| done.finish(Ok(())));
    starting.join().unwrap().unwrap();
    machine.write(0, 1);
    machine.write(1, 2);
    stop(&machine, &service, &[0, 1]);
    let mut content: Vec<_> = chunks.iter().take(2).map(|chunk| (chunk.agent, chunk.data[HEADER])).collect();
    content.sort();
    assert_eq!(content, [(AgentId(0), 1), (AgentId(1), 2)]);
}

#[test]
fn start_that_fails_on_one_agent_leaves_none_running() {
    let machine = Machine::new(2, LONG);
    let (service, _chunks) = machine.context(1, &[0, 1]);
    let (other, _others) = machine.context(2, &[0]);
    machine.gpus[1].refuse_submissions(true);
    let starting = spawn(&service, DeviceTrace::start);
    machine.gpus[0].retire(); // its start
    machine.gpus[0].retire(); // and its stop
    let error = starting.join().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "agent 1: submit returned 0x1008");
    assert_eq!((machine.submitted(0), machine.submitted(1)), (vec![1, 1], vec![]));
    start(&machine, &other, &[0]);
    stop(&machine, &other, &[0]);
}

#[test]
fn second_context_is_refused_on_a_common_agent_and_starts_nowhere() {
    let machine = Machine::new(2, LONG);
    let (first, _) = machine.context(1, &[1]);
    let (second, _) = machine.context(2, &[0, 1]);
    start(&machine, &first, &[1]);
    assert!(matches!(second.start(), Err(Error::Conflict(conflict)) if conflict.agent == AgentId(1)));
    assert_eq!(machine.submitted(0), []);
    stop(&machine, &first, &[1]);
    start(&machine, &second, &[0, 1]);
    stop(&machine, &second, &[0, 1]);
}

/// Every pair of sets of two agents, in both orders: refused if and only if they share an agent.
#[test]
fn contexts_conflict_exactly_where_their_agents_intersect() {
    const SETS: [&[usize]; 3] = [&[0], &[1], &[0, 1]];
    for first_set in SETS {
        for second_set in SETS {
            let machine = Machine::new(2, LONG);
            let (first, _a) = machine.context(1, first_set);
            let (second, _b) = machine.context(2, second_set);
            start(&machine, &first, first_set);
            match first_set.iter().find(|place| second_set.contains(place)) {
                Some(&shared) => match second.start() {
                    Err(Error::Conflict(conflict)) => {
                        assert_eq!(conflict.agent, AgentId(shared as u32), "{first_set:?} {second_set:?}");
                        assert_eq!((conflict.holder.0, conflict.contender.0), (1, 2));
                    }
                    other => unreachable!("{first_set:?} {second_set:?}: {other:?}"),
                },
                None => {
                    start(&machine, &second, second_set);
                    stop(&machine, &second, second_set);
                }
            }
            stop(&machine, &first, first_set);
        }
    }
}

#[test]
fn refused_start_keeps_the_claims_of_another_service_of_its_context() {
    let machine = Machine::new(2, LONG);
    let (running, _a) = machine.context(1, &[0]);
    let (rival, _b) = machine.context(2, &[1]);
    let (both, _c) = machine.context(1, &[0, 1]);
    start(&machine, &running, &[0]);
    start(&machine, &rival, &[1]);
    let held = machine.claims.holders(AgentId(0));
    assert!(matches!(both.start(), Err(Error::Conflict(conflict)) if conflict.agent == AgentId(1)));
    assert_eq!((held.len(), machine.claims.holders(AgentId(0))), (1, held));
    stop(&machine, &running, &[0]);
    assert_eq!(machine.claims.holders(AgentId(0)), []);
    stop(&machine, &rival, &[1]);
}

#[test]
fn code_object_is_in_the_trace_before_its_load_returns() {
    let machine = Machine::new(1, LONG);
    let (service, _chunks) = machine.context(1, &[0]);
    let code = LoadedCodeObject { id: CodeObjectId(1), agent: AgentId(0), base: 0x10_0000, size: 0x1000 };
    service.code_object_loaded(&code).unwrap();
    start(&machine, &service, &[0]);
    let later = LoadedCodeObject { id: CodeObjectId(2), ..code };
    let loading = {
        let service = Arc::clone(&service);
        thread::spawn(move || service.code_object_loaded(&later))
    };
    let marker = machine.gpus[0].next_submission();
    assert!(!loading.is_finished(), "the marker has not retired");
    marker.finish(Ok(()));
    loading.join().unwrap().unwrap();
    let unloading = {
        let service = Arc::clone(&service);
        thread::spawn(move || service.code_object_unloaded(&code))
    };
    machine.gpus[0].retire();
    unloading.join().unwrap().unwrap();
    stop(&machine, &service, &[0]);
    // Start with one marker, the load, the unload, stop; the next start names the second code object only.
    assert_eq!(machine.submitted(0), [2, 1, 1, 1]);
    start(&machine, &service, &[0]);
    stop(&machine, &service, &[0]);
    assert_eq!(machine.submitted(0)[4..], [2, 1]);
}

#[test]
fn hung_gpu_is_an_error_and_its_memory_is_kept() {
    let machine = Machine::new(1, Duration::from_millis(20));
    let (service, chunks) = machine.context(1, &[0]);
    let arena = Arc::clone(&machine.arenas[0]);
    start(&machine, &service, &[0]);
    let used = arena.allocations();
    assert!(matches!(service.stop(), Err(Error::AgentSilent { .. })));
    assert!(chunks.try_recv().unwrap().flags.lost);
    assert!(matches!(service.start(), Err(Error::AgentSilent { .. })));
    drop(service);
    assert_eq!(arena.allocations(), used);
}

#[test]
fn hung_start_keeps_its_memory_too() {
    let machine = Machine::new(1, Duration::from_millis(20));
    let (service, chunks) = machine.context(1, &[0]);
    let arena = Arc::clone(&machine.arenas[0]);
    assert!(matches!(service.start(), Err(Error::AgentSilent { .. })));
    assert!(chunks.try_recv().is_none(), "it never traced");
    let used = arena.allocations();
    assert!(used > 0);
    drop(service);
    assert_eq!(arena.allocations(), used);
}

#[test]
fn failed_starts_use_up_no_places() {
    let machine = Machine::new(1, LONG);
    let (service, _chunks) = machine.context(1, &[0]);
    machine.gpus[0].refuse_submissions(true);
    for _ in 0..5 {
        assert!(matches!(service.start(), Err(Error::Device { .. })));
    }
    machine.gpus[0].refuse_submissions(false);
    start(&machine, &service, &[0]);
    stop(&machine, &service, &[0]);
}
