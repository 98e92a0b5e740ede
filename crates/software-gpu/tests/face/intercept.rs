//! Intercept queues: what handlers see, what their writers do, and where ROCr's limits are.

use std::cell::RefCell;
use std::ffi::c_void;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hsa_sys::*;
use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};
use wavescope_software_gpu::face::Options;
use wavescope_software_gpu::{CompletionFault, Fault, FaultPlan};
use wavescope_workload::Signal;

use crate::rig::{Rig, SOON, hsa};

/// An intercept queue with a handler of the test.
struct Intercepted<'a> {
    rig: &'a Rig,
    queue: *mut hsa_queue_t,
    size: u64,
}

type Writer<'w> = &'w dyn Fn(&[AqlPacket]);

/// A handler of the test: packets, index of the first, writer.
struct Hook<'a>(Mutex<Box<Rewrite<'a>>>);

type Rewrite<'a> = dyn FnMut(&[AqlPacket], u64, Writer<'_>) + Send + 'a;

unsafe extern "C-unwind" fn run_hook(
    packets: *const c_void,
    count: u64,
    index: u64,
    hook: *mut c_void,
    writer: hsa_amd_queue_intercept_packet_writer,
) {
    // SAFETY: the hook that was registered; it outlives its queue.
    let hook = unsafe { &*hook.cast::<Hook<'_>>() };
    // SAFETY: `count` packets, as the runtime promises.
    let packets = unsafe { std::slice::from_raw_parts(packets.cast::<AqlPacket>(), count as usize) };
    let write = |packets: &[AqlPacket]| {
        // SAFETY: `packets` is a live slice; the writer belongs to this call.
        unsafe { writer.unwrap()(packets.as_ptr().cast(), packets.len() as u64) }
    };
    (hook.0.lock().unwrap())(packets, index, &write);
}

impl<'a> Intercepted<'a> {
    fn new(rig: &'a Rig, size: u32) -> Self {
        let mut queue = std::ptr::null_mut();
        let (agent, kind, none) = (rig.gpu().agent(), HSA_QUEUE_TYPE_MULTI.0, std::ptr::null_mut());
        let status = hsa!(
            rig.table(),
            amd_ext_.hsa_amd_queue_intercept_create_fn(agent, size, kind, None, none, 0, 0, &raw mut queue)
        );
        assert_eq!(status, HSA_STATUS_SUCCESS);
        Self { rig, queue, size: u64::from(size) }
    }

    fn register(&self, hook: &Hook<'_>) {
        let data = std::ptr::from_ref(hook).cast_mut().cast();
        let status = hsa!(
            self.rig.table(),
            amd_ext_.hsa_amd_queue_intercept_register_fn(self.queue, Some(run_hook), data)
        );
        assert_eq!(status, HSA_STATUS_SUCCESS);
    }

    /// Writes packets without ringing; returns the last index.
    fn write(&self, packets: &[AqlPacket]) -> u64 {
        let table = self.rig.table();
        let count = packets.len() as u64;
        let first = hsa!(table, core_.hsa_queue_add_write_index_relaxed_fn(self.queue, count));
        let start = std::time::Instant::now();
        while first + count
            > hsa!(table, core_.hsa_queue_load_read_index_scacquire_fn(self.queue)) + self.size
        {
            assert!(start.elapsed() < SOON, "the queue does not move");
            std::thread::yield_now();
        }
        for (index, packet) in (first..).zip(packets) {
            // SAFETY: the queue lives.
            let base = unsafe { (*self.queue).base_address }.cast::<AqlPacket>();
            let place = base.wrapping_add((index % self.size) as usize);
            // SAFETY: a reserved place; the runtime reads it after the doorbell.
            unsafe { place.write(*packet) };
        }
        first + count - 1
    }

    fn ring(&self, index: u64) {
        // SAFETY: the queue lives.
        let doorbell = unsafe { (*self.queue).doorbell_signal };
        hsa!(self.rig.table(), core_.hsa_signal_store_screlease_fn(doorbell, index.cast_signed()));
    }

    fn submit(&self, packets: &[AqlPacket]) {
        self.ring(self.write(packets));
    }

    fn read_index(&self) -> u64 {
        hsa!(self.rig.table(), core_.hsa_queue_load_read_index_scacquire_fn(self.queue))
    }
}

impl Drop for Intercepted<'_> {
    fn drop(&mut self) {
        assert_eq!(hsa!(self.rig.table(), core_.hsa_queue_destroy_fn(self.queue)), HSA_STATUS_SUCCESS);
    }
}

