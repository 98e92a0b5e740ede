//! Packets of every kind through queues of every size.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hsa_sys::HSA_STATUS_SUCCESS;
use wavescope_core::{AqlPacket, Fence, Interception, PacketHeader, PacketType};
use wavescope_hsa_intercept::Technique;

use crate::application::*;
use crate::runtime::{self, Runtime, object, state};
use crate::service::*;

const LIMIT: Duration = Duration::from_secs(10);

/// A packet with every word set, so that any change shows.
fn full(kind: PacketType, mark: u32) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    (1..14).for_each(|word| packet.0[word] = mark << 8 | word as u32);
    packet.set_header(PacketHeader::new(kind, false, Fence::Agent, Fence::System));
    packet.0[0] |= 0x5A << 16;
    packet
}

fn barrier_or(dependencies: [u64; 2], done: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::BARRIER_OR, false, Fence::None, Fence::Agent));
    for (place, signal) in dependencies.into_iter().enumerate() {
        (packet.0[2 + 2 * place], packet.0[3 + 2 * place]) = (signal as u32, (signal >> 32) as u32);
    }
    packet.set_completion_signal(done);
    packet
}

// Agent dispatches, BARRIER-OR packets and vendor packets that nobody knows stay as they are and where they are.
#[test]
fn packets_that_are_no_kernels_pass_untouched_and_in_order() {
    for technique in TECHNIQUES {
        for listens in [true, false] {
            let runtime = Runtime::start();
            let interceptor = runtime.install(technique);
            let service = FakeService::new(|_| Plan::Count);
            if listens {
                interceptor.subscribe(service.subscription(&[], true)).unwrap();
            }
            let queue = runtime.queue(64);
            let (never, soon, done) = (runtime.signal(1), runtime.signal(1), runtime.signal(1));
            let batch = [
                full(PacketType::AGENT_DISPATCH, 1),
                kernel(1, 0),
                full(PacketType::VENDOR_SPECIFIC, 2),
                barrier_or([never, soon], done),
                full(PacketType::AGENT_DISPATCH, 3),
                kernel(2, 0),
                full(PacketType::VENDOR_SPECIFIC, 4),
            ];
            runtime.submit(queue, &batch);
            runtime.run_until(|| ran(queue) == [1]);
            runtime::run();
            assert_eq!(ran(queue), [1], "behind the barrier");
            runtime.store(soon, 0);
            runtime.run_until(|| ran(queue) == [1, 2]);
            runtime.run_until(|| service.retired() == if listens { 2 } else { 0 });
            runtime::run();
            assert_eq!(runtime::value(done), 0);
            let packets = object(queue).packets.lock().unwrap().clone();
            let is_kernel = |packet: &AqlPacket| packet.header().kind() == PacketType::KERNEL_DISPATCH;
            // What interception adds is of kinds that the application did not write like this.
            let of_application: Vec<_> = packets
                .into_iter()
                .filter(|packet| is_kernel(packet) || batch.contains(packet))
                .map(|packet| if is_kernel(&packet) { kernel(u64::from(packet.0[8]), 0) } else { packet })
                .collect();
            assert_eq!(of_application, batch, "{technique:?}, {listens}");
            assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
            interceptor.shut_down().unwrap();
            runtime.assert_clean();
        }
    }
}

// The smallest queues that HSA knows, and the largest of ROCr, whose ring cannot be any longer behind a front.
#[test]
fn queues_of_any_size_take_laps_of_packets() {
    const LARGEST: u64 = 1 << 17;
    for (size, behind, laps) in [(1, 4, 50), (2, 8, 50), (LARGEST, LARGEST, 2)] {
        let runtime = Runtime::start();
        let interceptor = runtime.install(Technique::Doorbell);
        let service =
            FakeService::new(
                |dispatch| {
                    if dispatch.kernel_object % 64 == 0 { Plan::Count } else { Plan::Decline }
                },
            );
        interceptor.subscribe(service.subscription(&[], false)).unwrap();
        let queue = runtime.queue(size as u32);
        assert_eq!(u64::from(object(queue).size()), behind);
        for lap in 0..laps {
            let batch: Vec<_> = (lap * size..(lap + 1) * size).map(|n| kernel(n, 0)).collect();
            runtime.submit(queue, &batch);
            runtime.run_until(|| runtime.read_index(queue) == (lap + 1) * size);
        }
        let kernels = laps * size;
        runtime.run_until(|| service.retired() as u64 == kernels.div_ceil(64));
        runtime.run_until(|| object(queue).kernels.lock().unwrap().len() as u64 == kernels);
        assert!(ran(queue).into_iter().eq(0..kernels), "{size}: in order");
        assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// A kernel runs for long while the ring behind a front is full: our thread looks ever less often.
#[test]
fn a_ring_that_stays_full_is_looked_at_ever_less_often() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let queue = runtime.queue(64);
    // 320 packets, of which 256 fit.
    for _ in 0..5 {
        runtime.submit(queue, &[kernel(1, 0); 64]);
    }
    let looks = || state().looks.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(500));
    let (before, started) = (looks(), Instant::now());
    std::thread::sleep(Duration::from_secs(1));
    let (seen, most) = (looks() - before, 100 * started.elapsed().as_secs_f64().ceil() as u64);
    assert!(seen <= most, "{seen} looks, not over {most}");
    while looks() < before + 10 {
        assert!(started.elapsed() < LIMIT, "nobody looks any more");
        std::thread::yield_now();
    }
    runtime.run_until(|| ran(queue).len() == 320);
    assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// A doorbell value that no index is, through the table, does not make the front deaf to devices.
#[test]
fn a_negative_doorbell_value_is_ignored() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let queue = runtime.queue(64);
    for value in [-1, -5, i64::MIN] {
        runtime.store(doorbell(queue), value);
    }
    for n in 0..3 {
        let index = runtime.reserve(queue, 1);
        write(queue, index, &kernel(n, 0));
        // Not through the table.
        runtime::set(doorbell(queue), index.cast_signed());
        runtime.run_until(|| ran(queue).len() as u64 == n + 1);
    }
    assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// The process has no event left, or the runtime works without interrupts: a blocked wait would spin, so nobody asks for one.
#[test]
fn without_events_nobody_waits_inside_the_runtime() {
    for technique in TECHNIQUES {
        for events in [true, false] {
            let runtime = Runtime::start();
            state().no_events.store(!events, Ordering::Relaxed);
            let interceptor = runtime.install(technique);
            let service = FakeService::new(|_| Plan::Count);
            interceptor.subscribe(service.subscription(&[], true)).unwrap();
            let queue = runtime.queue(64);
            for n in 0..20 {
                runtime.submit(queue, &[kernel(n, 0)]);
                runtime.run_until(|| service.retired() as u64 == n + 1);
            }
            assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
            interceptor.shut_down().unwrap();
            assert_eq!(state().waits.load(Ordering::Relaxed) > 0, events, "{technique:?}");
            runtime.assert_clean();
        }
    }
}
