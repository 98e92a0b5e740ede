//! How contexts leave and how everything ends. One test per rule, named after its fact.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "helpers of the tests")]

mod support;

use std::time::Duration;

use support::{Event, MIB, Rig, trace};
use wavescope_att_resources::{BufferId, Error, Lease, Message, ShutdownReport};
use wavescope_core::actor::Pending;
use wavescope_core::{ContextId, LossReason};

const SLOT0: BufferId = BufferId::Output(0);
/// Time out at once: the scripted GPU answers only when it is told to.
const IMPATIENT: Duration = Duration::from_millis(20);

fn claimed(rig: &Rig, context: u64) -> Lease {
    let lease = rig.lease(context);
    lease.claim().unwrap();
    lease.resolve(SLOT0, MIB).unwrap();
    lease
}

fn shutdown(rig: &Rig) -> Pending<Result<ShutdownReport, Error>> {
    rig.address().ask(|reply| Message::Shutdown { reply })
}

fn is_release(event: &Event) -> bool {
    matches!(event, Event::DestroyQueue | Event::Free(_) | Event::Leak(_))
}

#[test]
fn unhook_waits_for_every_dispatch_on_every_queue() {
    let rig = Rig::new();
    let _lease = claimed(&rig, 1);
    let (one, two) = (trace(1, 0), trace(1, 1));
    rig.dispatch(one, 7);
    rig.dispatch(two, 8);
    let mut unhook = rig.unhook(1);
    let mut still_waits = |step: &str| {
        rig.flush();
        assert!(unhook.try_take().is_none(), "answered after: {step}");
    };
    still_waits("unhook");
    rig.retired(one);
    rig.copied(one);
    rig.drained(1, 7);
    still_waits("first queue drained");
    rig.retired(two);
    still_waits("second retired");
    rig.copied(two);
    still_waits("second copied");
    rig.drained(1, 8);
    unhook.wait().unwrap().unwrap();
}

#[test]
fn queue_is_not_drained_while_a_dispatch_is_in_flight_on_it() {
    let rig = Rig::new();
    let _lease = claimed(&rig, 1);
    let one = trace(1, 0);
    rig.dispatch(one, 7);
    let mut unhook = rig.unhook(1);
    rig.drained(1, 7); // not true: counts for nothing
    rig.retired(one);
    rig.copied(one);
    rig.flush();
    assert!(unhook.try_take().is_none());
    rig.drained(1, 7);
    unhook.wait().unwrap().unwrap();
}

#[test]
fn unhook_of_an_idle_context_and_a_second_unhook_are_answered() {
    let rig = Rig::new();
    let lease = claimed(&rig, 1);
    let (first, second) = (rig.unhook(1), rig.unhook(1));
    first.wait().unwrap().unwrap();
    second.wait().unwrap().unwrap();
    lease.claim().unwrap();
}

#[test]
fn unhook_stops_the_contexts_device_trace() {
    let rig = Rig::new();
    let _lease = claimed(&rig, 1);
    rig.started(trace(1, 0));
    let unhook = rig.unhook(1);
    rig.gpu.retire();
    rig.copied(trace(1, 0));
    unhook.wait().unwrap().unwrap();
    assert_eq!(rig.gpu.count(|event| *event == Event::Submit(vec![3])), 1);
}

#[test]
fn unhook_that_does_not_drain_times_out_and_keeps_everything() {
    let rig = Rig::with_patience(IMPATIENT);
    let lease = claimed(&rig, 1);
    let other = rig.lease(2);
    let one = trace(1, 0);
    rig.dispatch(one, 7);
    let error = lease.unhook().unwrap_err();
    assert_eq!(error.to_string(), "1 traces of context 1 on agent 0 did not end within 20ms");
    assert!(matches!(other.claim(), Err(Error::Busy { .. })), "the claim stays");
    // It was only slow: its data are delivered, and then the unhook succeeds.
    rig.retired(one);
    rig.copied(one);
    rig.drained(1, 7);
    lease.unhook().unwrap();
    assert_eq!(rig.gpu.count(|event| *event == Event::Ended(one, Ok(()))), 1);
}