fn barrier(completion: Option<&Signal>) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::BARRIER_AND, true, Fence::System, Fence::System));
    packet.set_completion_signal(completion.map_or(0, |signal| signal.handle().handle));
    packet
}

/// A barrier that waits for `gate`.
fn gated(gate: &Signal, completion: Option<&Signal>) -> AqlPacket {
    let mut packet = barrier(completion);
    let handle = gate.handle().handle;
    packet.0[2..4].copy_from_slice(&[handle as u32, (handle >> 32) as u32]);
    packet
}

fn hook<'a>(run: impl FnMut(&[AqlPacket], u64, Writer<'_>) + Send + 'a) -> Hook<'a> {
    Hook(Mutex::new(Box::new(run)))
}

#[test]
fn handler_gets_every_packet_of_a_doorbell_in_one_call() {
    let rig = Rig::new();
    let seen = Mutex::new(Vec::new());
    let pass = hook(|packets, index, write| {
        seen.lock().unwrap().push((packets.len(), index));
        write(packets);
    });
    let queue = Intercepted::new(&rig, 64);
    queue.register(&pass);
    let sizes = [1, 2, 63, 64, 7, 64];
    for size in sizes {
        let done = rig.application.signal(size).unwrap();
        queue.submit(&vec![barrier(Some(&done)); size as usize]);
        assert_eq!(done.wait_below(1, SOON).unwrap(), 0);
    }
    let expected: Vec<_> = sizes
        .iter()
        .scan(0, |first, &size| {
            *first += size as u64;
            Some((size as usize, *first - size as u64))
        })
        .collect();
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(queue.read_index(), sizes.iter().sum::<i64>().cast_unsigned());
}

#[test]
fn packets_behind_an_unfinished_one_wait_for_the_next_doorbell() {
    let rig = Rig::new();
    let seen = Mutex::new(Vec::new());
    let pass = hook(|packets, index, write| {
        seen.lock().unwrap().push((packets.len(), index));
        write(packets);
    });
    let queue = Intercepted::new(&rig, 64);
    queue.register(&pass);
    let done = rig.application.signal(3).unwrap();
    let mut packets = [barrier(Some(&done)); 3];
    packets[1].0[0] = 1; // INVALID: its producer has not finished.
    let last = queue.write(&packets);
    queue.ring(last);
    assert_eq!(*seen.lock().unwrap(), [(1, 0)]);
    // SAFETY: the queue lives.
    let base = unsafe { (*queue.queue).base_address }.cast::<AqlPacket>();
    // SAFETY: the place of the second packet, which the runtime left alone.
    unsafe { base.wrapping_add(1).write(barrier(Some(&done))) };
    queue.ring(last);
    done.wait_below(1, SOON).unwrap();
    assert_eq!(*seen.lock().unwrap(), [(1, 0), (2, 1)]);
}

