//! Traces in progress: who may trace, in which order. One test per rule, named after its fact.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "helpers of the tests")]

mod support;

use support::{AGENT, Event, MIB, Rig, packets, trace};
use wavescope_att_resources::{BufferId, Error, Lease, Message, QUEUE_PACKETS, Source};
use wavescope_core::{ContextId, LossReason, QueueId};

fn is_event_of_traces(event: &Event) -> bool {
    matches!(event, Event::Submit(_) | Event::Ended(..) | Event::Release(_))
}

/// What happened to traces so far.
fn traces(rig: &Rig) -> Vec<Event> {
    rig.flush();
    rig.gpu.log().into_iter().filter(is_event_of_traces).collect()
}

/// A rig whose context 1 may trace.
fn claimed() -> (Rig, Lease) {
    let rig = Rig::new();
    let lease = rig.lease(1);
    lease.claim().unwrap();
    (rig, lease)
}

#[test]
fn second_context_is_refused_at_once_and_named() {
    let rig = Rig::new();
    let (first, second) = (rig.lease(1), rig.lease(2));
    first.claim().unwrap();
    let error = second.claim().unwrap_err();
    assert_eq!(error.to_string(), "context 2 cannot trace agent 0: context 1 is tracing it");
    first.claim().unwrap();
    first.unhook().unwrap();
    second.claim().unwrap();
}

#[test]
fn claim_needs_a_lease() {
    let rig = Rig::new();
    let lease = rig.lease(1);
    rig.register(2, MIB, 1).unwrap();
    let context = ContextId(2);
    let claim = rig.address().ask(|reply| Message::Claim { context, reply }).wait().unwrap();
    assert!(matches!(claim, Err(Error::NotLeased { .. })));
    drop(lease);
}

#[test]
fn trace_without_a_claim_or_of_another_context_is_refused() {
    let rig = Rig::new();
    let (first, _second) = (rig.lease(1), rig.lease(2));
    let unclaimed = rig.begin_device(trace(1, 0)).wait().unwrap();
    assert!(matches!(unclaimed, Err(Error::NotClaimed { context: ContextId(1), agent: AGENT })));
    first.claim().unwrap();
    let foreign = rig.begin_device(trace(2, 0)).wait().unwrap();
    assert!(matches!(
        foreign,
        Err(Error::Busy { holder: ContextId(1), contender: ContextId(2), agent: AGENT })
    ));
    assert_eq!(traces(&rig), []);
}

#[test]
fn dispatch_is_read_after_it_retired_and_the_next_runs_after_it_was_copied() {
    let (rig, _lease) = claimed();
    let (one, two) = (trace(1, 0), trace(1, 1));
    rig.dispatch(one, 7);
    rig.dispatch(two, 7);
    assert_eq!(traces(&rig), []);
    rig.retired(one);
    assert_eq!(traces(&rig), [Event::Ended(one, Ok(()))]);
    rig.copied(one);
    assert_eq!(traces(&rig)[1..], [Event::Release(one)]);
    rig.retired(two);
    rig.copied(two);
    assert_eq!(traces(&rig)[2..], [Event::Ended(two, Ok(())), Event::Release(two)]);
}

#[test]
fn dispatches_may_retire_in_another_order_than_they_were_enqueued() {
    let (rig, _lease) = claimed();
    let (one, two) = (trace(1, 0), trace(1, 1));
    rig.dispatch(one, 7);
    rig.dispatch(two, 8);
    rig.retired(two);
    rig.copied(two);
    rig.retired(one);
    rig.copied(one);
    let ended: Vec<_> = traces(&rig).into_iter().filter(|event| matches!(event, Event::Ended(..))).collect();
    assert_eq!(ended, [Event::Ended(two, Ok(())), Event::Ended(one, Ok(()))]);
}

#[test]
fn dispatch_that_ran_before_the_slot_was_copied_is_lost_not_mixed() {
    let (rig, _lease) = claimed();
    let (one, two) = (trace(1, 0), trace(1, 1));
    rig.dispatch(one, 7);
    rig.dispatch(two, 8);
    rig.retired(one);
    rig.retired(two);
    let events = traces(&rig);
    assert_eq!(events[1..], [Event::Ended(two, Err(LossReason::Overwritten)), Event::Release(two)]);
    rig.copied(one);
}

