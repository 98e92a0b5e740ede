//! The packet processor: order, dependencies, completion, errors.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::rig::{Clock, Rig, barrier, barrier_value, commands, dispatch, within_time};
use wavescope_core::{AqlPacket, PacketType};
use wavescope_software_gpu::{
    ClockHost, CompletionFault, DeviceConfig, DeviceOptions, Doorbell, Error, Fault, FaultPlan, Queue,
    QueueFault,
};

/// Long enough to be sure that something does not happen.
const NEVER: Duration = Duration::from_millis(50);

fn rig() -> Rig {
    Rig::real_time(DeviceConfig::mi300x())
}

fn rig_with(fault: Fault) -> Rig {
    let options = DeviceOptions { faults: FaultPlan { faults: vec![fault] }, ..DeviceOptions::default() };
    Rig::with(DeviceConfig::mi300x(), options, Clock::Real(ClockHost::new()), 1 << 30)
}

#[test]
fn a_dispatch_completes_its_signal_with_its_times() {
    let rig = rig();
    let mut queue = rig.queue(16);
    let (kernel, signal) = (rig.kernel(0), rig.interrupt_signal(1, 77));
    let before = rig.device.clock();
    queue.submit(&[dispatch(kernel, [1000, 1, 1], [256, 1, 1], signal)]);
    rig.wait(signal, 0);
    let (start, end) = rig.times(signal);
    assert!(before <= start && start < end && end <= rig.device.clock());
    assert!(within_time(Duration::from_secs(5), || !rig.host.events.lock().unwrap().is_empty()));
    assert_eq!(*rig.host.events.lock().unwrap(), [(signal, 77)]);
    assert_eq!(rig.arena().load(rig.arena().load(signal + 16)), 77, "the mailbox holds the event id");
    assert_eq!(queue.read_index(), 1);
    assert_eq!(rig.arena().load_u16(queue.config.ring) & 0xFF, 1, "the place in the ring is invalid again");
}

#[test]
fn a_ring_wraps_many_times_and_loses_nothing() {
    let rig = rig();
    let mut queue = rig.queue(16);
    let signal = rig.signal(10_000);
    let packet = barrier(PacketType::BARRIER_AND, &[], signal);
    for batch in [1, 3, 16, 7, 16] {
        for _ in 0..10_000 / 5 / batch {
            queue.submit(&vec![packet; batch]);
        }
        queue.submit(&vec![packet; 10_000 / 5 % batch]);
    }
    rig.wait(signal, 0);
    assert_eq!(rig.value(signal), 0);
    assert_eq!(queue.read_index(), 10_000);
}

#[test]
fn barrier_and_waits_for_all_barrier_or_for_one() {
    let rig = rig();
    let mut queue = rig.queue(16);
    let (a, b, done) = (rig.signal(1), rig.signal(1), rig.signal(2));
    queue.submit(&[
        barrier(PacketType::BARRIER_OR, &[0, a, b], done),
        barrier(PacketType::BARRIER_AND, &[a, 0, b], done),
    ]);
    assert!(!rig.falls(done, 1, NEVER));
    rig.arena().store(a + 8, 0);
    rig.wait(done, 1);
    assert!(!rig.falls(done, 0, NEVER));
    rig.arena().store(b + 8, 0);
    rig.wait(done, 0);
}

#[test]
fn a_chain_of_dependencies_over_queues_ends() {
    let rig = rig();
    let kernel = rig.kernel(0);
    let signals: Vec<u64> = (0..8).map(|_| rig.signal(1)).collect();
    let mut queues: Vec<_> = (0..7).map(|_| rig.queue(8)).collect();
    for (index, queue) in queues.iter_mut().enumerate() {
        queue.submit(&[
            barrier(PacketType::BARRIER_AND, &[signals[index]], 0),
            dispatch(kernel, [64, 1, 1], [64, 1, 1], signals[index + 1]),
        ]);
    }
    assert!(!rig.falls(signals[7], 0, NEVER));
    rig.arena().store(signals[0] + 8, 0);
    rig.device.poke();
    rig.wait(signals[7], 0);
    let ends: Vec<(u64, u64)> = signals[1..].iter().map(|&signal| rig.times(signal)).collect();
    assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "each kernel starts after the one before");
}

#[test]
fn barrier_value_compares_the_masked_value() {
    let rig = rig();
    let mut queue = rig.queue(16);
    for (condition, reference, passing, blocking) in
        [(0, 5, 0xF5, 6), (1, 5, 4, 0x15), (2, 5, 4, 5), (3, 5, 0x16, 4)]
    {
        let (on, done) = (rig.signal(blocking), rig.signal(1));
        queue.submit(&[barrier_value(on, condition, reference, 0xF, done)]);
        assert!(!rig.falls(done, 0, NEVER), "condition {condition} must block at {blocking:#x}");
        rig.arena().store(on + 8, passing as u64);
        rig.wait(done, 0);
    }
    let done = rig.signal(1);
    queue.submit(&[barrier_value(0, 0, 5, -1, done)]);
    rig.wait(done, 0);
}

