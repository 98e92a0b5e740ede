//! Two contexts with buffers of different sizes trace one agent in turn: one queue of ours, one output slot.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "helpers of the tests")]

mod support;

use support::{Event, MIB, Rig, trace};
use wavescope_att_resources::{BufferId, Lease};

/// One traced dispatch, from claim to unhook.
fn trace_once(rig: &Rig, lease: &Lease, number: u32) {
    let id = trace(lease.context().0, number);
    lease.claim().unwrap();
    lease.resolve(BufferId::Output(0), lease.own().buffer_bytes).unwrap();
    rig.dispatch(id, 1);
    rig.retired(id);
    rig.copied(id);
    rig.drained(lease.context().0, 1);
    lease.unhook().unwrap();
}

#[test]
fn two_contexts_of_different_sizes_share_one_queue_and_one_slot() {
    let rig = Rig::new();
    rig.register(1, 512 * MIB, 1).unwrap();
    rig.register(2, 1024 * MIB, 1).unwrap();
    let (small, large) = (rig.acquire(1).unwrap(), rig.acquire(2).unwrap());
    for round in 0..2 {
        trace_once(&rig, &small, round);
        trace_once(&rig, &large, round);
    }
    assert_eq!((small.own().buffer_bytes, large.own().buffer_bytes), (512 * MIB, 1024 * MIB));
    drop((small, large));
    let report = rig.owner.shutdown().unwrap();
    assert_eq!((report.cut_short, report.leaked), (vec![], vec![]));
    let device_calls: Vec<_> = rig
        .gpu
        .log()
        .into_iter()
        .filter(|event| !matches!(event, Event::Ended(..) | Event::Release(_)))
        .collect();
    let slot = BufferId::Output(0);
    assert_eq!(
        device_calls,
        [
            Event::CreateQueue(512),
            Event::Allocate { buffer: slot, bytes: 1024 * MIB + 0x2000 },
            Event::DestroyQueue,
            Event::Free(slot),
        ]
    );
    assert_eq!(rig.gpu.count(|event| matches!(event, Event::Ended(_, Ok(())))), 4);
}
