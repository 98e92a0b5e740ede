//! Many producers, queues and agents, with counting switched on and off and queues coming and going, and an exact account at
//! the end: each kernel ran once, was recorded once if it was enqueued inside a window and not at all if it was enqueued
//! outside of all, with as many waves as it was launched with.
//!
//! Takes seconds; minutes with `cargo nextest run --profile stress`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use wavescope_core::{AqlPacket, DispatchCounters, Records};
use wavescope_counting::{Choice, DispatchCounting, PoolSize};
use wavescope_workload::{Queue, Signal};

use crate::packets::*;
use crate::rig::*;
use crate::signals;

const AGENTS: usize = 4;
const QUEUES: usize = 4;
const PRODUCERS: usize = 8;
/// Kernels under one doorbell: of 1, 2, ... waves.
const BATCH: usize = 16;
/// Room for all producers on one queue, with every packet that is added to theirs.
const RING: u32 = 2048;
/// Nothing here waits for longer: a hang fails.
const WATCHDOG: Duration = Duration::from_secs(30);
/// How long the collector waits for another record before it looks whether there will be more.
const GLANCE: Duration = Duration::from_millis(10);
/// How much more memory may be resident at the end; a leak of 64 bytes a dispatch shows in the long form.
const GROWTH: usize = 48 << 20;

fn batches() -> usize {
    let is_long = std::env::var("NEXTEST_PROFILE").is_ok_and(|profile| profile == "stress");
    if is_long { 1_000_000 / BATCH } else { 8_000 / BATCH }
}

/// Some kernels nobody wants.
fn is_declined(batch: usize, index: usize) -> bool {
    (batch * BATCH + index) % 7 == 3
}

/// Times of one window: starting, started, stopping, stopped.
#[derive(Clone, Copy, Debug)]
struct Window([u64; 4]);

/// What is known of a batch.
#[derive(Default)]
struct Fate {
    /// Before it was submitted, and when it was.
    submitted: [AtomicU64; 2],
    /// How often each of its kernels was recorded.
    recorded: [AtomicU64; BATCH],
}

/// How many batches producers have taken.
#[derive(Default)]
struct Taken {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Taken {
    /// Takes the next one; `None` if there are no more.
    fn take(&self) -> Option<usize> {
        let mut count = self.count.lock().unwrap();
        let next = (*count < batches()).then_some(*count);
        *count += usize::from(next.is_some());
        self.changed.notify_all();
        next
    }

    /// Waits until `more` were taken; `false` if there are none left.
    fn wait_for(&self, more: usize) -> bool {
        let count = self.count.lock().unwrap();
        let enough = (*count + more).min(batches());
        let waits = |count: &mut usize| *count < enough;
        let (count, waited) = self.changed.wait_timeout_while(count, WATCHDOG, waits).unwrap();
        assert!(!waited.timed_out(), "{count} batches are taken");
        *count < batches()
    }
}

struct Stage<'a> {
    rig: Shared<'a>,
    /// A clock that all threads agree on.
    clock: AtomicU64,
    queues: Vec<Vec<Queue>>,
    kernels: Vec<AqlPacket>,
    taken: Taken,
    fates: Vec<Fate>,
}

