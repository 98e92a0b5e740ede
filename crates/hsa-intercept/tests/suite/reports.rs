//! Scenarios of field reports that need no runtime.

use std::time::Duration;

use wavescope_core::{AgentId, Interception};
use wavescope_hsa_intercept::Engine;

use crate::common::*;

const LIMIT: Duration = Duration::from_secs(10);

// Field report G02: a collective over N GPUs whose kernels end only when all of them have begun. No GPU's kernel may wait for
// another's end, however many there are.
#[test]
fn kernels_of_many_agents_can_all_begin_before_any_ends() {
    for agents in 1..=16 {
        let device = FakeDevice::new();
        let ids: Vec<_> = (0..agents).map(AgentId).collect();
        let engine = Engine::new(device.clone(), ids.clone());
        let service = FakeService::new(|_| Plan::Count);
        let id = engine.subscribe(service.subscription(&[], true)).unwrap();
        let queues: Vec<_> = ids.iter().map(|agent| FakeQueue::new(&engine, &device, *agent)).collect();
        queues.iter().for_each(|queue| drop(queue.submit(&[kernel(1, 0)])));
        for queue in &queues {
            // The start packet; the next is the kernel, which would now run.
            assert_eq!(queue.run_at_most(1), 1, "{agents} agents");
        }
        run_all(&queues.iter().collect::<Vec<_>>());
        engine.drain(id, LIMIT).unwrap();
        assert_eq!(service.retired(), agents as usize);
        engine.shut_down(LIMIT).unwrap();
    }
}

// Field report G08: a batch of 4,096 with one doorbell gives exactly as many records, every time.
#[test]
fn a_batch_of_4096_gives_4096_records_a_hundred_times() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    let batch = vec![kernel(1, 0); 4096];
    for round in 1..=100 {
        queue.submit(&batch);
        run_all(&[&queue]);
        engine.drain(id, LIMIT).unwrap();
        assert_eq!(service.retired(), 4096 * round);
    }
    engine.shut_down(LIMIT).unwrap();
}

// Field report G03: a slow dispatch in every thousand; the others are published in time, and signals stay within what is in
// flight.
#[test]
fn slow_dispatches_neither_pile_up_signals_nor_hold_back_other_queues() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let (slow, quick) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], false)).unwrap();
    for round in 1..=200 {
        // Its kernel began and does not end.
        slow.submit(&[kernel(1, 0)]);
        slow.run_at_most(1);
        for _ in 0..10 {
            quick.submit(&[kernel(2, 0); 100]);
            run_all(&[&quick]);
            assert!(quick.handle.wait_empty(LIMIT), "held back by the slow one");
        }
        assert_eq!(service.retired(), 1001 * round - 1);
        run_all(&[&slow]);
        assert!(slow.handle.wait_empty(LIMIT));
    }
    engine.drain(id, LIMIT).unwrap();
    assert_eq!(service.retired(), 200_200);
    let bound = 1 + 100 + 2 * 2 + 1;
    assert!(
        device.peak() <= bound,
        "{} signals; carriers for what is in flight, two queues, the bell",
        device.peak()
    );
    engine.shut_down(LIMIT).unwrap();
}