#[test]
fn trace_in_flight_keeps_its_lease() {
    let rig = Rig::new();
    let lease = claimed(&rig, 1);
    let one = trace(1, 0);
    rig.dispatch(one, 7);
    drop(lease);
    let shut = shutdown(&rig);
    rig.flush();
    assert_eq!(rig.gpu.count(is_release), 0);
    rig.retired(one);
    rig.copied(one);
    let report = shut.wait().unwrap().unwrap();
    assert_eq!(report, ShutdownReport { cut_short: vec![one], leaked: vec![] });
    assert_eq!(rig.gpu.count(|event| *event == Event::Ended(one, Ok(()))), 1, "and its data");
}

#[test]
fn shutdown_with_leases_out_is_refused_and_can_be_repeated() {
    let rig = Rig::new();
    let (first, second) = (claimed(&rig, 1), rig.lease(2));
    let error = rig.owner.shutdown().unwrap_err();
    assert_eq!(error.to_string(), "agent 0 is still leased by context 1, context 2");
    assert_eq!(rig.gpu.count(is_release), 0);
    assert!(matches!(first.claim(), Err(Error::ShutDown(_))), "nothing new is admitted");
    drop((first, second));
    rig.owner.shutdown().unwrap();
    assert_eq!(rig.gpu.log().split_off(2), [Event::DestroyQueue, Event::Free(SLOT0)]);
    assert_eq!(rig.owner.shutdown().unwrap(), ShutdownReport::default());
}

#[test]
fn shutdown_stops_the_one_active_trace_of_many_contexts_and_releases_once() {
    let rig = Rig::new();
    let mut leases: Vec<_> = (0..10).map(|context| rig.lease(context)).collect();
    leases.push(claimed(&rig, 10));
    let active = trace(10, 0);
    rig.started(active);
    drop(leases);
    let shut = shutdown(&rig);
    rig.gpu.retire();
    rig.gpu.wait_for(1, |event| matches!(event, Event::Ended(..)));
    assert_eq!(rig.gpu.count(is_release), 0, "not before the data were copied");
    rig.copied(active);
    let report = shut.wait().unwrap().unwrap();
    assert_eq!(report.cut_short, [active]);
    assert_eq!(rig.gpu.count(|event| *event == Event::Submit(vec![3])), 1);
    assert_eq!(rig.gpu.log().split_off(5), [Event::DestroyQueue, Event::Free(SLOT0)]);
}

#[test]
fn shutdown_cancels_what_has_not_started() {
    let rig = Rig::new();
    let lease = claimed(&rig, 1);
    rig.started(trace(1, 0));
    let waiting = rig.begin_device(trace(1, 1));
    drop(lease);
    let shut = shutdown(&rig);
    assert!(matches!(waiting.wait().unwrap(), Err(Error::Cancelled { .. })));
    rig.gpu.retire();
    rig.copied(trace(1, 0));
    assert_eq!(shut.wait().unwrap().unwrap().cut_short, [trace(1, 0), trace(1, 1)]);
}

#[test]
fn silent_gpu_is_an_error_within_the_time_allowed() {
    let rig = Rig::with_patience(IMPATIENT);
    let lease = claimed(&rig, 1);
    let begin = rig.begin_device(trace(1, 0)).wait().unwrap();
    assert_eq!(begin.unwrap_err().to_string(), "agent 0 did not answer within 20ms");
    assert!(matches!(lease.claim(), Err(Error::AgentSilent { .. })), "nothing more starts on it");
    assert_eq!(rig.gpu.count(is_release), 0);
}

#[test]
fn nothing_leaks_once_the_hung_queue_is_destroyed() {
    let rig = Rig::with_patience(IMPATIENT);
    let lease = claimed(&rig, 1);
    rig.started(trace(1, 0));
    let stop = rig.stop_device(trace(1, 0)).wait().unwrap();
    assert!(matches!(stop, Err(Error::AgentSilent { .. })));
    assert_eq!(rig.gpu.count(|event| matches!(event, Event::Ended(_, Err(LossReason::TimedOut)))), 1);
    drop(lease);
    assert_eq!(rig.owner.shutdown().unwrap().leaked, []);
    let end = rig.gpu.log().split_off(5);
    assert_eq!(end, [Event::DestroyQueue, Event::Free(SLOT0)], "in this order");
}