#[test]
fn lost_dispatch_is_not_read_and_lets_the_next_run() {
    let (rig, lease) = claimed();
    let one = trace(1, 0);
    rig.dispatch(one, 7);
    rig.lost(one, LossReason::QueueDestroyed);
    assert_eq!(traces(&rig), [Event::Ended(one, Err(LossReason::QueueDestroyed)), Event::Release(one)]);
    // The queue is gone, so the memory is safe and the agent still usable.
    lease.claim().unwrap();
}

#[test]
fn events_of_unknown_traces_change_nothing() {
    let (rig, _lease) = claimed();
    let one = trace(1, 0);
    rig.retired(one);
    rig.copied(one);
    rig.dispatch(one, 7);
    rig.copied(one);
    assert_eq!(traces(&rig), []);
    rig.retired(one);
    rig.retired(one);
    rig.copied(one);
    rig.copied(one);
    assert_eq!(traces(&rig), [Event::Ended(one, Ok(())), Event::Release(one)]);
    assert!(matches!(rig.stop_device(one).wait(), Ok(Err(Error::UnknownTrace { .. }))));
}

#[test]
fn device_trace_starts_stops_and_is_copied_before_the_next_starts() {
    let (rig, _lease) = claimed();
    let (one, two) = (trace(1, 0), trace(1, 1));
    rig.started(one);
    let second = rig.begin_device(two); // nested: queued, not overlapping
    assert_eq!(traces(&rig), [Event::Submit(vec![1, 2])]);
    let stop = rig.stop_device(one);
    rig.gpu.retire();
    assert_eq!(traces(&rig)[1..], [Event::Submit(vec![3]), Event::Ended(one, Ok(()))]);
    rig.copied(one);
    stop.wait().unwrap().unwrap();
    assert_eq!(traces(&rig)[3..], [Event::Submit(vec![1, 2])]);
    rig.gpu.retire();
    second.wait().unwrap().unwrap();
    rig.finish_device(two);
}

#[test]
fn data_are_not_read_before_the_stop_packet_retired() {
    let (rig, _lease) = claimed();
    let one = trace(1, 0);
    rig.started(one);
    let _stop = rig.stop_device(one);
    let stopping = rig.gpu.next_submission();
    assert_eq!(traces(&rig)[1..], [Event::Submit(vec![3])]);
    stopping.finish(Ok(()));
    assert_eq!(traces(&rig)[2..], [Event::Ended(one, Ok(()))]);
    rig.copied(one);
}

#[test]
fn stop_while_starting_waits_for_the_start() {
    let (rig, _lease) = claimed();
    let one = trace(1, 0);
    let begin = rig.begin_device(one);
    let stop = rig.stop_device(one);
    assert_eq!(traces(&rig), [Event::Submit(vec![1, 2])]);
    rig.gpu.retire();
    begin.wait().unwrap().unwrap();
    rig.gpu.retire();
    rig.copied(one);
    stop.wait().unwrap().unwrap();
}

#[test]
fn trace_stopped_before_its_turn_never_starts() {
    let (rig, _lease) = claimed();
    rig.started(trace(1, 0));
    let begin = rig.begin_device(trace(1, 1));
    rig.stop_device(trace(1, 1)).wait().unwrap().unwrap();
    assert!(matches!(begin.wait().unwrap(), Err(Error::Cancelled { .. })));
    assert_eq!(traces(&rig), [Event::Submit(vec![1, 2])]);
    rig.finish_device(trace(1, 0));
}

#[test]
fn batch_larger_than_the_queue_is_refused() {
    let (rig, _lease) = claimed();
    let source = Source::Device { start: packets(&[0; QUEUE_PACKETS + 1]), stop: packets(&[1]) };
    let (address, id) = (rig.address(), trace(1, 0));
    let begin = address.ask(|reply| Message::Begin { trace: id, source, reply: Some(reply) }).wait().unwrap();
    assert_eq!(
        begin.unwrap_err().to_string(),
        "513 packets do not fit the submission queue of agent 0, which has 512"
    );
    assert_eq!(traces(&rig), []);
}

