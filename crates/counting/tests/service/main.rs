//! The service against an interception that the test plays: what queues and GPUs rarely do, and clients do wrong.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "helpers of the tests")]

mod stage;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use wavescope_aql_profile::Builtin;
use wavescope_core::{
    ClaimTable, Company, ContextId, DispatchCounters, DispatchEvent, DispatchTimes, Grant, InterceptionError,
    LossReason, Outcome, Overflow, Records, record_stream,
};
use wavescope_counting::{Delivery, DispatchCounting, Error};

use stage::{Stage, Watch, Watched, counting, counting_of, end, launch, retire};

const LIMIT: Duration = Duration::from_secs(10);

fn streaming(
    stage: &Arc<Stage>,
    watch: &Arc<Watch>,
    pool: u32,
) -> (DispatchCounting, Records<DispatchCounters>) {
    let (sink, records) = record_stream(1 << 16, Overflow::DropNewest);
    (counting(stage, &Watched(Arc::clone(watch)), pool, Delivery::Stream(sink)), records)
}

// A grant that returns before `subscribe` told its id belongs to the new subscription, not to the one before it.
#[test]
fn grants_returned_during_a_restart_go_to_the_new_subscription() {
    let stage = Arc::new(Stage::default());
    let (counting, records) = streaming(&stage, &Arc::default(), 1);
    counting.start().unwrap();
    let first = launch(&*stage.subscriber(), 1).unwrap();
    assert_eq!(first.grant, Grant::UntilReturned);
    retire(&*stage.subscriber(), &first);
    counting.stop(LIMIT).unwrap();
    let delivered = Mutex::new(records);
    let second = Arc::new(Mutex::new(None));
    let inside = Arc::clone(&second);
    stage.during_subscribe(move |subscriber| {
        let launched = launch(subscriber, 2).unwrap();
        retire(subscriber, &launched);
        let records = delivered.lock().unwrap();
        assert_eq!(records.recv_timeout(LIMIT).unwrap().dispatch.id.0, 1);
        assert_eq!(records.recv_timeout(LIMIT).unwrap().dispatch.id.0, 2);
        *inside.lock().unwrap() = Some(launched.token);
    });
    counting.start().unwrap();
    let second = second.lock().unwrap().unwrap();
    assert_eq!(stage.wait_returned(2), [(1, first.token), (2, second)]);
}

#[test]
fn a_panicking_callback_costs_its_own_dispatch_only() {
    let stage = Arc::new(Stage::default());
    let (sent, delivered) = mpsc::channel();
    let callback = move |counters: DispatchCounters| {
        assert_ne!(counters.dispatch.id.0 % 2, 1, "on purpose");
        sent.send(counters.dispatch.id.0).unwrap();
    };
    let counting = counting(&stage, &Builtin, 1, Delivery::Callback(Box::new(callback)));
    counting.start().unwrap();
    let subscriber = stage.subscriber();
    let launched: Vec<_> = (1..=6).map(|id| launch(&*subscriber, id).unwrap()).collect();
    for one in &launched {
        retire(&*subscriber, one);
    }
    let held = launched.iter().filter(|one| one.grant == Grant::UntilReturned).map(|one| (1, one.token));
    assert_eq!(stage.wait_returned(6), held.collect::<Vec<_>>());
    counting.stop(LIMIT).unwrap();
    assert_eq!(delivered.try_iter().collect::<Vec<_>>(), [2, 4, 6]);
}

// A record says what may have run beside its dispatch.
#[test]
fn records_are_marked_with_what_ran_beside_their_dispatch() {
    let stage = Arc::new(Stage::default());
    let (counting, records) = streaming(&stage, &Arc::default(), 2);
    counting.start().unwrap();
    let alone = Company::default();
    let marks = [alone, Company { unseen: true, ..alone }, Company { overrun: true, ..alone }];
    for (id, company) in (1..).zip(marks) {
        let launched = launch(&*stage.subscriber(), id).unwrap();
        let outcome = Outcome::Completed(DispatchTimes::default());
        stage.subscriber().publish(DispatchEvent::Retired { token: launched.token, outcome, company });
        assert_eq!(records.recv_timeout(LIMIT).unwrap().company, company, "dispatch {id}");
    }
    counting.stop(LIMIT).unwrap();
}