#[test]
fn handlers_run_newest_first_and_the_last_writer_reaches_the_device() {
    let rig = Rig::new();
    let order = Mutex::new(Vec::new());
    let done = rig.application.signal(3).unwrap();
    let completing = barrier(Some(&done));
    let old = hook(|packets, _, write| {
        order.lock().unwrap().push(("old", packets.len()));
        write(packets);
    });
    let new = hook(|packets, _, write| {
        order.lock().unwrap().push(("new", packets.len()));
        write(&[packets, &[completing, completing]].concat());
    });
    let queue = Intercepted::new(&rig, 64);
    queue.register(&old);
    queue.register(&new);
    queue.submit(&[completing]);
    assert_eq!(done.wait_below(1, SOON).unwrap(), 0);
    assert_eq!(*order.lock().unwrap(), [("new", 1), ("old", 3)]);
}

#[test]
fn rewrite_larger_than_the_ring_goes_in_by_pieces_and_in_order() {
    let rig = Rig::new();
    // 20 packets become 1,000 on a ring of 64: each batch overflows many times.
    let done: Vec<_> = (0..20).map(|_| rig.application.signal(50).unwrap()).collect();
    let multiply = hook(|packets, _, write| {
        let many: Vec<_> = packets.iter().flat_map(|packet| [*packet; 50]).collect();
        write(&many);
    });
    let queue = Intercepted::new(&rig, 64);
    queue.register(&multiply);
    let packets: Vec<_> = done.iter().map(|signal| barrier(Some(signal))).collect();
    queue.submit(&packets);
    for (index, signal) in done.iter().enumerate() {
        assert_eq!(signal.wait_below(1, SOON).unwrap(), 0, "packet {index}");
        // In order: what comes later cannot be complete before this one is.
        assert!(done[..index].iter().all(|earlier| earlier.load().unwrap() == 0));
    }
}

#[test]
fn overflow_waits_without_blocking_the_thread_that_rang() {
    let rig = Rig::new();
    let gate = rig.application.signal(1).unwrap();
    let done = rig.application.signal(120).unwrap();
    let double = hook(|packets, _, write| {
        let twice: Vec<_> = packets.iter().flat_map(|packet| [*packet; 2]).collect();
        write(&twice);
    });
    let queue = Intercepted::new(&rig, 64);
    queue.register(&double);
    queue.submit(&[gated(&gate, None)]);
    // The device stands at the gate. 120 packets do not fit behind it, and this thread opens the gate only afterwards.
    queue.submit(&vec![barrier(Some(&done)); 60]);
    assert_eq!(done.load().unwrap(), 120);
    gate.store(0).unwrap();
    assert_eq!(done.wait_below(1, SOON).unwrap(), 0);
}

#[test]
fn packets_that_just_do_not_fit_leave_those_before_them_alone() {
    let rig = Rig::new();
    let pass = hook(|packets, _, write| write(packets));
    // Around the limit of a ring of 64 with the gate and a place for the retry point: 62 fit behind the gate.
    for second in 5..=12 {
        let gate = rig.application.signal(1).unwrap();
        let done = rig.application.signal(55 + second).unwrap();
        let queue = Intercepted::new(&rig, 64);
        queue.register(&pass);
        queue.submit(&[gated(&gate, None)]);
        queue.submit(&vec![barrier(Some(&done)); 55]);
        queue.submit(&vec![barrier(Some(&done)); second as usize]);
        let early = done.wait_below(55 + second, std::time::Duration::from_millis(1));
        assert!(early.is_err(), "a packet ran before the gate opened, {second} behind");
        gate.store(0).unwrap();
        assert_eq!(done.wait_below(1, SOON).unwrap(), 0, "{second} behind");
    }
}