#[test]
fn batches_go_one_at_a_time_and_never_overrun_the_queue() {
    let (rig, _lease) = claimed();
    let id = trace(1, 0);
    rig.started(id);
    let address = rig.address();
    let inserts: Vec<_> = (0..4)
        .map(|_| {
            let packets = packets(&[9; QUEUE_PACKETS]);
            address.ask(|reply| Message::Insert { trace: id, packets, reply })
        })
        .collect();
    for (done, insert) in (1..).zip(inserts) {
        assert_eq!(traces(&rig).len(), 1 + done, "one batch in flight");
        rig.gpu.retire();
        insert.wait().unwrap().unwrap();
    }
    rig.finish_device(id);
}

#[test]
fn failing_start_gives_the_claim_back() {
    let rig = Rig::new();
    let (first, second) = (rig.lease(1), rig.lease(2));
    first.claim().unwrap();
    rig.gpu.refuse_submissions(true);
    let begin = rig.begin_device(trace(1, 0)).wait().unwrap();
    assert!(matches!(begin, Err(Error::Device { agent: AGENT, .. })));
    assert_eq!(traces(&rig), [], "nothing to deliver of a trace that never started");
    rig.gpu.refuse_submissions(false);
    second.claim().unwrap();
}

#[test]
fn handing_over_along_eight_contexts_keeps_the_slot_address() {
    let rig = Rig::new();
    let leases: Vec<_> = (0..8).map(|context| rig.lease(context)).collect();
    let mut addresses = Vec::new();
    for lease in &leases {
        let (context, id) = (lease.context().0, trace(lease.context().0, 0));
        lease.claim().unwrap();
        addresses.push(lease.resolve(BufferId::Output(0), MIB).unwrap());
        rig.dispatch(id, 1);
        rig.retired(id);
        rig.copied(id);
        rig.drained(context, 1);
        lease.unhook().unwrap();
    }
    assert!(addresses.iter().all(|address| *address == addresses[0]));
    assert_eq!(rig.gpu.output_allocations().len(), 1);
}

#[test]
fn claim_is_kept_until_the_stop_retired_and_the_data_were_copied() {
    let rig = Rig::new();
    let (first, second) = (rig.lease(1), rig.lease(2));
    first.claim().unwrap();
    let id = trace(1, 0);
    rig.dispatch(id, 1);
    let unhook = rig.unhook(1);
    assert!(second.claim().is_err(), "in flight");
    rig.retired(id);
    rig.drained(1, 1);
    assert!(second.claim().is_err(), "not copied");
    rig.copied(id);
    unhook.wait().unwrap().unwrap();
    second.claim().unwrap();
}

#[test]
fn unclaimed_dispatch_is_followed_all_the_same() {
    let rig = Rig::new();
    let lease = rig.lease(1);
    let id = trace(1, 0);
    // Its packets are on their way: forgetting it would free memory that the GPU will write.
    rig.notify(Message::Begin { trace: id, source: Source::Dispatch { queue: QueueId(1) }, reply: None });
    rig.lost(id, LossReason::QueueDestroyed);
    assert_eq!(traces(&rig).len(), 2);
    drop(lease);
}

#[test]
fn packets_for_a_trace_that_does_not_run_are_refused() {
    let (rig, _lease) = claimed();
    let (address, id) = (rig.address(), trace(1, 0));
    let insert =
        || address.ask(|reply| Message::Insert { trace: id, packets: packets(&[9]), reply }).wait().unwrap();
    assert!(matches!(insert(), Err(Error::UnknownTrace { .. })));
    rig.started(id);
    let stop = rig.stop_device(id);
    assert!(matches!(insert(), Err(Error::UnknownTrace { .. })), "behind its stop");
    rig.gpu.retire();
    rig.copied(id);
    stop.wait().unwrap().unwrap();
    assert!(matches!(insert(), Err(Error::UnknownTrace { .. })));
}