#[test]
fn a_lower_doorbell_value_changes_nothing() {
    let rig = rig();
    let mut queue = rig.queue(16);
    let signal = rig.signal(2);
    queue.submit(&[barrier(PacketType::BARRIER_AND, &[], signal); 2]);
    queue.queue.ring(0);
    queue.queue.ring(u64::MAX);
    rig.wait(signal, 0);
}

#[test]
fn a_doorbell_in_memory_is_noticed() {
    let rig = rig();
    let doorbell = rig.arena().allocate(8);
    rig.arena().store(doorbell, u64::MAX);
    let queue = rig.queue_with(16, Doorbell::Memory(doorbell)).unwrap();
    let signal = rig.signal(2);
    for index in 0..2 {
        assert!(!rig.falls(signal, 1 - index, NEVER));
        let packet = barrier(PacketType::BARRIER_AND, &[], signal);
        rig.arena().store_dwords(queue.config.ring + 64 * index as u64, &packet.0);
        rig.arena().store(doorbell, index as u64);
        rig.wait(signal, 1 - index);
    }
}

// Two producers reserve places; the second writes and rings before the first has written.
#[test]
fn a_packet_that_is_not_written_yet_holds_the_queue() {
    let rig = rig();
    let queue = rig.queue(16);
    let signal = rig.signal(1);
    let packet = barrier(PacketType::BARRIER_AND, &[], signal);
    rig.arena().store_dwords(queue.config.ring + 64, &packet.0);
    queue.queue.ring(1);
    assert!(!rig.falls(signal, 0, NEVER));
    rig.arena().store_dwords(queue.config.ring, &barrier(PacketType::BARRIER_AND, &[], 0).0);
    rig.wait(signal, 0);
}

#[test]
fn an_agent_has_128_queues_and_gives_them_back() {
    let rig =
        Rig::with(DeviceConfig::mi300x(), DeviceOptions::default(), Clock::Real(ClockHost::new()), 1 << 30);
    let mut queues: Vec<_> = (0..Queue::LIMIT).map(|_| rig.queue(16)).collect();
    assert!(matches!(rig.try_queue(16), Err(Error::TooManyQueues { limit: 128 })));
    queues.pop();
    queues.push(rig.queue(16));
    let signal = rig.signal(Queue::LIMIT as i64);
    for queue in &mut queues {
        queue.submit(&[barrier(PacketType::BARRIER_AND, &[], signal)]);
    }
    rig.wait(signal, 0);
}

#[test]
fn a_completion_that_stalls_stops_no_other_queue() {
    let rig = rig();
    let kernel = rig.kernel(0);
    let (mut stuck, mut free) = (rig.queue(16), rig.queue(16));
    let (slow, quick) = (rig.signal(1), rig.signal(100));
    rig.host.stalled.store(slow + 8, Ordering::SeqCst);
    rig.host.stall.store(true, Ordering::SeqCst);
    stuck.submit(&[dispatch(kernel, [64, 1, 1], [64, 1, 1], slow)]);
    assert!(!rig.falls(slow, 0, NEVER));
    for _ in 0..100 {
        free.submit(&[dispatch(kernel, [64, 1, 1], [64, 1, 1], quick)]);
    }
    rig.wait(quick, 0);
    assert_eq!(rig.value(slow), 1);
    rig.host.stall.store(false, Ordering::SeqCst);
    rig.wait(slow, 0);
}

fn error_of(rig: &Rig) -> QueueFault {
    assert!(within_time(Duration::from_secs(5), || !rig.host.errors.lock().unwrap().is_empty()), "no error");
    rig.host.errors.lock().unwrap()[0].1
}