#[test]
fn doorbell_inside_a_handler_is_left_to_the_event_thread() {
    let rig = Rig::new();
    let threads = Mutex::new(Vec::new());
    let (outer_done, inner_done) = (rig.application.signal(1).unwrap(), rig.application.signal(1).unwrap());
    let inner = Intercepted::new(&rig, 64);
    let inner_hook = hook(|packets, _, write| {
        threads.lock().unwrap().push(std::thread::current().id());
        write(packets);
    });
    inner.register(&inner_hook);
    let inner_queue = RefCell::new(Some(InnerQueue(&inner, barrier(Some(&inner_done)))));
    let outer = Intercepted::new(&rig, 64);
    let outer_hook = hook(move |packets, _, write| {
        if let Some(InnerQueue(inner, packet)) = inner_queue.take() {
            inner.submit(&[packet]);
        }
        write(packets);
    });
    outer.register(&outer_hook);
    outer.submit(&[barrier(Some(&outer_done))]);
    outer_done.wait_below(1, SOON).unwrap();
    inner_done.wait_below(1, SOON).unwrap();
    let threads = threads.lock().unwrap();
    assert_eq!(threads.len(), 1);
    assert_ne!(threads[0], std::thread::current().id());
}

/// A queue and a packet for it, taken into a handler.
struct InnerQueue<'a>(&'a Intercepted<'a>, AqlPacket);

// SAFETY: HSA queues may be used from any thread.
unsafe impl Send for InnerQueue<'_> {}

// A retry point that is next to run is still on its way. The ring behind it is full, so a second one would take its place.
#[test]
fn a_doorbell_leaves_the_retry_point_of_a_full_ring_alone() {
    static RING: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C-unwind" fn found(
        _marker: *const amd_aql_intercept_marker_t,
        queue: *mut hsa_queue_t,
        _packet_id: u64,
    ) {
        RING.store(queue.expose_provenance(), Ordering::Relaxed);
    }
    // The retry point is the ring's first packet, and the device does not get past it.
    let hang = Fault::Hang(CompletionFault { queue: 0, packet: 0, micros: 0 });
    let options = Options::preset("gfx942".parse().unwrap(), 1);
    let rig = Rig::with(options.faults(FaultPlan { faults: vec![hang] }));
    let flood = hook(|packets, _, write| {
        let marker = amd_aql_intercept_marker_t {
            header: 0,
            format: 0xFE,
            callback: Some(found),
            ..Default::default()
        };
        // SAFETY: both are 64 plain bytes.
        let marker = unsafe { std::mem::transmute_copy::<_, AqlPacket>(&marker) };
        let many: Vec<_> = packets.iter().flat_map(|packet| [*packet; 200]).collect();
        write(&[&[marker], &many[..]].concat());
    });
    let queue = Intercepted::new(&rig, 64);
    queue.register(&flood);
    for _ in 0..2 {
        queue.submit(&[barrier(None)]);
    }
    let ring = std::ptr::with_exposed_provenance::<amd_queue_v2_t>(RING.load(Ordering::Relaxed));
    // SAFETY: the hardware queue, of which the runtime told the marker; it lives as long as `queue`.
    let ring = unsafe { &*ring };
    assert_eq!((ring.write_dispatch_id, ring.read_dispatch_id), (64, 0), "packets beyond the ring");
}

#[test]
fn marker_packet_calls_back_with_the_place_of_the_packet_behind_it() {
    static CALLS: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());
    unsafe extern "C-unwind" fn marked(
        marker: *const amd_aql_intercept_marker_t,
        _queue: *mut hsa_queue_t,
        packet_id: u64,
    ) {
        // SAFETY: the marker that the handler wrote.
        CALLS.lock().unwrap().push((unsafe { (*marker).user_data[0] }, packet_id));
    }
    let rig = Rig::new();
    let done = rig.application.signal(2).unwrap();
    let marking = hook(|packets, _, write| {
        for packet in packets {
            let marker = amd_aql_intercept_marker_t {
                header: 0,
                format: 0xFE,
                callback: Some(marked),
                user_data: [77; 6],
                ..Default::default()
            };
            // SAFETY: both are 64 plain bytes.
            let marker = unsafe { std::mem::transmute_copy::<_, AqlPacket>(&marker) };
            write(&[*packet, marker, *packet]);
        }
    });
    let queue = Intercepted::new(&rig, 64);
    queue.register(&marking);
    queue.submit(&[barrier(Some(&done))]);
    assert_eq!(done.wait_below(1, SOON).unwrap(), 0);
    assert_eq!(*CALLS.lock().unwrap(), [(77, 1)], "the marker itself takes no place");
}