// Dropping an active service stops it: the claim is free, and everything that retired was delivered before.
#[test]
fn a_dropped_service_stops_first() {
    let stage = Arc::new(Stage::default());
    let (counting, records) = streaming(&stage, &Arc::default(), 4);
    counting.start().unwrap();
    let launched: Vec<_> = (1..=3).map(|id| launch(&*stage.subscriber(), id).unwrap()).collect();
    let subscriber = stage.subscriber();
    let retiring = Arc::clone(&subscriber);
    stage.during_drain(move || launched.iter().for_each(|one| retire(&*retiring, one)));
    drop(counting);
    assert_eq!(stage.unsubscribed(), 1);
    let delivered: Vec<_> = std::iter::from_fn(|| records.try_recv()).map(|one| one.dispatch.id.0).collect();
    assert_eq!(delivered, [1, 2, 3]);
    assert!(launch(&*subscriber, 4).is_none(), "counted by nobody");
}

// A client's function that does not return keeps the thread, not whoever drops the service.
#[test]
fn a_dropped_service_does_not_wait_for_its_client_for_ever() {
    let stage = Arc::new(Stage::default());
    let (entered, inside) = mpsc::channel();
    let (_keep, never) = mpsc::channel::<()>();
    let callback = move |_| {
        entered.send(()).unwrap();
        let _ = never.recv();
    };
    let counting = counting(&stage, &Builtin, 1, Delivery::Callback(Box::new(callback)));
    counting.start().unwrap();
    let held = launch(&*stage.subscriber(), 1).unwrap();
    let stuck = launch(&*stage.subscriber(), 2).unwrap();
    retire(&*stage.subscriber(), &held);
    inside.recv_timeout(LIMIT).unwrap();
    let start = Instant::now();
    drop(counting);
    assert!(start.elapsed() < 3 * LIMIT, "{:?}", start.elapsed());
    // The agent goes on: the grant of a dispatch that nobody will read came back.
    assert!(stage.returned().contains(&(1, stuck.token)), "{:?}", stage.returned());
}

// The service is dropped while interception still has its dispatches: the agent must not wait for their grants.
#[test]
fn grants_return_though_the_service_is_gone() {
    let stage = Arc::new(Stage::default());
    let (counting, _records) = streaming(&stage, &Arc::default(), 1);
    counting.start().unwrap();
    let subscriber = stage.subscriber();
    let running = launch(&*subscriber, 1).unwrap();
    let waiting = launch(&*subscriber, 2).unwrap();
    drop(counting);
    retire(&*subscriber, &running);
    retire(&*subscriber, &waiting);
    let returned = stage.wait_returned(2);
    for one in [&running, &waiting] {
        assert!(returned.contains(&(1, one.token)), "{returned:?} lacks {}", one.token);
    }
    assert!(launch(&*subscriber, 3).is_none(), "nobody is there to read it");
}

#[test]
fn a_failed_read_is_said_to_be_lost_and_its_output_is_cleared() {
    let stage = Arc::new(Stage::default());
    let watch = Arc::new(Watch::default());
    let (counting, records) = streaming(&stage, &watch, 1);
    counting.start().unwrap();
    let subscriber = stage.subscriber();
    watch.fail_reads.store(true, Ordering::Relaxed);
    retire(&*subscriber, &launch(&*subscriber, 1).unwrap());
    counting.flush(LIMIT).unwrap();
    let counted = records.try_recv().unwrap();
    assert_eq!((counted.records.len(), counted.lost), (0, Some(LossReason::Unreadable)));
    assert_eq!(watch.cleared.load(Ordering::Relaxed), 1);
    assert_eq!(counting.summary().lost, 1);
    watch.fail_reads.store(false, Ordering::Relaxed);
    retire(&*subscriber, &launch(&*subscriber, 2).unwrap());
    counting.flush(LIMIT).unwrap();
    let counted = records.try_recv().unwrap();
    assert_eq!(counted.lost, None);
    assert!(!counted.records.is_empty());
}

// What a dispatch wrote before its queue was destroyed must not add to the next one's counts.
#[test]
fn the_instance_of_a_destroyed_queue_is_cleared_before_it_is_lent_again() {
    let stage = Arc::new(Stage::default());
    let watch = Arc::new(Watch::default());
    let (counting, records) = streaming(&stage, &watch, 1);
    counting.start().unwrap();
    let subscriber = stage.subscriber();
    let launched = launch(&*subscriber, 1).unwrap();
    end(&*subscriber, &launched, Outcome::Lost(LossReason::QueueDestroyed));
    counting.flush(LIMIT).unwrap();
    assert_eq!(records.try_recv().unwrap().lost, Some(LossReason::QueueDestroyed));
    assert_eq!(watch.cleared.load(Ordering::Relaxed), 1);
}

