//! What goes into the ring, packet by packet. No GPU, no timing.

use std::time::Duration;

use crate::common::*;
use wavescope_core::{AqlPacket, Interception, PacketHeader, PacketType, Service};
use wavescope_hsa_intercept::Engine;

/// Header of our barriers by hsa.h: barrier-AND 3, barrier bit 1<<8, system acquire 2<<9, system release 2<<11.
const OUR_BARRIER: u16 = 3 | 1 << 8 | 2 << 9 | 2 << 11;
const BARRIER_BIT: u16 = 1 << 8;

fn with_barrier(packet: AqlPacket) -> AqlPacket {
    let mut packet = packet;
    packet.set_header(PacketHeader(packet.header().0 | BARRIER_BIT));
    packet
}

fn completing(packet: AqlPacket, signal: u64) -> AqlPacket {
    let mut packet = packet;
    packet.set_completion_signal(signal);
    packet
}

fn our_barrier(dependency: u64, completion: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.0[0] = u32::from(OUR_BARRIER);
    packet.0[2] = dependency as u32;
    completing(packet, completion)
}

#[test]
fn nobody_subscribed_means_identical_packets_and_no_signal() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let batch = [kernel(1, 0), app_barrier(0), vendor(9, false), kernel(2, 0)];
    assert_eq!(queue.submit(&batch), batch);
    assert_eq!(device.live(), 0);
}

#[test]
fn agent_outside_the_set_sees_identical_packets_and_no_signal() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT, OTHER_AGENT]);
    let queue = FakeQueue::new(&engine, &device, OTHER_AGENT);
    let service = FakeService::new(|_| Plan::Count);
    engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    let before = device.live();
    let batch = [kernel(1, 0), kernel(2, 0)];
    assert_eq!(queue.submit(&batch), batch);
    assert_eq!(device.live(), before);
    assert!(service.dispatched().is_empty());
}

// Order: start, kernel, forward, read, stop; BARRIER on kernel, read and stop (field report G04). The bell behind the batch
// wakes the reaper.
#[test]
fn counted_kernel_stands_between_start_and_forward_read_stop() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let service = FakeService::new(|_| Plan::Count);
    engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    let app = device.app_signal(1);

    let ring = queue.submit(&[kernel(7, app)]);
    let carrier = ring[1].completion_signal();
    let counter = ring[4].completion_signal();
    let bell = ring[5].completion_signal();
    assert_eq!(
        ring,
        [
            vendor(START, false),
            completing(with_barrier(kernel(7, app)), carrier),
            our_barrier(0, app),
            vendor(READ, true),
            completing(vendor(STOP, true), counter),
            our_barrier(0, bell),
        ]
    );
    assert!(bell != 0 && ![app, carrier, counter].contains(&bell));
    assert!(carrier != 0 && carrier != app && counter != 0 && counter != app && counter != carrier);
    assert_eq!(device.value(carrier), 1, "the carrier begins at 1");

    run_all(&[&queue]);
    assert_eq!(device.value(app), 0, "the application's signal falls once");
    assert_eq!(
        *queue.ran.lock().unwrap(),
        [
            Ran::Vendor(START),
            Ran::Kernel(7),
            Ran::Barrier,
            Ran::Vendor(READ),
            Ran::Vendor(STOP),
            Ran::Barrier
        ]
    );
}

// The switch for hardware on which packets that share a completion signal turn out wrong.
#[test]
fn by_request_each_dispatch_retires_with_a_barrier_of_its_own() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    engine.set_retire_by_barrier(true);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let service =
        FakeService::new(|dispatch| if dispatch.kernel_object == 7 { Plan::Count } else { Plan::Decline });
    let id = engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    let ring = queue.submit(&[kernel(7, 0), kernel(8, 0)]);
    let (carrier, counter, bell) =
        (ring[1].completion_signal(), ring[4].completion_signal(), ring[7].completion_signal());
    assert_eq!(
        ring,
        [
            vendor(START, false),
            completing(with_barrier(kernel(7, 0)), carrier),
            vendor(READ, true),
            vendor(STOP, true),
            our_barrier(0, counter),
            with_barrier(kernel(8, 0)),
            our_barrier(0, counter),
            our_barrier(0, bell),
        ]
    );
    assert!(![carrier, bell, 0].contains(&counter));
    run_all(&[&queue]);
    engine.drain(id, Duration::from_secs(10)).unwrap();
    assert_eq!(service.retired(), 1);
}

#[test]
fn no_signal_is_made_up_for_an_application_that_gave_none() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    engine.subscribe(FakeService::new(|_| Plan::Count).subscription(&[], true)).unwrap();
    let ring = queue.submit(&[kernel(7, 0)]);
    assert_eq!(ring.len(), 5);
    assert_eq!(ring[2], vendor(READ, true));
}

