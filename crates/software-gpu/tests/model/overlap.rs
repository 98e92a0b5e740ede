//! Kernels of one queue beside each other: what the barrier bit and barrier packets allow, in the times of the
//! signals and in the placement log.
//!
//! The host is slow here ([`slow_clock`]): whatever the model does takes longer than the kernels last.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use wavescope_core::{AqlPacket, PacketType};
use wavescope_software_gpu::{ClockHost, DeviceConfig, DeviceOptions, DispatchTruth, Truth, WaveTruth};

use crate::rig::stream::Recorded;
use crate::rig::{Clock, Rig, RigQueue, barrier, dispatch, overlapping, slow_clock, virtual_clock};

const SMALL: [u32; 3] = [64, 1, 1];
/// A wave for each slot of an MI300X.
const FULL: [u32; 3] = [64 * 304 * 32, 1, 1];

fn slow_rig() -> Rig {
    Rig::with(DeviceConfig::mi300x(), DeviceOptions::default(), slow_clock(), 16 << 30)
}

fn dispatches(rig: &Rig) -> Vec<DispatchTruth> {
    let truth = rig.notes.0.lock().unwrap();
    let dispatch = |truth: &Truth| if let Truth::Dispatch(dispatch) = truth { Some(*dispatch) } else { None };
    truth.iter().filter_map(dispatch).collect()
}

/// Submits the packets with one doorbell and waits for all signals.
fn run(rig: &Rig, packets: &[AqlPacket], signals: &[u64]) {
    rig.queue(16).submit_and(packets, || signals.iter().for_each(|&signal| rig.wait(signal, 0)));
}

/// The times of two kernels of these grids in one queue, `between` them whatever the caller wants. `between` is told the
/// first kernel's signal.
fn pair(rig: &Rig, barrier_bit: bool, between: impl FnOnce(u64) -> Vec<AqlPacket>) -> [(u64, u64); 2] {
    let (kernel, signals) = (rig.kernel(0), [rig.signal(1), rig.signal(1)]);
    let [first, second] = signals.map(|signal| {
        let packet = dispatch(kernel, SMALL, [64, 1, 1], signal);
        if barrier_bit { packet } else { overlapping(packet) }
    });
    let mut packets = vec![first];
    packets.extend(between(signals[0]));
    packets.push(second);
    run(rig, &packets, &signals);
    signals.map(|signal| rig.times(signal))
}

/// Waves in the order of the log, which is that of dispatches.
fn waves_of(rig: &Rig, dispatch: u64) -> Vec<WaveTruth> {
    rig.waves().into_iter().filter(|wave| wave.dispatch == dispatch).collect()
}

fn resident_together(rig: &Rig) -> bool {
    let (first, second) = (waves_of(rig, 1), waves_of(rig, 2));
    first.iter().any(|a| second.iter().any(|b| a.start < b.end && b.start < a.end))
}