#[test]
fn instances_of_a_pool_share_their_start_and_stop_commands() {
    let stage = Arc::new(Stage::default());
    let watch = Arc::new(Watch::default());
    let (counting, _records) = streaming(&stage, &watch, 4);
    counting.start().unwrap();
    let subscriber = stage.subscriber();
    let launched: Vec<_> = (1..=4).map(|id| launch(&*subscriber, id).unwrap()).collect();
    assert_eq!((watch.made.load(Ordering::Relaxed), watch.siblings.load(Ordering::Relaxed)), (1, 3));
    // Equal packets name equal command buffers.
    for one in &launched[1..] {
        assert_eq!(one.before.last(), launched[0].before.last());
    }
}

#[test]
fn one_limit_covers_all_waits_of_a_stop() {
    const TIMEOUT: Duration = Duration::from_secs(2);
    let stage = Arc::new(Stage::default());
    let (release, blocked) = mpsc::channel::<()>();
    let callback = move |_| while blocked.recv().is_ok() {};
    let counting = counting(&stage, &Builtin, 1, Delivery::Callback(Box::new(callback)));
    counting.start().unwrap();
    let subscriber = stage.subscriber();
    retire(&*subscriber, &launch(&*subscriber, 1).unwrap());
    stage.drains_are_slow.store(true, Ordering::Relaxed);
    let begin = Instant::now();
    counting.stop(TIMEOUT).unwrap_err();
    let took = begin.elapsed();
    drop(release);
    assert!(took < TIMEOUT + TIMEOUT / 2, "{took:?}");
}

// A callback that does not return is no dispatch that did not retire, and the service says so. It holds what it has until a
// later stop finds the callback gone.
#[test]
fn a_stop_that_finds_a_callback_busy_names_it_and_can_be_repeated() {
    let stage = Arc::new(Stage::default());
    let (first, records) = streaming(&stage, &Arc::default(), 1);
    first.start().unwrap();
    let launched = launch(&*stage.subscriber(), 1).unwrap();
    stage.set_inside_callback(true);
    let error = first.stop(LIMIT).unwrap_err();
    assert!(matches!(error, Error::Interception(InterceptionError::CallbackBusy { .. })), "{error:?}");
    assert_eq!(
        error.to_string(),
        "a callback of subscription 1 for queue 7 on agent 0 did not return within 10s"
    );
    assert!(!first.is_active(), "nobody is asked any more");
    assert!(
        matches!(first.start(), Err(Error::Busy { in_flight: 2, .. })),
        "the one in hand, and the one in flight"
    );
    assert_eq!(stage.unsubscribed(), 0, "kernels must not overlap yet");
    retire(&*stage.subscriber(), &launched);
    stage.set_inside_callback(false);
    first.stop(LIMIT).unwrap();
    assert_eq!((stage.unsubscribed(), records.try_recv().unwrap().dispatch.id.0), (1, 1));
    first.start().unwrap();
}

// It never returns: whoever drops the service is not kept, and other contexts may count.
#[test]
fn a_service_dropped_inside_a_callback_gives_its_agents_back() {
    let stage = Arc::new(Stage::default());
    let claims = Arc::new(ClaimTable::new());
    let service = |context| {
        let (sink, _) = record_stream(16, Overflow::DropNewest);
        counting_of(ContextId(context), &stage, &Builtin, 1, Delivery::Stream(sink), &claims)
    };
    let (first, second) = (service(1), service(2));
    first.start().unwrap();
    stage.set_inside_callback(true);
    first.stop(LIMIT).unwrap_err();
    assert!(matches!(second.start(), Err(Error::Conflict(_))), "the callback may still answer");
    drop(first);
    assert_eq!(stage.unsubscribed(), 1);
    second.start().unwrap();
    stage.set_inside_callback(false);
}