impl<'a> Stage<'a> {
    fn new(rig: &'a Rig) -> Self {
        let queue = |agent| rig.application.queue(rig.gpu(agent), RING).unwrap();
        Self {
            rig: Shared(rig),
            clock: AtomicU64::new(1),
            queues: (0..AGENTS).map(|agent| (0..QUEUES).map(|_| queue(agent)).collect()).collect(),
            kernels: (0..AGENTS).map(|agent| packet_on(rig, agent, 1, 0)).collect(),
            taken: Taken::default(),
            fates: (0..batches()).map(|_| Fate::default()).collect(),
        }
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Batches to the queues of all agents in turn, every tenth to a queue that only lives for it.
    fn produce(&self) {
        let rig = self.rig.get();
        // Never re-created: a kernel that ran twice would make it fall too far, now or at the next batch.
        let done = rig.application.signal(0).unwrap();
        while let Some(batch) = self.taken.take() {
            let agent = batch % AGENTS;
            done.store(BATCH as i64).unwrap();
            if batch.is_multiple_of(10) {
                let queue = rig.application.queue(rig.gpu(agent), RING).unwrap();
                self.submit(&queue, agent, batch, &done);
            } else {
                self.submit(&self.queues[agent][batch / AGENTS % QUEUES], agent, batch, &done);
            }
        }
        assert_eq!(done.load().unwrap(), 0, "each kernel runs once");
    }

    fn submit(&self, queue: &Queue, agent: usize, batch: usize, done: &Signal) {
        let packets: [_; BATCH] = std::array::from_fn(|index| {
            let mut packet = self.kernels[agent];
            packet.0[3] = 64 * (1 + index as u32);
            // Says which batch it is, in bytes of LDS: a work-group has 65,536.
            packet.0[7] = batch as u32;
            packet.set_completion_signal(done.handle().handle);
            packet
        });
        let submitted = &self.fates[batch].submitted;
        submitted[0].store(self.tick(), Ordering::Relaxed);
        submit(self.rig.get(), queue, &packets);
        submitted[1].store(self.tick(), Ordering::Relaxed);
        assert_eq!(done.wait_below(1, WATCHDOG).unwrap(), 0, "each kernel of batch {batch} runs once");
    }

    /// Switches on and off every few batches, so every few milliseconds.
    fn toggle(&self, counting: &DispatchCounting) -> Vec<Window> {
        let mut windows = Vec::new();
        // Some are enqueued in between.
        while self.taken.wait_for(PRODUCERS / 2) {
            let starting = self.tick();
            counting.start().unwrap();
            let started = self.tick();
            self.taken.wait_for(PRODUCERS * (1 + windows.len() % 4));
            let stopping = self.tick();
            counting.stop(WATCHDOG).unwrap();
            windows.push(Window([starting, started, stopping, self.tick()]));
        }
        windows
    }

    /// Takes what is delivered, until there is nothing for a while; returns how many records were not exact.
    fn collect(&self, records: &Records<DispatchCounters>) -> usize {
        let mut inexact = 0;
        while let Some(counted) = records.recv_timeout(GLANCE) {
            let index = (counted.dispatch.grid[0] / 64 - 1) as usize;
            let batch = counted.dispatch.group_segment_bytes as usize;
            assert!(!is_declined(batch, index), "{:?} was declined", counted.dispatch);
            assert_eq!(
                (counted.lost, counted.dispatch.agent),
                (None, self.rig.get().agent(batch % AGENTS).id)
            );
            self.fates[batch].recorded[index].fetch_add(1, Ordering::Relaxed);
            let (waves, launched) = (total(&counted, "SQ_WAVES"), (index + 1) as f64);
            assert!(waves >= launched, "{waves} waves in {:?}", counted.dispatch);
            inexact += usize::from(waves > launched);
        }
        inexact
    }

    fn account(&self, windows: &[Window]) {
        let (mut inside, mut outside, mut between) = (0, 0, 0);
        for (batch, fate) in self.fates.iter().enumerate() {
            let [from, to] = fate.submitted.each_ref().map(|time| time.load(Ordering::Relaxed));
            let covered = windows.iter().any(|Window([_, on, off, _])| *on < from && to < *off);
            let touched = windows.iter().any(|Window([first, .., last])| *first < to && from < *last);
            for (index, recorded) in fate.recorded.iter().enumerate() {
                let (count, wanted) =
                    (recorded.load(Ordering::Relaxed), u64::from(!is_declined(batch, index)));
                match (covered, touched) {
                    (true, _) => assert_eq!(count, wanted, "kernel {index} of batch {batch}, in a window"),
                    (false, false) => assert_eq!(count, 0, "kernel {index} of batch {batch}, in no window"),
                    (false, true) => assert!(count <= wanted, "kernel {index} of batch {batch}: {count}"),
                }
                match (covered, touched) {
                    (true, _) => inside += 1,
                    (false, false) => outside += 1,
                    (false, true) => between += 1,
                }
            }
        }
        let count = windows.len();
        println!("{count} windows; {inside} kernels inside, {outside} outside, {between} on an edge");
        assert!(
            count > 1 && inside > 0 && outside > 0,
            "{inside} inside, {outside} outside of {count} windows"
        );
    }
}

/// Resident memory of the process, bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn stress(rig: &Rig) {
    let configs: Vec<_> = (0..AGENTS).map(|agent| rig.config(agent, &["SQ_WAVES"], PoolSize(16))).collect();
    let (counting, records) = rig.counting(1, &[0, 1, 2, 3], move |dispatch| {
        let index = dispatch.grid[0] as usize / 64 - 1;
        let config = configs.iter().find(|config| config.agent() == dispatch.agent).cloned();
        let config = config.filter(|_| !is_declined(dispatch.group_segment_bytes as usize, index));
        Choice { config, user_data: dispatch.id.0 }
    });
    let stage = Stage::new(rig);
    let mut inexact = 0;
    let before = resident();
    let windows = std::thread::scope(|scope| {
        let producers: Vec<_> = (0..PRODUCERS).map(|_| scope.spawn(|| stage.produce())).collect();
        let toggler = scope.spawn(|| stage.toggle(&counting));
        while producers.iter().any(|producer| !producer.is_finished()) {
            inexact += stage.collect(&records);
        }
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        toggler.join().unwrap()
    });
    inexact += stage.collect(&records);
    let grown = resident().saturating_sub(before);
    stage.account(&windows);
    drop(stage);
    // An intercept queue cannot be asked where it is, so what went through before a window may overlap with its first kernels:
    // on each agent as many as are in flight at most.
    let may_overlap = match rig.interceptor.technique() {
        Some(Technique::Doorbell) => 0,
        _ => windows.len() * PRODUCERS * BATCH,
    };
    assert!(inexact <= may_overlap, "{inexact} records are not exact in {} windows", windows.len());
    let summary = counting.summary();
    assert_eq!((summary.lost, summary.skipped, records.lost()), (0, 0, 0), "{summary:?}");
    assert!(grown < GROWTH, "{} KiB more than at the start", grown >> 10);
    // A queue has a handful of signals and carriers for what is in flight on it; producers have one each.
    let (_, peak) = signals::live_and_peak();
    let bound = (AGENTS * QUEUES + PRODUCERS) * (6 + PRODUCERS * BATCH) + PRODUCERS + AGENTS;
    rig.interceptor.shut_down().unwrap();
    let (live, _) = signals::live_and_peak();
    println!("{inexact} inexact, {} KiB more; {peak} signals at most, {live} at the end", grown >> 10);
    assert!(peak <= bound as i64, "{peak} signals at most, bound {bound}");
    // The bell, where a queue was destroyed with a packet that rings it; and what made the runtime's event thread known.
    let kept = 1 + i64::from(rig.interceptor.technique() == Some(Technique::Runtime));
    assert!(live <= kept, "{live} signals are left, {kept} may be");
}

on_both_faces! {
    fn everything_is_counted_once_under_stress(rig on "gfx942-x4") {
        stress(rig);
    }
}