#[test]
fn bad_packets_stop_their_queue_with_a_reason() {
    let unknown = AqlPacket([4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let no_workgroup = dispatch(0x1000, [64, 1, 1], [0, 1, 1], 0);
    let wild_kernel = dispatch(0x1000, [64, 1, 1], [64, 1, 1], 0);
    let wild_signal = barrier(PacketType::BARRIER_AND, &[], 0x40);
    let wild_commands = commands(0xDEAD_0000, 4, 0);
    let cases = [
        (unknown, QueueFault::InvalidPacket { index: 0 }),
        (no_workgroup, QueueFault::InvalidDispatch { index: 0 }),
        (wild_kernel, QueueFault::Memory { address: 0x1000 }),
        (wild_signal, QueueFault::Memory { address: 0x40 + 16 }),
        (wild_commands, QueueFault::Memory { address: 0xDEAD_0000 }),
    ];
    for (packet, fault) in cases {
        let rig = rig();
        let (mut bad, mut good) = (rig.queue(16), rig.queue(16));
        let signal = rig.signal(2);
        bad.submit(&[packet, barrier(PacketType::BARRIER_AND, &[], signal)]);
        assert_eq!(error_of(&rig), fault);
        good.submit(&[barrier(PacketType::BARRIER_AND, &[], signal)]);
        rig.wait(signal, 1);
        assert!(!rig.falls(signal, 0, NEVER), "a stopped queue takes no packet");
        assert_eq!(rig.host.errors.lock().unwrap().len(), 1);
    }
}

#[test]
fn rubbish_in_a_command_buffer_names_its_dword() {
    let rig = rig();
    let mut queue = rig.queue(16);
    let buffer = rig.arena().allocate(64);
    rig.arena().store_dwords(buffer, &[0xC001_7900, 0x200, 0xE000_0000, 0xC000_9900, 0]);
    queue.submit(&[commands(buffer, 5, 0)]);
    assert_eq!(error_of(&rig), QueueFault::InvalidCommands { index: 0, offset: 3 });
}

const SECOND_PACKET: CompletionFault = CompletionFault { queue: 0, packet: 1, micros: 0 };

fn three_kernels(rig: &Rig) -> (crate::rig::RigQueue, [u64; 3]) {
    let kernel = rig.kernel(0);
    let signals = [rig.signal(1), rig.signal(1), rig.signal(1)];
    let mut queue = rig.queue(16);
    queue.submit(&signals.map(|signal| dispatch(kernel, [64, 1, 1], [64, 1, 1], signal)));
    (queue, signals)
}

#[test]
fn a_lost_completion_never_comes_and_the_queue_goes_on() {
    let rig = rig_with(Fault::LoseCompletion(SECOND_PACKET));
    let (_queue, [first, second, third]) = three_kernels(&rig);
    rig.wait(third, 0);
    assert_eq!((rig.value(first), rig.value(second)), (0, 1));
}

#[test]
fn a_late_completion_comes_after_its_delay() {
    let rig = rig_with(Fault::DelayCompletion(CompletionFault { micros: 20_000, ..SECOND_PACKET }));
    let (_queue, [_, second, third]) = three_kernels(&rig);
    rig.wait(third, 0);
    assert_eq!(rig.value(second), 1, "later packets do not wait");
    rig.wait(second, 0);
    assert!(rig.device.clock() >= rig.times(second).1 + 2_000_000);
}

#[test]
fn a_reordered_completion_comes_after_the_next_one() {
    let rig = rig_with(Fault::ReorderCompletion(SECOND_PACKET));
    let kernel = rig.kernel(0);
    let (events, mut queue) = ([31, 32, 33], rig.queue(16));
    let signals = events.map(|event| rig.interrupt_signal(1, event));
    queue.submit(&signals.map(|signal| dispatch(kernel, [64, 1, 1], [64, 1, 1], signal)));
    assert!(within_time(Duration::from_secs(5), || rig.host.events.lock().unwrap().len() == 3));
    let order: Vec<u32> = rig.host.events.lock().unwrap().iter().map(|event| event.1).collect();
    assert_eq!(order, [31, 33, 32]);
}

#[test]
fn a_hang_stops_at_its_packet() {
    let rig = rig_with(Fault::Hang(SECOND_PACKET));
    let (queue, [first, second, _]) = three_kernels(&rig);
    rig.wait(first, 0);
    assert!(!rig.falls(second, 0, NEVER));
    assert_eq!(queue.read_index(), 1);
}

#[test]
fn an_injected_error_and_a_failed_queue_are_reported() {
    let rig = rig_with(Fault::QueueError { queue: 1, packet: 1, status: 0x1016 });
    let (_queue, _) = three_kernels(&rig);
    assert_eq!(error_of(&rig), QueueFault::Injected(0x1016));
    let rig = rig_with(Fault::FailQueue(2));
    let _first = rig.queue(16);
    assert!(matches!(rig.try_queue(16), Err(Error::Injected(_))));
    assert!(rig.try_queue(16).is_ok());
}

#[test]
fn dropping_a_queue_with_work_in_flight_returns() {
    let rig = rig();
    let never = rig.signal(1);
    let mut queue = rig.queue(16);
    queue.submit(&[barrier(PacketType::BARRIER_AND, &[never], 0)]);
    drop(queue);
    assert_eq!(rig.value(never), 1);
}
