//! Services restricted to an agent leave the others alone, and contexts exclude each other only where they meet.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;
use std::time::Duration;

use wavescope_att_resources::{AgentOwner, Decision, Error, HsaDevice, HsaSlots, Limits};
use wavescope_tests::{Bed, What, count, trace, waves};
use wavescope_workload::{Batch, Launch, kernels};

const PATIENCE: Duration = Duration::from_secs(10);
const GRID: [u32; 3] = [1000, 3, 1];
const GROUP: [u16; 3] = [128, 2, 1];

/// Runs `times` dispatches on one GPU and waits for them.
fn run(bed: &Bed, gpu: u32, times: usize) {
    let gpu = bed.gpu(gpu);
    let module = bed.application.load(gpu, kernels::vectors(gpu.target()).unwrap()).unwrap();
    let queue = bed.application.queue(gpu, 64).unwrap();
    let mut batch = Batch::new();
    for _ in 0..times {
        batch.launch(Launch::new(module.kernel("empty").unwrap(), GRID, GROUP));
    }
    queue.submit(&batch).unwrap().wait(PATIENCE).unwrap();
}

fn owner(bed: &Bed, gpu: u32) -> (Arc<AgentOwner>, Arc<HsaSlots>) {
    let agent = bed.agent(gpu).id;
    let device = HsaDevice::new(bed.interceptor.hsa().clone(), agent);
    let slots = device.slots();
    let limits = Limits { patience: PATIENCE, traces: 8 };
    (AgentOwner::new(agent, Box::new(device), limits), slots)
}

fn what(context: u64) -> What {
    What { context, buffer_bytes: 1 << 20, se_mask: 1, target_cu: 0 }
}

#[test]
fn counting_one_agent_sees_nothing_of_the_other() {
    let bed = Bed::new("gfx942", 2);
    let counted = count(&bed, 1, bed.agent(0), &["SQ_WAVES"]);
    counted.service.start().unwrap();
    run(&bed, 1, 3);
    run(&bed, 0, 2);
    counted.service.stop(PATIENCE).unwrap();
    let records: Vec<_> = std::iter::from_fn(|| counted.records.try_recv()).collect();
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record.dispatch.agent == bed.agent(0).id));
    assert_eq!(counted.service.summary().seen, 2);
    // The other GPU did run them.
    assert_eq!(bed.placement.dispatches(1).len(), 3);
}

#[test]
fn contexts_on_disjoint_agents_count_at_once_and_on_the_same_agent_conflict() {
    let bed = Bed::new("gfx942", 2);
    let counted = [count(&bed, 1, bed.agent(0), &["SQ_WAVES"]), count(&bed, 2, bed.agent(1), &["SQ_WAVES"])];
    counted.iter().for_each(|counted| counted.service.start().unwrap());
    let third = count(&bed, 3, bed.agent(1), &["SQ_WAVES"]);
    let refusal = third.service.start().unwrap_err().to_string();
    for word in ["context 3", "context 2", "agent 1"] {
        assert!(refusal.contains(word), "{refusal}");
    }
    std::thread::scope(|scope| {
        for gpu in 0..2 {
            let bed = &bed;
            scope.spawn(move || run(bed, gpu, 20));
        }
    });
    for counted in &counted {
        counted.service.stop(PATIENCE).unwrap();
        let records: Vec<_> = std::iter::from_fn(|| counted.records.try_recv()).collect();
        assert_eq!(records.len(), 20);
        for dispatch in records {
            let sum: f64 = dispatch.records.iter().map(|record| record.value).sum();
            assert_eq!(sum, waves(GRID, GROUP, 64) as f64);
        }
    }
    // The agent is free again.
    third.service.start().unwrap();
    third.service.stop(PATIENCE).unwrap();
}

#[test]
fn second_tracing_context_is_refused_by_name_until_the_first_stops() {
    let bed = Bed::new("gfx942", 1);
    let agent = bed.agent(0);
    let (owner, slots) = owner(&bed, 0);
    let decide = || Arc::new(|_: &_| Decision::StartAndStop { user_data: 0 });
    let first = trace(&bed, agent, &owner, &slots, what(1), decide()).unwrap();
    let second = trace(&bed, agent, &owner, &slots, what(2), decide()).unwrap();
    first.service.start().unwrap();
    let refusal = second.service.start().unwrap_err();
    assert!(matches!(refusal, Error::Conflict { .. } | Error::Busy { .. }), "{refusal:?}");
    for word in ["context 1", "context 2", "agent 0"] {
        assert!(refusal.to_string().contains(word), "{refusal}");
    }
    run(&bed, 0, 1);
    first.service.stop(PATIENCE).unwrap();
    second.service.start().unwrap();
    run(&bed, 0, 1);
    second.service.stop(PATIENCE).unwrap();
    assert_eq!(first.service.summary().delivered, 1);
    assert_eq!(second.service.summary().delivered, 1);
}

#[test]
fn counting_and_tracing_share_a_dispatch() {
    let bed = Bed::new("gfx942", 1);
    let agent = bed.agent(0);
    let (owner, slots) = owner(&bed, 0);
    let decide = Arc::new(|_: &_| Decision::StartAndStop { user_data: 0 });
    let traces = trace(&bed, agent, &owner, &slots, what(1), decide).unwrap();
    let counted = count(&bed, 2, agent, &["SQ_WAVES", "GRBM_GUI_ACTIVE"]);
    counted.service.start().unwrap();
    traces.service.start().unwrap();
    run(&bed, 0, 5);
    traces.service.stop(PATIENCE).unwrap();
    counted.service.stop(PATIENCE).unwrap();
    assert_eq!(traces.service.summary().delivered, 5);
    let records: Vec<_> = std::iter::from_fn(|| counted.records.try_recv()).collect();
    assert_eq!(records.len(), 5);
}
