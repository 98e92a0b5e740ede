//! Extended kernel dispatches: vendor packets that run kernels, with clusters and a signal to wait for.

use wavescope_core::{AqlPacket, Fence, Interception, PacketHeader, PacketType};
use wavescope_hsa_intercept::Engine;

use crate::common::*;

/// 7 clusters of 2 work-groups of 64 work-items (`hsa_amd_ext_kernel_dispatch_packet_t` of `hsa_ext_amd.h`).
fn extended(object: u32, dependency: u64, signal: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.0[0] = 3 << 16 | 1 << 24;
    (packet.0[1], packet.0[2]) = (64 | 1 << 16, 1);
    (packet.0[3], packet.0[4], packet.0[5]) = (7, 1 | 1 << 16, 2 | 1 << 8 | 1 << 16);
    packet.0[8] = object;
    (packet.0[12], packet.0[13]) = (dependency as u32, (dependency >> 32) as u32);
    packet.set_completion_signal(signal);
    packet.set_header(PacketHeader::new(PacketType::VENDOR_SPECIFIC, false, Fence::Agent, Fence::System));
    packet
}

// It is asked about with the grid that it has, and measured like any other: start, kernel, forward, read, stop.
#[test]
fn an_extended_dispatch_is_measured() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let service = FakeService::new(|_| Plan::Count);
    engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    let app = device.app_signal(1);
    let written = queue.submit(&[extended(7, 0, app)]);
    let dispatched = service.dispatched();
    let asked: Vec<_> = dispatched.iter().map(|one| (one.kernel_object, one.grid, one.workgroup)).collect();
    assert_eq!(asked, [(7, [7 * 2 * 64, 1, 1], [64, 1, 1])]);
    let mark = |packet: &AqlPacket| (packet.0[0] >> 16 & 0xff == 1).then_some(packet.0[4]);
    let at = |wanted| written.iter().position(|packet| mark(packet) == Some(wanted)).unwrap();
    let kernel = written.iter().position(|packet| packet.0[8] == 7).unwrap();
    let forward = written.iter().position(|packet| packet.completion_signal() == app).unwrap();
    let order = [at(START), kernel, forward, at(READ), at(STOP)];
    assert!(order.is_sorted(), "{order:?}");
    let emitted = &written[kernel];
    assert!(emitted.header().barrier() && emitted.completion_signal() != app);
    assert_eq!(emitted.0[1..14], extended(7, 0, app).0[1..14], "untouched");
}

// What it waits for may be what another queue's kernel sets: it must not get the agent before.
#[test]
fn an_extended_dispatch_that_waits_does_not_hold_the_agent() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let (a, b) = (FakeQueue::new(&engine, &device, AGENT), FakeQueue::new(&engine, &device, AGENT));
    let service = FakeService::new(|_| Plan::Count);
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    let signal = device.app_signal(1);
    a.submit(&[extended(1, signal, 0)]);
    b.submit(&[kernel(2, signal)]);
    let started = std::time::Instant::now();
    while service.retired() < 2 {
        b.run();
        a.run();
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "the watchdog's time is 10 seconds");
        std::thread::yield_now();
    }
    engine.drain(id, std::time::Duration::from_secs(10)).unwrap();
    assert!(service.companies().iter().all(|company| !company.overrun));
}