#[test]
fn hung_application_queue_leaks_the_slot_on_purpose_and_ends() {
    let rig = Rig::with_patience(IMPATIENT);
    let lease = claimed(&rig, 1);
    let one = trace(1, 0);
    rig.dispatch(one, 7);
    drop(lease);
    let report = rig.owner.shutdown().unwrap();
    assert_eq!(report, ShutdownReport { cut_short: vec![one], leaked: vec![SLOT0] });
    assert_eq!(rig.gpu.count(|event| matches!(event, Event::Free(_))), 0);
    assert_eq!(rig.gpu.count(|event| *event == Event::Leak(SLOT0)), 1);
}

#[test]
fn dispatch_that_interception_gave_up_leaks_the_slot() {
    let rig = Rig::new();
    let lease = claimed(&rig, 1);
    rig.dispatch(trace(1, 0), 7);
    rig.lost(trace(1, 0), LossReason::TimedOut);
    assert!(matches!(lease.claim(), Err(Error::AgentSilent { .. })));
    drop(lease);
    assert_eq!(rig.owner.shutdown().unwrap().leaked, [SLOT0]);
}

#[test]
fn late_answer_of_a_silent_gpu_is_ignored() {
    let rig = Rig::with_patience(IMPATIENT);
    let lease = claimed(&rig, 1);
    let begin = rig.begin_device(trace(1, 0));
    let completion = rig.gpu.next_submission();
    assert!(begin.wait().unwrap().is_err());
    completion.finish(Ok(()));
    rig.flush();
    assert!(lease.claim().is_err());
}

#[test]
fn completion_that_is_dropped_is_an_error_not_a_hang() {
    let rig = Rig::new();
    let lease = claimed(&rig, 1);
    let begin = rig.begin_device(trace(1, 0));
    let second = rig.begin_device(trace(1, 1));
    drop(rig.gpu.next_submission());
    assert!(matches!(begin.wait().unwrap(), Err(Error::Device { .. })));
    // Nobody knows whether it runs: nothing else may use the slot.
    assert!(matches!(second.wait().unwrap(), Err(Error::Cancelled { .. })));
    assert!(matches!(lease.claim(), Err(Error::AgentSilent { .. })));
}

#[test]
fn trace_that_cannot_be_stopped_makes_the_agent_unusable() {
    let rig = Rig::new();
    let lease = claimed(&rig, 1);
    rig.started(trace(1, 0));
    rig.gpu.refuse_submissions(true);
    let stop = rig.stop_device(trace(1, 0)).wait().unwrap();
    assert!(matches!(stop, Err(Error::Device { .. })));
    assert!(matches!(lease.claim(), Err(Error::AgentSilent { .. })));
}

#[test]
fn unhook_of_another_context_leaves_the_claim_alone() {
    let rig = Rig::new();
    let (_first, second) = (claimed(&rig, 1), rig.lease(2));
    second.unhook().unwrap();
    assert!(matches!(second.claim(), Err(Error::Busy { holder: ContextId(1), .. })));
}

#[test]
fn lease_given_back_too_often_changes_nothing() {
    let rig = Rig::new();
    let first = claimed(&rig, 1);
    let context = ContextId(2);
    rig.register(2, MIB, 1).unwrap();
    rig.address().send(Message::LeaseDropped { context }).unwrap();
    rig.address().send(Message::LeaseDropped { context: ContextId(3) }).unwrap();
    let second = rig.acquire(2).unwrap();
    drop(first);
    assert!(
        matches!(rig.owner.shutdown(), Err(Error::StillLeased { contexts, .. }) if contexts == [context])
    );
    drop(second);
    rig.owner.shutdown().unwrap();
}

#[test]
fn restart_right_after_unhook_works() {
    let rig = Rig::new();
    let lease = claimed(&rig, 1);
    for number in 0..3 {
        let id = trace(1, number);
        lease.claim().unwrap();
        rig.dispatch(id, 7);
        rig.retired(id);
        rig.copied(id);
        rig.drained(1, 7);
        lease.unhook().unwrap();
    }
    assert_eq!(rig.gpu.count(|event| matches!(event, Event::Ended(_, Ok(())))), 3);
}
