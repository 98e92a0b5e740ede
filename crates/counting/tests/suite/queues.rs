//! What applications do to queues, with every dispatch counted: nothing hangs, nothing is lost, nothing runs twice.

use std::mem::offset_of;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hsa_sys::amd_queue_v2_t;
use wavescope_core::{AqlPacket, DispatchCounters, Fence, PacketHeader, PacketType, Records};
use wavescope_counting::{DispatchCounting, PoolSize};
use wavescope_workload::{Batch, Dependency, Launch};

use crate::packets::*;
use crate::rig::*;

/// How long a doorbell may stay unheard before it counts as that: a front takes 50 ms at most.
const DEAF: Duration = Duration::from_millis(300);

fn launch(rig: &Rig, waves: u32) -> Launch {
    Launch::new(rig.kernel(0, "empty"), [64 * waves, 1, 1], [64, 1, 1])
}

fn start(rig: &Rig, pool: u32) -> (DispatchCounting, Records<DispatchCounters>) {
    let config = rig.config(0, &["SQ_WAVES"], PoolSize(pool));
    let (counting, records) = rig.counting(1, &[0], always(config));
    counting.start().unwrap();
    (counting, records)
}

/// Takes all records, each of them right; returns the waves of each dispatch.
fn all(records: &Records<DispatchCounters>) -> Vec<u32> {
    let mut waves = Vec::new();
    while let Some(counted) = records.try_recv() {
        let expected = counted.dispatch.grid[0] / 64;
        assert_eq!(total(&counted, "SQ_WAVES"), f64::from(expected));
        waves.push(expected);
    }
    waves
}

on_both_faces! {
    /// Queue A {barrier on S, kernel}, then queue B {kernel completing S}: legal, and must end.
    fn a_queue_behind_a_barrier_does_not_hold_the_agent(rig on "gfx942") {
        let (counting, records) = start(rig, 2);
        let (a, b) = (rig.queue(0), rig.queue(0));
        let signal = rig.application.signal(1).unwrap();
        let mut first = batch((1..=5).map(|waves| launch(rig, waves)));
        first.barrier(Dependency::All, &[&signal], None);
        for waves in 6..=10 {
            first.launch(launch(rig, waves));
        }
        let mut second = Batch::new().own_signals();
        for waves in 11..=15 {
            second.launch(launch(rig, waves));
        }
        second.barrier(Dependency::All, &[], Some(&signal));
        let first = a.submit(&first).unwrap();
        b.submit(&second).unwrap().wait(LIMIT).unwrap();
        first.wait(LIMIT).unwrap();
        counting.stop(LIMIT).unwrap();
        let mut waves = all(&records);
        waves.sort_unstable();
        assert_eq!(waves, (1..=15).collect::<Vec<_>>());
    }

    /// Eight producers reserve slots and fill them in any order; doorbells come in any order too.
    fn producers_that_fill_slots_out_of_order_lose_nothing(rig on "gfx942") {
        const PRODUCERS: u32 = 8;
        const EACH: u32 = 200;
        /// With more than 256 packets waiting around the ring's end, ROCr's intercept queue writes past a buffer.
        const AHEAD: i64 = 30;
        let (counting, records) = start(rig, 8);
        let queue = rig.application.queue(rig.gpu(0), 1024).unwrap();
        let total = i64::from(PRODUCERS * EACH);
        let done = rig.application.signal(total).unwrap();
        let reserved = AtomicI64::new(0);
        std::thread::scope(|scope| {
            for producer in 0..PRODUCERS {
                let (queue, done, reserved) = (&queue, &done, &reserved);
                let rig = Shared(rig);
                scope.spawn(move || {
                    for n in 0..EACH {
                        let mine = reserved.fetch_add(1, Ordering::AcqRel);
                        while mine - (total - done.load().unwrap()) > AHEAD {
                            std::thread::yield_now();
                        }
                        let first = reserve(rig.get(), queue, 2);
                        let kernel = packet(rig.get(), 1 + (producer * EACH + n) % 50, done.handle().handle);
                        // The second slot first, sometimes rung before the first is written.
                        write(queue, first + 1, &our_barrier());
                        if n % 3 == 0 {
                            ring(rig.get(), queue, first + 1);
                        }
                        write(queue, first, &kernel);
                        ring(rig.get(), queue, if n % 3 == 0 { first } else { first + 1 });
                    }
                });
            }
        });
        done.wait_below(1, LIMIT).unwrap();
        counting.stop(LIMIT).unwrap();
        let (mut waves, mut expected) = (all(&records), (0..PRODUCERS * EACH).map(|n| 1 + n % 50).collect::<Vec<_>>());
        waves.sort_unstable();
        expected.sort_unstable();
        assert_eq!(waves, expected);
    }

    /// Queues are created and destroyed while others run; what was counted is right.
    fn queues_that_come_and_go_lose_nothing(rig on "gfx942") {
        let (counting, records) = start(rig, 4);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let rig = Shared(rig);
                scope.spawn(move || {
                    for round in 1..=20u32 {
                        let queue = rig.get().application.queue(rig.get().gpu(0), 64).unwrap();
                        let launches = (0..5).map(|_| launch(rig.get(), round));
                        queue.submit(&batch(launches)).unwrap().wait(LIMIT).unwrap();
                    }
                });
            }
        });
        counting.stop(LIMIT).unwrap();
        let mut waves = all(&records);
        waves.sort_unstable();
        assert_eq!(waves, (1..=20).flat_map(|round| [round; 3 * 5]).collect::<Vec<_>>());
    }
    /// Field report G05: nobody waits for the kernels of a queue that is destroyed. What was submitted to it is awaited and
    /// delivered, while other threads do the same.
    fn queues_destroyed_with_work_on_its_way_lose_nothing_under_stress(rig on "gfx942") {
        const THREADS: usize = 3;
        let is_long = std::env::var("NEXTEST_PROFILE").is_ok_and(|profile| profile == "stress");
        let rounds = if is_long { 2_000 } else { 60 };
        let (counting, records) = start(rig, 4);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                let rig = Shared(rig);
                scope.spawn(move || {
                    for _ in 0..rounds {
                        let queue = rig.get().application.queue(rig.get().gpu(0), 64).unwrap();
                        let kernels: Vec<_> = (1..=8).map(|waves| packet(rig.get(), waves, 0)).collect();
                        submit(rig.get(), &queue, &kernels);
                    }
                });
            }
        });
        counting.stop(LIMIT).unwrap();
        let mut waves = all(&records);
        waves.sort_unstable();
        let expected: Vec<_> = (1..=8).flat_map(|waves| std::iter::repeat_n(waves, THREADS * rounds)).collect();
        assert_eq!(waves.len(), expected.len());
        assert_eq!(waves, expected);
    }
}