// More requests than the actor has places for: the wait for a place counts too.
#[test]
fn a_flush_ends_in_time_though_all_request_places_are_taken() {
    let stage = Arc::new(Stage::default());
    let (release, blocked) = mpsc::channel::<()>();
    let callback = move |_| while blocked.recv().is_ok() {};
    let counting = Arc::new(counting(&stage, &Builtin, 1, Delivery::Callback(Box::new(callback))));
    counting.start().unwrap();
    let subscriber = stage.subscriber();
    retire(&*subscriber, &launch(&*subscriber, 1).unwrap());
    let (done, ended) = mpsc::channel();
    let flusher = Arc::clone(&counting);
    let thread = std::thread::spawn(move || {
        for _ in 0..20 {
            flusher.flush(Duration::from_millis(1)).unwrap_err();
        }
        done.send(()).unwrap();
    });
    let in_time = ended.recv_timeout(Duration::from_secs(5));
    drop(release);
    thread.join().unwrap();
    assert_eq!(in_time, Ok(()));
}

#[test]
fn the_longest_limit_is_no_limit() {
    let stage = Arc::new(Stage::default());
    let (counting, records) = streaming(&stage, &Arc::default(), 1);
    counting.start().unwrap();
    retire(&*stage.subscriber(), &launch(&*stage.subscriber(), 1).unwrap());
    counting.stop(Duration::MAX).unwrap();
    assert!(records.try_recv().is_some());
}

// Thousands of dispatches may retire while a client is slow; none is dropped, and all keep their order.
#[test]
fn a_slow_client_loses_nothing_of_a_full_ring() {
    const DISPATCHES: u64 = 16_384;
    let stage = Arc::new(Stage::default());
    let (release, blocked) = mpsc::channel::<()>();
    let (sent, delivered) = mpsc::channel();
    let callback = move |counters: DispatchCounters| {
        while blocked.recv().is_ok() {}
        sent.send(counters.dispatch.id.0).unwrap();
    };
    let counting = counting(&stage, &Builtin, 8, Delivery::Callback(Box::new(callback)));
    counting.start().unwrap();
    let subscriber = stage.subscriber();
    let launched: Vec<_> = (1..=DISPATCHES).map(|id| launch(&*subscriber, id).unwrap()).collect();
    for one in &launched {
        retire(&*subscriber, one);
    }
    drop(release);
    counting.stop(LIMIT).unwrap();
    assert!(delivered.try_iter().eq(1..=DISPATCHES));
}

/// Resident memory of this process, bytes.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

// A context for each of many kernels is usual; what a service may need at most must not be there from the start.
#[cfg(target_os = "linux")]
#[test]
fn an_idle_service_takes_little_memory() {
    const SERVICES: usize = 32;
    let stage = Arc::new(Stage::default());
    let before = resident();
    let services: Vec<_> = (0..SERVICES).map(|_| streaming(&stage, &Arc::default(), 4)).collect();
    let each = resident().saturating_sub(before) / SERVICES;
    println!("{} KiB resident for each service", each / 1024);
    assert!(each < 256 * 1024, "{each} bytes");
    drop(services);
}

// A flush on one thread while another one is inside stop's drain.
#[test]
fn a_flush_during_a_stop_waits_for_what_was_enqueued_before() {
    let stage = Arc::new(Stage::default());
    let (counting, records) = streaming(&stage, &Arc::default(), 4);
    let counting = Arc::new(counting);
    counting.start().unwrap();
    let launched = launch(&*stage.subscriber(), 1).unwrap();
    stage.unsettled.store(true, Ordering::Relaxed);
    let (flusher, (told, outcome)) = (Arc::clone(&counting), mpsc::channel());
    stage.during_drain(move || {
        let flushed = std::thread::spawn(move || flusher.flush(Duration::from_millis(200))).join().unwrap();
        told.send(flushed.is_ok()).unwrap();
    });
    counting.stop(LIMIT).unwrap();
    assert!(records.try_recv().is_none(), "it is in flight");
    assert!(!outcome.recv().unwrap(), "a flush said that everything was delivered");
    retire(&*stage.subscriber(), &launched);
}

// A flush after a stop whose drain timed out.
#[test]
fn a_flush_after_a_stop_that_timed_out_waits_for_what_is_in_flight() {
    let stage = Arc::new(Stage::default());
    let (counting, records) = streaming(&stage, &Arc::default(), 4);
    counting.start().unwrap();
    let launched = launch(&*stage.subscriber(), 1).unwrap();
    stage.unsettled.store(true, Ordering::Relaxed);
    stage.drains_fail.store(true, Ordering::Relaxed);
    counting.stop(Duration::from_millis(50)).unwrap_err();
    let flushed = counting.flush(Duration::from_millis(200));
    assert!(records.try_recv().is_none(), "it is in flight");
    assert!(flushed.is_err(), "a flush said that everything was delivered");
    retire(&*stage.subscriber(), &launched);
}
