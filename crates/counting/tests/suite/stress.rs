//! Many producers, queues and agents, with counting switched on and off and queues coming and going.
//!
//! Takes seconds; minutes with `cargo nextest run --profile stress`.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use wavescope_counting::PoolSize;
use wavescope_workload::{Batch, Launch, Queue};

use crate::packets::Shared;
use crate::rig::*;

const AGENTS: usize = 4;
const QUEUES: usize = 4;
const PRODUCERS: usize = 8;
const BATCH: u64 = 16;
/// Nothing here waits for longer: a hang fails.
const WATCHDOG: Duration = Duration::from_secs(30);

fn dispatches() -> u64 {
    let is_long = std::env::var("NEXTEST_PROFILE").is_ok_and(|profile| profile == "stress");
    if is_long { 1_000_000 } else { 8_000 }
}

fn batch_of(rig: &Rig, agent: usize, waves: u32) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..BATCH {
        batch.launch(Launch::new(rig.kernel(agent, "empty"), [64 * waves, 1, 1], [64, 1, 1]));
    }
    batch
}

fn queue_of(rig: &Rig, agent: usize) -> Queue {
    rig.application.queue(rig.gpu(agent), 256).unwrap()
}

/// A few producers' work: batches to the queues of all agents in turn, every tenth to a queue that only lives for it.
fn produce(rig: Shared<'_>, queues: &[Vec<Queue>], producer: usize, submitted: &AtomicU64) {
    let mut round = producer;
    while submitted.fetch_add(BATCH, Ordering::Relaxed) < dispatches() {
        let agent = round % AGENTS;
        let batch = batch_of(rig.get(), agent, 1 + (round % 5) as u32);
        if round.is_multiple_of(10) {
            queue_of(rig.get(), agent).submit(&batch).unwrap().wait(WATCHDOG).unwrap();
        } else {
            queues[agent][round / AGENTS % QUEUES].submit(&batch).unwrap().wait(WATCHDOG).unwrap();
        }
        round += PRODUCERS + 1;
    }
}

fn stress(rig: &Rig) {
    let configs: Vec<_> = (0..AGENTS).map(|agent| rig.config(agent, &["SQ_WAVES"], PoolSize(16))).collect();
    let (counting, records) = rig.counting(1, &[0, 1, 2, 3], move |dispatch| {
        let config = configs.iter().find(|config| config.agent() == dispatch.agent).cloned();
        // Some are declined.
        let config = config.filter(|_| dispatch.id.0 % 7 != 0);
        wavescope_counting::Choice { config, user_data: dispatch.id.0 }
    });
    let queues: Vec<Vec<_>> =
        (0..AGENTS).map(|agent| (0..QUEUES).map(|_| queue_of(rig, agent)).collect()).collect();
    let (submitted, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut windows = 0;
    let mut seen = HashSet::new();
    let mut collect = || {
        while let Some(counted) = records.try_recv() {
            assert!(seen.insert(counted.dispatch.id), "{} is recorded twice", counted.dispatch.id);
            assert_eq!(counted.user_data, counted.dispatch.id.0);
            let waves = total(&counted, "SQ_WAVES");
            assert!(
                waves >= f64::from(counted.dispatch.grid[0] / 64),
                "{waves} waves in {:?}",
                counted.dispatch
            );
        }
    };
    std::thread::scope(|scope| {
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let (queues, submitted) = (&queues, &submitted);
                let rig = Shared(rig);
                scope.spawn(move || produce(rig, queues, producer, submitted))
            })
            .collect();
        let toggler = scope.spawn(|| {
            let mut windows = 0;
            while !over.load(Ordering::Acquire) {
                counting.start().unwrap();
                std::thread::sleep(Duration::from_millis(3));
                counting.stop(WATCHDOG).unwrap();
                windows += 1;
            }
            windows
        });
        while producers.iter().any(|producer| !producer.is_finished()) {
            collect();
            std::thread::sleep(Duration::from_millis(1));
        }
        over.store(true, Ordering::Release);
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        windows = toggler.join().unwrap();
    });
    collect();
    let summary = counting.summary();
    assert!(windows > 0 && !seen.is_empty(), "{windows} windows");
    let lost = summary.lost + summary.skipped + records.lost();
    assert_eq!((seen.len() as u64, lost), (summary.counted, 0), "of {windows} windows, {summary:?}");
}

on_both_faces! {
    fn everything_is_counted_once_under_stress(rig on "gfx942-x4") {
        stress(rig);
    }
}