/// Submits `count` packets at once so that they wrap around a ring of 1024 packets.
fn wrap(count: usize) {
    let rig = Rig::new();
    let longest = Mutex::new(0);
    let pass = hook(|packets, _, write| {
        let mut longest = longest.lock().unwrap();
        *longest = packets.len().max(*longest);
        write(packets);
    });
    let queue = Intercepted::new(&rig, 1024);
    queue.register(&pass);
    for size in [512, 412, count] {
        let done = rig.application.signal(size as i64).unwrap();
        queue.submit(&vec![barrier(Some(&done)); size]);
        assert_eq!(done.wait_below(1, SOON).unwrap(), 0);
    }
    assert_eq!(*longest.lock().unwrap(), 512);
}

#[test]
fn run_of_256_packets_wraps_around_the_ring() {
    wrap(256);
}

const CHILD: &str = "WAVESCOPE_TEST_WRAP_BEYOND_LIMIT";

#[test]
fn run_of_257_packets_over_the_wrap_stops_with_the_name_of_the_limit() {
    if std::env::var_os(CHILD).is_some() {
        return wrap(257);
    }
    let name = "intercept::run_of_257_packets_over_the_wrap_stops_with_the_name_of_the_limit";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success());
    assert!(text.contains("257 unconsumed packets wrap") && text.contains("ROCr 7.2.4"), "{text}");
}

#[test]
fn dispatch_times_pass_through_an_intercept_queue() {
    let rig = Rig::new();
    let pass = hook(|packets, _, write| write(packets));
    let queue = Intercepted::new(&rig, 64);
    queue.register(&pass);
    hsa!(rig.table(), amd_ext_.hsa_amd_profiling_set_profiler_enabled_fn(queue.queue, 1));
    let done = rig.application.signal(1).unwrap();
    let module =
        rig.application.load(rig.gpu(), wavescope_workload::kernels::vectors("gfx942").unwrap()).unwrap();
    let kernel = module.kernel("empty").unwrap();
    let mut packet = AqlPacket([0; 16]);
    packet.0[0] = 1 << 16;
    packet.0[1] = 64 | 1 << 16;
    packet.0[2] = 1;
    packet.0[3..6].copy_from_slice(&[6400, 1, 1]);
    packet.0[8..10].copy_from_slice(&[kernel.object as u32, (kernel.object >> 32) as u32]);
    packet.set_header(PacketHeader::new(PacketType::KERNEL_DISPATCH, true, Fence::System, Fence::System));
    packet.set_completion_signal(done.handle().handle);
    let before = rig.application.timestamp_ns().unwrap();
    queue.submit(&[packet]);
    done.wait_below(1, SOON).unwrap();
    let after = rig.application.timestamp_ns().unwrap();
    let mut times = hsa_amd_profiling_dispatch_time_t::zeroed();
    let (agent, signal) = (rig.gpu().agent(), done.handle());
    hsa!(rig.table(), amd_ext_.hsa_amd_profiling_get_dispatch_time_fn(agent, signal, &raw mut times));
    assert!(before <= times.start + 10 && times.start < times.end && times.end <= after, "{times:?}");
    assert_eq!(rig.log.dispatches()[0].waves, 100);
}

#[test]
fn handler_cannot_be_put_on_a_plain_queue() {
    let rig = Rig::new();
    let queue = rig.application.queue(rig.gpu(), 64).unwrap();
    let none = std::ptr::null_mut();
    let status =
        hsa!(rig.table(), amd_ext_.hsa_amd_queue_intercept_register_fn(queue.raw(), Some(run_hook), none));
    assert_eq!(status, HSA_STATUS_ERROR_INVALID_QUEUE);
}