// Two programs around one kernel nest: what starts first stops last.
#[test]
fn programs_of_two_services_nest() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let (counting, trace) = (FakeService::new(|_| Plan::Count), FakeService::new(|_| Plan::Count));
    let mut inner = trace.subscription(&[AGENT], true);
    inner.service = Service::DispatchTrace;
    engine.subscribe(inner).unwrap();
    engine.subscribe(counting.subscription(&[AGENT], true)).unwrap();
    let ring = queue.submit(&[kernel(7, 0)]);
    let marks: Vec<u32> = ring.iter().map(|packet| packet.0[4]).collect();
    assert_eq!(marks, [START, START, 1, READ, STOP, READ, STOP, 0], "the kernel's dword 4 is its grid's y");
    let signals: Vec<bool> = ring[3..7].iter().map(|packet| packet.completion_signal() != 0).collect();
    assert_eq!(signals, [false, false, false, true], "only the last packet retires");
    run_all(&[&queue]);
    queue.handle.wait_empty(Duration::from_secs(5));
    assert_eq!((counting.retired(), trace.retired()), (1, 1));
}

#[test]
fn declined_kernels_of_a_serialized_agent_get_the_barrier_bit_and_one_end() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    engine.subscribe(FakeService::new(|_| Plan::Decline).subscription(&[AGENT], true)).unwrap();
    let app = device.app_signal(1);
    let ring = queue.submit(&[kernel(1, app), kernel(2, app)]);
    let counter = ring[2].completion_signal();
    let (ends, bell) = (our_barrier(0, counter), our_barrier(0, ring[3].completion_signal()));
    assert_eq!(ring, [with_barrier(kernel(1, app)), with_barrier(kernel(2, app)), ends, bell]);

    let ring = queue.submit(&[kernel(3, app), kernel(4, 0)]);
    assert_eq!(
        ring,
        [with_barrier(kernel(3, app)), completing(with_barrier(kernel(4, 0)), counter), bell],
        "a kernel without a signal retires itself"
    );
}

#[test]
fn declined_and_ignored_kernels_without_serialization_are_untouched() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    engine.subscribe(FakeService::new(|_| Plan::Decline).subscription(&[AGENT], false)).unwrap();
    let batch = [kernel(1, 0), kernel(2, 0)];
    assert_eq!(queue.submit(&batch), batch);

    let queue = FakeQueue::new(&engine, &device, AGENT);
    engine.subscribe(FakeService::new(|_| Plan::Ignore).subscription(&[AGENT], true)).unwrap();
    let decliner_wins = queue.submit(&[kernel(1, 0)]);
    assert!(decliner_wins[0].header().barrier(), "one declines, one ignores: serialized");
}

// The start packet must not begin to count while an unordered kernel in front of it still runs.
#[test]
fn start_behind_a_declined_kernel_gets_the_barrier_bit() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let plan = |dispatch: &wavescope_core::Dispatch| match dispatch.kernel_object {
        1 => Plan::Decline,
        _ => Plan::Count,
    };
    engine.subscribe(FakeService::new(plan).subscription(&[AGENT], true)).unwrap();
    let ring = queue.submit(&[kernel(1, 0), kernel(2, 0), kernel(3, 0)]);
    let kinds: Vec<(PacketType, bool)> =
        ring.iter().map(|packet| (packet.header().kind(), packet.header().barrier())).collect();
    let (kernel, vendor) = (PacketType::KERNEL_DISPATCH, PacketType::VENDOR_SPECIFIC);
    assert_eq!(
        kinds,
        [
            (kernel, true),
            (vendor, true),
            (kernel, true),
            (vendor, true),
            (vendor, true),
            (vendor, false),
            (kernel, true),
            (vendor, true),
            (vendor, true),
            (PacketType::BARRIER_AND, true),
        ]
    );
}

#[test]
fn application_barrier_gets_an_announcement_and_a_gate_behind_it() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    engine.subscribe(FakeService::new(|_| Plan::Count).subscription(&[AGENT], true)).unwrap();
    let app = device.app_signal(1);
    let ring = queue.submit(&[app_barrier(app), kernel(1, 0)]);
    let counter = ring[7].completion_signal();
    let bell = ring[8].completion_signal();
    let gate = ring[3].completion_signal();
    assert_eq!(ring[0], app_barrier(app), "packets of the application keep their place");
    assert_eq!(ring[1], our_barrier(0, counter));
    assert_eq!(ring[2], our_barrier(0, bell), "the announcement is heard before the queue waits");
    assert_eq!(ring[3], our_barrier(gate, gate));
    assert_eq!(ring[4], vendor(START, false), "ordered by the gate");
    assert_eq!(ring.len(), 9);
    assert_eq!(device.value(gate), 1, "closed");
}

#[test]
fn a_kernel_runs_uninstrumented_when_no_signal_can_be_made() {
    let device = FakeDevice::new();
    let engine = Engine::new(device.clone(), [AGENT]);
    let queue = FakeQueue::new(&engine, &device, AGENT);
    let service = FakeService::new(|_| Plan::Count);
    engine.subscribe(service.subscription(&[AGENT], true)).unwrap();
    device.refuse_signals(true);
    assert_eq!(queue.submit(&[kernel(1, 0)]), [kernel(1, 0)]);
    assert!(service.dispatched().is_empty(), "nobody was asked for it");
    device.refuse_signals(false);
    queue.submit(&[kernel(2, 0)]);
    assert_eq!(service.dispatched().len(), 1);
}
