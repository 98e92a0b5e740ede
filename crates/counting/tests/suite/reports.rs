//! Scenarios of field reports that take a whole runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use wavescope_core::{
    Answer, AqlPacket, ContextId, Dispatch, DispatchEvent, DispatchSubscriber, DispatchTimes, Fence, Grant,
    Interception, PacketHeader, PacketType, ProgramSink, Service, Subscription, Token,
};
use wavescope_counting::{Choice, PoolSize};
use wavescope_workload::{Batch, Launch, Signal, kernels};

use crate::packets::{Shared, packet, submit};
use crate::rig::*;
use crate::signals;
use crate::tracing::{Records, stop};

fn is_long() -> bool {
    std::env::var("NEXTEST_PROFILE").is_ok_and(|profile| profile == "stress")
}

fn launch(rig: &Rig, gpu: usize, waves: u32) -> Launch {
    Launch::new(rig.kernel(gpu, "empty"), [64 * waves, 1, 1], [64, 1, 1])
}

on_both_faces! {
    /// Field report G01: two threads, each driving and counting on its own GPU with callbacks that look up kernels, while a third
    /// loads and unloads code.
    fn two_threads_count_on_two_gpus_under_stress(rig on "gfx942-x2") {
        let dispatches: u32 = if is_long() { 10_000 } else { 2_000 };
        let configs = [0, 1].map(|gpu| rig.config(gpu, &["SQ_WAVES"], PoolSize(16)));
        let interceptor = Arc::clone(&rig.interceptor);
        let (counting, records) = rig.counting(1, &[0, 1], move |dispatch| {
            let kernel = interceptor.kernel(dispatch.kernel_object).expect("a kernel that is loaded");
            assert_eq!(&*kernel.name, "empty");
            let config = configs.iter().find(|config| config.agent() == dispatch.agent).cloned();
            Choice { config, user_data: 0 }
        });
        counting.start().unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let drive = |gpu: usize| {
                let rig = Shared(rig);
                scope.spawn(move || {
                    let rig = rig.get();
                    let queue = rig.queue(gpu);
                    for first in (0..dispatches).step_by(20) {
                        let launches = (first..first + 20).map(|n| launch(rig, gpu, 1 + n % 9));
                        queue.submit(&batch(launches)).unwrap().wait(LIMIT).unwrap();
                    }
                })
            };
            let driving = [0, 1].map(drive);
            let (rig, over) = (Shared(rig), &over);
            scope.spawn(move || {
                while !over.load(Ordering::Acquire) {
                    let rig = rig.get();
                    drop(rig.application.load(rig.gpu(0), kernels::tiles("gfx942").unwrap()).unwrap());
                }
            });
            driving.into_iter().for_each(|one| one.join().unwrap());
            over.store(true, Ordering::Release);
        });
        counting.stop(LIMIT).unwrap();
        let mut seen = [Vec::new(), Vec::new()];
        while let Some(counted) = records.try_recv() {
            let gpu = usize::from(counted.dispatch.agent == rig.agent(1).id);
            seen[gpu].push(total(&counted, "SQ_WAVES") as u32);
        }
        let expected: Vec<_> = (0..dispatches).map(|n| 1 + n % 9).collect();
        assert!(seen.iter().all(|waves| *waves == expected), "in order, each once, and right");
    }

    /// Field report G08: as many kernels as fit, with one doorbell, give as many records, every time. ROCr's intercept queues do
    /// not survive more than 256 packets around the end of the ring, so there the ring ends where a batch does.
    fn one_doorbell_for_4096_kernels_gives_4096_records_under_stress(rig on "gfx942") {
        const KERNELS: usize = 4096;
        let queue = rig.application.queue(rig.gpu(0), 16_384).unwrap();
        let mut batch = Batch::new();
        for n in 0..KERNELS as u32 {
            batch.launch(launch(rig, 0, 1 + n % 3));
        }
        for run in 0..if is_long() { 100 } else { 8 } {
            let (records, id) = Records::start(rig);
            queue.submit(&batch).unwrap().wait(LIMIT).unwrap();
            stop(rig, id);
            let completed = records.completed();
            let ids: Vec<_> = completed.iter().map(|(kernel, _)| kernel.dispatch.id).collect();
            let waves: Vec<_> = completed.iter().map(|(kernel, _)| kernel.dispatch.grid[0] / 64).collect();
            assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "run {run}: twice");
            assert!(waves.iter().enumerate().all(|(n, waves)| *waves == 1 + n as u32 % 3), "run {run}");
            assert_eq!(completed.len(), KERNELS, "run {run}");
            assert!(completed.iter().all(|(_, times)| 0 < times.start_ns && times.start_ns < times.end_ns));
        }
    }

    /// Field report G22: dispatch, wait for the kernel's own signal, flush, read: the values are there, every time.
    fn a_flush_delivers_what_was_dispatched_before_it_under_stress(rig on "gfx942") {
        let config = rig.config(0, &["SQ_WAVES"], PoolSize(8));
        let (counting, records) = rig.counting(1, &[0], always(config));
        counting.start().unwrap();
        let queue = rig.queue(0);
        for n in 0..if is_long() { 10_000 } else { 500 } {
            let waves = 1 + n % 5;
            queue.submit(&batch([launch(rig, 0, waves)])).unwrap().wait(LIMIT).unwrap();
            counting.flush(LIMIT).unwrap();
            let counted = records.try_recv().expect("delivered");
            assert_eq!(total(&counted, "SQ_WAVES") as u32, waves, "dispatch {n}");
            assert!(records.try_recv().is_none());
        }
        counting.stop(LIMIT).unwrap();
    }

    /// Field report G20: of kernels of two queues the record says whether they were kept apart, and where it says so they did not
    /// overlap.
    fn records_of_two_queues_say_whether_they_were_serialized(rig on "gfx942") {
        let (counting, counted) = rig.counting(2, &[0], always(rig.config(0, &["SQ_WAVES"], PoolSize(4))));
        for serialized in [false, true, false] {
            let (records, id) = Records::start(rig);
            if serialized {
                counting.start().unwrap();
            }
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    let rig = Shared(rig);
                    scope.spawn(move || {
                        let queue = rig.get().queue(0);
                        for _ in 0..10 {
                            let launches = (0..10).map(|_| launch(rig.get(), 0, 20));
                            queue.submit(&batch(launches)).unwrap().wait(LIMIT).unwrap();
                        }
                    });
                }
            });
            if serialized {
                counting.stop(LIMIT).unwrap();
                assert_eq!(std::iter::from_fn(|| counted.try_recv()).count(), 200);
            }
            stop(rig, id);
            let completed = records.completed();
            assert_eq!(completed.len(), 200);
            assert!(completed.iter().all(|(kernel, _)| kernel.serialized == serialized), "{serialized}");
            let mut times: Vec<_> = completed.iter().map(|(_, times)| *times).collect();
            times.sort_unstable_by_key(|times| times.start_ns);
            let overlap = |pair: &[DispatchTimes]| pair[1].start_ns < pair[0].end_ns;
            assert!(!serialized || !times.windows(2).any(overlap), "kernels overlap that were serialized");
        }
    }
}