/// Each slot holds one wave at a time.
fn assert_no_slot_twice(rig: &Rig) {
    let mut slots: HashMap<_, Vec<(u64, u64)>> = HashMap::new();
    for wave in rig.waves() {
        let slot = (wave.xcc, wave.se, wave.sa, wave.cu, wave.simd, wave.slot);
        slots.entry(slot).or_default().push((wave.start, wave.end));
    }
    for (slot, mut held) in slots {
        held.sort_unstable();
        assert!(held.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{slot:?}: {held:?}");
    }
}

#[test]
fn kernels_without_the_barrier_bit_overlap_however_slow_the_host_is() {
    let rig = slow_rig();
    let [first, second] = pair(&rig, false, |_| Vec::new());
    assert!(first.0 <= second.0 && second.0 < first.1, "{first:?} {second:?}");
    assert!(resident_together(&rig));
    assert_no_slot_twice(&rig);
}

#[test]
fn the_same_on_a_clock_that_is_real() {
    let clock = Clock::Real(ClockHost::new());
    let rig = Rig::with(DeviceConfig::mi300x(), DeviceOptions::default(), clock, 16 << 30);
    for _ in 0..100 {
        let [first, second] = pair(&rig, false, |_| Vec::new());
        assert!(first.0 <= second.0 && second.0 < first.1, "{first:?} {second:?}");
    }
    assert_no_slot_twice(&rig);
}

#[test]
fn the_barrier_bit_keeps_kernels_apart() {
    let rig = slow_rig();
    let [first, second] = pair(&rig, true, |_| Vec::new());
    assert!(first.1 <= second.0, "{first:?} {second:?}");
    assert!(!resident_together(&rig));
}

#[test]
fn a_barrier_packet_with_the_barrier_bit_keeps_kernels_apart() {
    for kind in [PacketType::BARRIER_AND, PacketType::BARRIER_OR] {
        let rig = slow_rig();
        let mut between = barrier(kind, &[], 0);
        between.0[0] |= 1 << 8;
        let [first, second] = pair(&rig, false, |_| vec![between]);
        assert!(first.1 <= second.0, "{first:?} {second:?}");
        assert!(!resident_together(&rig));
    }
}

#[test]
fn a_barrier_packet_on_the_first_kernels_signal_keeps_them_apart() {
    let rig = slow_rig();
    let wait = |signal| vec![barrier(PacketType::BARRIER_AND, &[signal], 0)];
    let [first, second] = pair(&rig, false, wait);
    assert!(first.1 <= second.0, "{first:?} {second:?}");
    assert!(!resident_together(&rig));
}

// The packet processor launches in order: a kernel's first wave comes when the last one of the kernel before has begun,
// on a host that is slower than the GPU and on one that takes no time at all.
#[test]
fn a_kernel_begins_when_the_one_before_is_launched_whole() {
    for clock in [slow_clock(), virtual_clock()] {
        // 1024 wave slots.
        let config = DeviceConfig { compute_units: 32, ..DeviceConfig::mi300x() };
        let rig = Rig::with(config, DeviceOptions::default(), clock, 16 << 30);
        let (kernel, done) = (rig.kernel(0), rig.signal(3));
        let full = overlapping(dispatch(kernel, [64 * 4096, 1, 1], [64, 1, 1], done));
        let small = overlapping(dispatch(kernel, SMALL, [64, 1, 1], done));
        run(&rig, &[full, small, full], &[done]);
        for number in 1..=2 {
            let last = waves_of(&rig, number).iter().map(|wave| wave.start).max();
            let first = waves_of(&rig, number + 1).iter().map(|wave| wave.start).min();
            assert!(last <= first, "dispatch {number}: {last:?} {first:?}");
        }
        assert!(resident_together(&rig), "the tail of the first overlaps");
        assert_no_slot_twice(&rig);
    }
}

#[test]
fn a_kernel_that_nobody_rang_for_yet_begins_after_its_doorbell() {
    let rig = slow_rig();
    let (mut queue, kernel, signals) = (rig.queue(16), rig.kernel(0), [rig.signal(1), rig.signal(1)]);
    let packets = signals.map(|signal| overlapping(dispatch(kernel, SMALL, [64, 1, 1], signal)));
    queue.submit(&packets[..1]);
    rig.wait(signals[0], 0);
    let rung = rig.device.clock();
    queue.submit(&packets[1..]);
    rig.wait(signals[1], 0);
    assert!(rig.times(signals[1]).0 >= rung, "{:?}, rung at {rung}", rig.times(signals[1]));
}

// Rung for together, but the second packet's place is written later.
#[test]
fn a_kernel_that_is_not_written_yet_begins_after_it_is() {
    let rig = slow_rig();
    let (queue, kernel, signals) = (rig.queue(16), rig.kernel(0), [rig.signal(1), rig.signal(1)]);
    let packets = signals.map(|signal| overlapping(dispatch(kernel, SMALL, [64, 1, 1], signal)));
    rig.arena().store_dwords(queue.config.ring, &packets[0].0);
    queue.queue.ring(1);
    rig.wait(signals[0], 0);
    let written = rig.device.clock();
    rig.arena().store_dwords(queue.config.ring + 64 + 4, &packets[1].0[1..]);
    rig.arena().store_u32(queue.config.ring + 64, packets[1].0[0]);
    rig.wait(signals[1], 0);
    assert!(rig.times(signals[1]).0 >= written, "{:?}, written at {written}", rig.times(signals[1]));
}

/// Holds up whoever writes there while `meanwhile` happens, once `held` says that it is.
fn held_at(
    rig: &Rig,
    address: u64,
    submit: impl FnOnce(),
    held: impl FnMut() -> bool,
    meanwhile: impl FnOnce(),
) {
    rig.host.stalled.store(address, Ordering::SeqCst);
    rig.host.stall.store(true, Ordering::SeqCst);
    submit();
    assert!(crate::rig::within_time(std::time::Duration::from_secs(20), held));
    meanwhile();
    rig.host.stall.store(false, Ordering::SeqCst);
}

/// Submits two packets; while the queue stands between their launches, `meanwhile` happens.
fn between_launches(
    rig: &Rig,
    queue: &mut RigQueue,
    packets: &[AqlPacket; 2],
    meanwhile: impl FnOnce(&mut RigQueue),
) {
    // Giving the first packet's place back moves the read index: held there, the first is launched and the second not.
    let (before, read_index) = (dispatches(rig).len(), queue.config.read_index);
    let queue = std::cell::RefCell::new(queue);
    let launched = || dispatches(rig).len() > before;
    let submit = || queue.borrow_mut().submit(packets);
    held_at(rig, read_index, submit, launched, || meanwhile(&mut queue.borrow_mut()));
}

/// Two kernels that may overlap; while the queue stands between their launches, `meanwhile` happens.
fn interrupted(rig: &Rig, meanwhile: impl FnOnce()) {
    let (mut queue, kernel, done) = (rig.queue(16), rig.kernel(0), rig.signal(2));
    let packets = [overlapping(dispatch(kernel, SMALL, [64, 1, 1], done)); 2];
    between_launches(rig, &mut queue, &packets, |_| meanwhile());
    rig.wait(done, 0);
}

// The doorbell comes while the model is at the kernels before: they are over in the device's time.
#[test]
fn a_kernel_begins_after_its_doorbell_though_it_waits_when_the_one_before_is_launched() {
    let rig = slow_rig();
    let (mut queue, kernel) = (rig.queue(16), rig.kernel(0));
    let signals = [rig.signal(1), rig.signal(1), rig.signal(1)];
    let packet = |signal| overlapping(dispatch(kernel, SMALL, [64, 1, 1], signal));
    let [first, second, third] = signals.map(packet);
    let mut rung = 0;
    between_launches(&rig, &mut queue, &[first, second], |queue| {
        rung = rig.device.clock();
        queue.submit(&[third]);
    });
    signals.iter().for_each(|&signal| rig.wait(signal, 0));
    let times = signals.map(|signal| rig.times(signal));
    assert!(times[1].0 < times[0].1, "the first two were rung for together: {times:?}");
    assert!(times[2].0 >= rung, "{times:?}, rung at {rung}");
}

// The same, where the doorbell covered its place before it was written.
#[test]
fn a_kernel_begins_after_it_is_written_though_it_waits_when_the_one_before_is_launched() {
    let rig = slow_rig();
    let (mut queue, kernel) = (rig.queue(16), rig.kernel(0));
    let signals = [rig.signal(1), rig.signal(1), rig.signal(1)];
    let [first, second, third] =
        signals.map(|signal| overlapping(dispatch(kernel, SMALL, [64, 1, 1], signal)));
    queue.queue.ring(2);
    let mut written = 0;
    between_launches(&rig, &mut queue, &[first, second], |queue| {
        written = rig.device.clock();
        queue.submit(&[third]);
    });
    signals.iter().for_each(|&signal| rig.wait(signal, 0));
    let times = signals.map(|signal| rig.times(signal));
    assert!(times[2].0 >= written, "{times:?}, written at {written}");
}

// Who submits a kernel because another has completed sees it begin after that one's end.
#[test]
fn a_kernel_begins_after_the_end_of_one_that_had_completed_when_it_was_submitted() {
    let rig = slow_rig();
    let (queue, kernel) = (rig.queue(16), rig.kernel(0));
    let signals = [rig.interrupt_signal(1, 7), rig.signal(1), rig.signal(1)];
    let [first, second, third] =
        signals.map(|signal| overlapping(dispatch(kernel, SMALL, [64, 1, 1], signal)));
    let queue = std::cell::RefCell::new(queue);
    // The mailbox is written behind the value: held there, the first has completed and the second is not launched.
    let mailbox = rig.arena().load(signals[0] + 16);
    let completed = || rig.value(signals[0]) == 0;
    let submit = || queue.borrow_mut().submit(&[first, second]);
    held_at(&rig, mailbox, submit, completed, || queue.borrow_mut().submit(&[third]));
    signals.iter().for_each(|&signal| rig.wait(signal, 0));
    let times = signals.map(|signal| rig.times(signal));
    assert!(times[1].0 < times[0].1, "the second did not wait for the first: {times:?}");
    assert!(times[2].0 >= times[0].1, "the third did: {times:?}");
}

// However long the model takes for each: what was rung for together was there together.
#[test]
fn all_kernels_of_a_doorbell_overlap() {
    let rig = slow_rig();
    let (kernel, signals) = (rig.kernel(0), [(); 4].map(|()| rig.signal(1)));
    let packets = signals.map(|signal| overlapping(dispatch(kernel, SMALL, [64, 1, 1], signal)));
    run(&rig, &packets, &signals);
    let times = signals.map(|signal| rig.times(signal));
    assert!(times.iter().all(|&(start, _)| start < times[0].1), "{times:?}");
    assert_no_slot_twice(&rig);
}

// What has been read must not change: a kernel does not begin before a moment at which somebody looked.
#[test]
fn a_kernel_does_not_begin_before_what_another_queue_has_read() {
    let recorded = Recorded::own("gfx942", "pmc-mix-grbm-sq.json");
    let rig = Rig::with(recorded.config(), DeviceOptions::default(), slow_clock(), 16 << 30);
    let loaded = recorded.load(&rig);
    let read = rig.signal(1);
    interrupted(&rig, || {
        rig.queue(16).submit_and(&[loaded.packet("start", 0), loaded.packet("read", read)], || {
            rig.wait(read, 0);
        });
    });
    let [first, second] = dispatches(&rig)[..] else { panic!("two dispatches") };
    let cycles = rig.device.config().cycles_per_tick();
    assert!(second.start >= rig.times(read).0 * cycles, "{first:?} {second:?} {:?}", rig.times(read));
}

// Placing forgets what is over; nobody may come later and begin earlier.
#[test]
fn a_kernel_does_not_begin_before_waves_that_another_queue_has_placed() {
    let rig = slow_rig();
    let (kernel, other) = (rig.kernel(0), rig.signal(1));
    interrupted(&rig, || {
        let packet = dispatch(kernel, FULL, [64, 1, 1], other);
        rig.queue(16).submit_and(&[packet], || rig.wait(other, 0));
    });
    let [_, between, second] = dispatches(&rig)[..] else { panic!("three dispatches") };
    assert!(second.start >= between.start, "{second:?} {between:?}");
    assert_no_slot_twice(&rig);
}