with_fronts! {
    /// A batch that fills a ring of 16,384 packets, with 8 programs.
    fn a_full_ring_of_16384_packets_is_counted_completely(rig on "gfx942") {
        let (counting, records) = start(rig, 8);
        let queue = rig.application.queue(rig.gpu(0), 16_384).unwrap();
        let mut batch = Batch::new();
        for n in 0..16_384u32 {
            batch.launch(launch(rig, 1 + n % 7));
        }
        for _ in 0..2 {
            queue.submit(&batch).unwrap().wait(LIMIT).unwrap();
        }
        counting.stop(LIMIT).unwrap();
        let expected: Vec<_> = (0..2).flat_map(|_| (0..16_384).map(|n| 1 + n % 7)).collect();
        assert_eq!(all(&records), expected);
    }

    /// The ring is full behind a barrier on a signal that the same thread sets next: the doorbell must not wait.
    fn a_ring_filled_behind_a_barrier_of_the_same_thread_is_counted(rig on "gfx942") {
        let (counting, records) = start(rig, 4);
        let queue = rig.application.queue(rig.gpu(0), 1024).unwrap();
        let signal = rig.application.signal(1).unwrap();
        let mut full = Batch::new();
        full.barrier(Dependency::All, &[&signal], None);
        for n in 1..1024u32 {
            full.launch(launch(rig, 1 + n % 5));
        }
        let submission = queue.submit(&full).unwrap();
        signal.store(0).unwrap();
        submission.wait(LIMIT).unwrap();
        counting.stop(LIMIT).unwrap();
        assert_eq!(all(&records), (1..1024).map(|n| 1 + n % 5).collect::<Vec<_>>());
    }

    /// An application that moves `write_dispatch_id` inside `amd_queue_t` itself, and reads its read index there.
    fn indices_may_be_moved_in_the_queue_itself(rig on "gfx942") {
        let (counting, records) = start(rig, 4);
        let queue = rig.application.queue(rig.gpu(0), 64).unwrap();
        let done = rig.application.signal(500).unwrap();
        let read_index = queue_word(&queue, offset_of!(amd_queue_v2_t, read_dispatch_id));
        for n in 0..500 {
            let index = device_reserve(&queue, 1);
            while index >= read_index.load(Ordering::Acquire) + 64 {
                std::thread::yield_now();
            }
            write(&queue, index, &packet(rig, 1 + n % 9, done.handle().handle));
            ring(rig, &queue, index);
        }
        done.wait_below(1, LIMIT).unwrap();
        counting.stop(LIMIT).unwrap();
        assert_eq!(all(&records), (0..500).map(|n| 1 + n % 9).collect::<Vec<_>>());
    }

    /// A device rings by writing the doorbell signal's value; nobody on the host calls anything.
    fn a_doorbell_rung_by_a_device_is_heard(rig on "gfx942") {
        let (counting, records) = start(rig, 4);
        let queue = rig.application.queue(rig.gpu(0), 64).unwrap();
        for n in 0..20u32 {
            let done = rig.application.signal(1).unwrap();
            let index = reserve(rig, &queue, 1);
            write(&queue, index, &packet(rig, 1 + n, done.handle().handle));
            device_store(&queue, index.cast_signed());
            done.wait_below(1, LIMIT).unwrap();
        }
        counting.stop(LIMIT).unwrap();
        assert_eq!(all(&records), (1..=20).collect::<Vec<_>>());
    }
}

with_intercept_queues! {
    /// ROCr 7.2.4 means to hear it, but the signal block that it shows to devices is a copy, which nobody watches
    /// (`core/runtime/intercept_queue.cpp`). The packet waits for the next doorbell of the host.
    fn a_doorbell_rung_by_a_device_is_not_heard(rig on "gfx942") {
        let (counting, records) = start(rig, 4);
        let queue = rig.application.queue(rig.gpu(0), 64).unwrap();
        let done = rig.application.signal(1).unwrap();
        let index = reserve(rig, &queue, 1);
        write(&queue, index, &packet(rig, 7, done.handle().handle));
        device_store(&queue, index.cast_signed());
        assert!(done.wait_below(1, DEAF).is_err(), "heard");
        ring(rig, &queue, index);
        done.wait_below(1, LIMIT).unwrap();
        counting.stop(LIMIT).unwrap();
        assert_eq!(all(&records), [7]);
    }
}

fn our_barrier() -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::BARRIER_AND, false, Fence::None, Fence::None));
    packet
}