/// Makes slow kernels, those of one wave: they do not end before a signal falls.
struct Slow {
    go: u64,
    retired: AtomicU64,
}

impl DispatchSubscriber for Slow {
    fn enqueue(&self, dispatch: &Dispatch, sink: &mut ProgramSink<'_>) -> Answer {
        let waves = dispatch.grid[0] / 64;
        if waves == 1 {
            let mut packet = AqlPacket([0; 16]);
            packet.set_header(PacketHeader::new(PacketType::BARRIER_AND, true, Fence::System, Fence::System));
            (packet.0[2], packet.0[3]) = (self.go as u32, (self.go >> 32) as u32);
            sink.after(&packet);
        }
        Answer::Instrument { token: Token { index: waves, generation: 0 }, grant: Grant::UntilRetired }
    }

    fn publish(&self, event: DispatchEvent) {
        if let DispatchEvent::Retired { .. } = event {
            self.retired.fetch_add(1, Ordering::Release);
        }
    }
}

fn wait_for(slow: &Slow, retired: u64) {
    let started = std::time::Instant::now();
    while slow.retired.load(Ordering::Acquire) < retired {
        assert!(started.elapsed() < LIMIT, "{} of {retired}", slow.retired.load(Ordering::Acquire));
        std::thread::sleep(Duration::from_micros(100));
    }
}

on_both_faces! {
    /// Field report G03: one slow dispatch in every thousand. The others are published meanwhile, and signals stay within what is
    /// in flight.
    fn slow_dispatches_hold_nobody_back_and_pile_up_no_signals_under_stress(rig on "gfx942") {
        const BATCH: u64 = 100;
        let rounds: u64 = if is_long() { 200 } else { 10 };
        let signal = |value: u64| -> Signal { rig.application.signal(value.cast_signed()).unwrap() };
        let (go, done, slow_done) = (signal(1), signal(0), signal(0));
        let slow = Arc::new(Slow { go: go.handle().handle, retired: AtomicU64::new(0) });
        let subscriber: Arc<dyn DispatchSubscriber> = Arc::<Slow>::clone(&slow);
        let (context, service, agents) = (ContextId(1), Service::DispatchCounting, Vec::new());
        let subscription = Subscription { context, service, agents, serialize: false, subscriber };
        let [slow_queue, queue] = [rig.queue(0), rig.queue(0)];
        let (before, _) = signals::live_and_peak();
        let id = rig.interceptor.subscribe(subscription).unwrap();
        let kernels = vec![packet(rig, 2, done.handle().handle); BATCH as usize];
        let mut retired = 0;
        for _ in 0..rounds {
            go.store(1).unwrap();
            slow_done.store(1).unwrap();
            submit(rig, &slow_queue, &[packet(rig, 1, slow_done.handle().handle)]);
            for _ in 0..10 {
                done.store(BATCH.cast_signed()).unwrap();
                submit(rig, &queue, &kernels);
                assert_eq!(done.wait_below(1, LIMIT).unwrap(), 0);
                // Published though the slow one, which was there first, is not.
                retired += BATCH;
                wait_for(&slow, retired);
            }
            // Its kernel has ended, its program has not.
            slow_done.wait_below(1, LIMIT).unwrap();
            assert_eq!(slow.retired.load(Ordering::Acquire), retired, "the slow one has not ended");
            go.store(0).unwrap();
            retired += 1;
            wait_for(&slow, retired);
        }
        stop(rig, id);
        let (_, peak) = signals::live_and_peak();
        // Carriers for what is in flight, which includes a batch that was just published and whose carriers are not back yet;
        // four signals for each queue, and the bell.
        let bound = before + 2 * BATCH.cast_signed() + 1 + 2 * 4 + 1;
        println!("{peak} signals at most, bound {bound}");
        assert!(peak <= bound, "{peak} signals at most, bound {bound}");
    }
}
