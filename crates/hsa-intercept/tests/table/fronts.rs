//! Queue fronts: the memory they are made of, the order of slots and doorbells, full rings, every entry that takes a queue.

use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hsa_sys::{
    HSA_AMD_QUEUE_INFO_AGENT, HSA_AMD_QUEUE_PRIORITY_NORMAL, HSA_STATUS_ERROR_INVALID_QUEUE,
    HSA_STATUS_SUCCESS, amd_queue_v2_t, hsa_agent_t, hsa_queue_t, hsa_status_t,
};
use wavescope_core::{Interception, LossReason};
use wavescope_hsa_intercept::Technique;

use crate::application::*;
use crate::entries::{READ_INDEX, WRITE_INDEX};
use crate::runtime::{self, Block, Runtime, gpu, object, state};
use crate::service::*;

const LIMIT: Duration = Duration::from_secs(10);

fn word(queue: *mut hsa_queue_t, offset: usize) -> &'static AtomicU64 {
    let word = queue.cast::<u8>().wrapping_add(offset).cast();
    // SAFETY: both indices lie in the front's block, which the scripted runtime never frees.
    unsafe { AtomicU64::from_ptr(word) }
}

// Trap 1: HIP reads the aperture fields behind the handle, and kernels get its address.
// Trap 3: an entry that we do not know finds the runtime's object behind it.
#[test]
fn a_front_is_a_whole_queue_structure_that_leads_to_the_hardware_queue() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let queue = runtime.queue(128);
    let behind = object(queue);
    assert!(!std::ptr::eq(behind.pointer(), queue), "the application does not hold the hardware queue");
    // SAFETY: the front's block, as long as the runtime's.
    let front = unsafe { &*queue.cast::<Block>() };
    // SAFETY: the runtime's own.
    let hardware = unsafe { &*behind.pointer().cast::<Block>() };
    let mut expected = hardware.queue;
    expected.hsa_queue = front.queue.hsa_queue;
    assert_eq!(front.queue, expected, "all but the ring, its size and the doorbell is the runtime's");
    assert_eq!(front.queue.group_segment_aperture_base_hi, 0xAB00);
    assert_eq!((front.queue.hsa_queue.size, front.behind), (128, hardware.behind));
    assert_ne!(front.queue.hsa_queue.base_address, hardware.queue.hsa_queue.base_address);
    assert_eq!((offset_of!(Block, behind), size_of::<amd_queue_v2_t>()), (2304, 2304));
    runtime.destroy(queue);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// Trap 2: the indices are the words in the structure. An application may move write_dispatch_id without the table.
#[test]
fn an_application_that_moves_the_indices_itself_is_understood() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let service = FakeService::new(|_| Plan::Count);
    interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let queue = runtime.queue(64);
    assert_eq!((WRITE_INDEX, READ_INDEX), (0x38, 0x80));
    for lap in 0..5 {
        let first = word(queue, WRITE_INDEX).fetch_add(40, Ordering::AcqRel);
        (first..first + 40).for_each(|index| write(queue, index, &kernel(index, 0)));
        runtime.store(doorbell(queue), first.cast_signed() + 39);
        runtime.run_until(|| service.retired() == 40 * (lap + 1));
        assert_eq!(word(queue, READ_INDEX).load(Ordering::Acquire), 40 * (lap as u64 + 1));
    }
    assert_eq!(runtime.reserve(queue, 0), 200, "the table's functions use the same word");
    assert_eq!(runtime.read_index(queue), 200);
    assert_eq!(ran(queue), (0..200).collect::<Vec<_>>());
    runtime.destroy(queue);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// Trap 4: a device stores to the doorbell's value; one of our threads hears it.
#[test]
fn a_doorbell_that_a_device_rings_is_heard() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let service = FakeService::new(|_| Plan::Count);
    interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let queue = runtime.queue(64);
    for index in 0..10 {
        // Not through the table.
        let first = word(queue, WRITE_INDEX).fetch_add(1, Ordering::AcqRel);
        write(queue, first, &kernel(index, 0));
        runtime::set(doorbell(queue), first.cast_signed());
        runtime.run_until(|| service.retired() == index as usize + 1);
    }
    assert!(
        service.dispatched().iter().all(|dispatch| dispatch.thread.is_none()),
        "no thread of the application"
    );
    runtime.destroy(queue);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// Trap 5: the hardware ring is full, behind a barrier on a signal which the ringing thread sets next.
#[test]
fn a_full_hardware_ring_never_keeps_the_ringing_thread() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let service = FakeService::new(|_| Plan::Count);
    interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let queue = runtime.queue(64);
    let app = runtime.signal(1);
    // 63 kernels become more than the 256 packets behind; the first waits.
    let (mut batch, done) = (vec![app_barrier64(app)], runtime.signal(63));
    batch.extend((1..64).map(|n| kernel(n, done)));
    let started = Instant::now();
    runtime.submit(queue, &batch);
    assert!(started.elapsed() < Duration::from_secs(5));
    runtime::run();
    assert!(ran(queue).is_empty());
    assert_eq!(runtime.read_index(queue), 64, "all were taken: the application may go on");
    // A lap more is enqueued behind; the front's ring fills up too.
    runtime.submit(queue, &(64..128).map(|n| kernel(n, 0)).collect::<Vec<_>>());
    runtime.store(app, 0);
    runtime.run_until(|| service.retired() == 127);
    assert_eq!(ran(queue), (1..128).collect::<Vec<_>>());
    runtime.destroy(queue);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

fn app_barrier64(signal: u64) -> wavescope_core::AqlPacket {
    let mut packet = app_barrier(0);
    (packet.0[2], packet.0[3]) = (signal as u32, (signal >> 32) as u32);
    packet
}

// Two rings are full; what the first waits for lies in what did not fit the second.
#[test]
fn a_full_ring_does_not_keep_another_from_going_on() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let service = FakeService::new(|_| Plan::Ignore);
    interceptor.subscribe(service.subscription(&[], false)).unwrap();
    let tracer = FakeService::new(|_| Plan::Count);
    interceptor.subscribe(tracer.subscription(&[], false)).unwrap();
    let (first, second) = (runtime.queue(64), runtime.queue(64));
    let (of_first, of_second, done) = (runtime.signal(1), runtime.signal(1), runtime.signal(1000));
    // Five packets for each kernel, so that a ring of 256 does not take them.
    let mut batch = vec![app_barrier64(of_first)];
    batch.extend((1..64).map(|n| kernel(n, done)));
    runtime.submit(first, &batch);
    batch[0] = app_barrier64(of_second);
    batch[63] = kernel(63, of_first);
    runtime.submit(second, &batch);
    runtime.store(of_second, 0);
    runtime.run_until(|| tracer.retired() == 126);
    runtime.destroy(first);
    runtime.destroy(second);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// A queue is destroyed while packets of instrumented kernels did not fit the hardware ring yet: they get there first.
#[test]
fn a_queue_is_destroyed_behind_what_did_not_fit_its_ring() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let service = FakeService::new(|_| Plan::Count);
    interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let (queue, done) = (runtime.queue(64), runtime.signal(64));
    // Five packets for each kernel, so that a ring of 256 does not take them.
    runtime.submit(queue, &(0..64).map(|n| kernel(n, done)).collect::<Vec<_>>());
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Mostly the destruction is under way by then. Correct code does not depend on it.
            std::thread::park_timeout(Duration::from_millis(50));
            while !over.load(Ordering::Acquire) {
                runtime::run();
                std::thread::yield_now();
            }
        });
        let started = Instant::now();
        let runtime = Shared(&runtime);
        assert_eq!(runtime.get().destroy(queue), HSA_STATUS_SUCCESS);
        over.store(true, Ordering::Release);
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    });
    assert_eq!((service.retired(), service.lost()), (64, vec![]));
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// Producers reserve slots and write them in any order; the hardware never sees the doorbell of a slot that is not written
// (the scripted packet processor panics at one).
#[test]
fn slots_written_out_of_order_are_read_in_order() {
    const PRODUCERS: u64 = 8;
    const EACH: u64 = 250;
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let service = FakeService::new(|_| Plan::Count);
    interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let queue = runtime.queue(64).expose_provenance();
    let order = Barrier::new(PRODUCERS as usize);
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (order, runtime) = (&order, Shared(&runtime));
            scope.spawn(move || {
                let runtime = runtime.get();
                let queue: *mut hsa_queue_t = std::ptr::with_exposed_provenance_mut(queue);
                order.wait();
                for n in 0..EACH {
                    let first = runtime.reserve(queue, 2);
                    while first + 2 - runtime.read_index(queue) > 64 {
                        std::thread::yield_now();
                    }
                    // The second slot first, and its doorbell before the first is there.
                    write(queue, first + 1, &kernel(producer * 1000 + n, 0));
                    runtime.store(doorbell(queue), first.cast_signed() + 1);
                    write(queue, first, &kernel(producer * 1000 + n, 0));
                    runtime.store(doorbell(queue), first.cast_signed());
                }
            });
        }
        runtime.run_until(|| service.retired() as u64 == 2 * PRODUCERS * EACH);
    });
    let queue: *mut hsa_queue_t = std::ptr::with_exposed_provenance_mut(queue);
    assert!(ran(queue).chunks(2).all(|pair| pair[0] == pair[1]), "in the order of the slots");
    runtime.destroy(queue);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// Batches of any size up to the whole ring, wrapped at every place.
#[test]
fn batches_of_any_size_wrap_anywhere() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let service = FakeService::new(|_| Plan::Count);
        interceptor.subscribe(service.subscription(&[], true)).unwrap();
        let queue = runtime.queue(64);
        let mut next = 0;
        for size in (1..=64).chain([64, 63, 64, 1, 64]) {
            runtime.submit(queue, &(next..next + size).map(|n| kernel(n, 0)).collect::<Vec<_>>());
            next += size;
            runtime.run_until(|| service.retired() as u64 == next);
        }
        assert_eq!(ran(queue), (0..next).collect::<Vec<_>>());
        runtime.destroy(queue);
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// A dispatch callback submits to the queue it is called for, and to another.
#[test]
fn callbacks_may_submit() {
    static QUEUES: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    static TABLE: AtomicUsize = AtomicUsize::new(0);
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    TABLE.store(std::ptr::from_ref(&runtime).expose_provenance(), Ordering::Release);
    let service = FakeService::new(|dispatch| {
        if dispatch.kernel_object == 1 {
            // SAFETY: the runtime outlives the test's dispatches.
            let runtime =
                unsafe { &*std::ptr::with_exposed_provenance::<Runtime>(TABLE.load(Ordering::Acquire)) };
            for queue in &QUEUES {
                let queue = std::ptr::with_exposed_provenance_mut(queue.load(Ordering::Acquire));
                runtime.submit(queue, &[kernel(2, 0)]);
            }
        }
        Plan::Count
    });
    interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let queues = [runtime.queue(64), runtime.queue(64)];
    for (place, queue) in QUEUES.iter().zip(queues) {
        place.store(queue.expose_provenance(), Ordering::Release);
    }
    runtime.submit(queues[0], &[kernel(1, 0), kernel(3, 0)]);
    runtime.run_until(|| ran(queues[0]) == [1, 3, 2] && ran(queues[1]) == [2]);
    runtime.run_until(|| service.retired() >= 4);
    let mut asked: Vec<_> = service.dispatched().iter().map(|dispatch| dispatch.kernel_object).collect();
    asked.sort_unstable();
    assert_eq!((asked, service.retired()), (vec![1, 2, 2, 3], 4), "inside of the first hook too");
    queues.iter().for_each(|queue| assert_eq!(runtime.destroy(*queue), HSA_STATUS_SUCCESS));
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

#[test]
fn the_error_callback_names_the_front_and_what_was_in_flight_is_lost() {
    static NAMED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C-unwind" fn on_error(status: hsa_status_t, queue: *mut hsa_queue_t, data: *mut c_void) {
        assert_eq!((status, data.addr()), (HSA_STATUS_ERROR_INVALID_QUEUE, 0x77));
        NAMED.store(queue.addr(), Ordering::Release);
    }
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let service = FakeService::new(|_| Plan::Count);
        let id = interceptor.subscribe(service.subscription(&[], true)).unwrap();
        let data = std::ptr::without_provenance_mut(0x77);
        let queue = runtime.try_queue(gpu(0), 64, Some(on_error), data).unwrap();
        runtime.submit(queue, &[kernel(1, 0), kernel(2, 0)]);
        object(queue).fail(HSA_STATUS_ERROR_INVALID_QUEUE);
        assert_eq!(NAMED.swap(0, Ordering::AcqRel), queue.addr());
        interceptor.drain(id, LIMIT).unwrap();
        assert_eq!(service.lost(), [LossReason::QueueError; 2]);
        assert_eq!(runtime.destroy(queue), HSA_STATUS_SUCCESS);
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// Two threads destroy one queue: wrong, but one of them is told so.
#[test]
fn a_queue_is_destroyed_once() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let service = FakeService::new(|_| Plan::Count);
    interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let queue = runtime.queue(64);
    runtime.submit(queue, &[kernel(1, 0)]);
    let address = queue.expose_provenance();
    let over = std::sync::atomic::AtomicBool::new(false);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let destroy = |_| {
            let runtime = Shared(&runtime);
            scope.spawn(move || runtime.get().destroy(std::ptr::with_exposed_provenance_mut(address)))
        };
        let threads: Vec<_> = (0..2).map(destroy).collect();
        // Its kernel runs only after both asked, or one of them got its answer.
        while !threads.iter().any(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::yield_now();
        }
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                runtime::run();
                std::thread::yield_now();
            }
        });
        let outcomes = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        over.store(true, Ordering::Release);
        outcomes
    });
    let mut outcomes: Vec<_> = outcomes;
    outcomes.sort_by_key(|status: &hsa_status_t| status.0);
    assert_eq!(outcomes, [HSA_STATUS_SUCCESS, HSA_STATUS_ERROR_INVALID_QUEUE]);
    assert_eq!(state().live_queues.load(Ordering::Relaxed), 0);
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

/// A function of the table that takes a queue, by the headers.
fn functions_with_a_queue() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../hsa-sys/abi/hsa.json");
    let facts: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(folder).unwrap()).unwrap();
    let in_table = |name: &str| {
        ["CoreApiTable", "AmdExtTable"].iter().any(|part| {
            let slots = facts["api_table_slots"][part].as_array().unwrap();
            slots.iter().any(|slot| slot["function"] == name)
        })
    };
    let takes_queue = |function: &serde_json::Value| {
        let mut types = function["params"]
            .as_array()
            .unwrap()
            .iter()
            .map(|parameter| parameter["type"].as_str().unwrap());
        types.any(|kind| kind.contains("hsa_queue_t *") && !kind.contains("**") && !kind.contains("(*)"))
    };
    let functions = facts["functions"].as_object().unwrap();
    let names = functions.iter().filter(|(name, function)| takes_queue(function) && in_table(name));
    names.map(|(name, _)| name.clone()).collect()
}

// Every function of the table that takes a queue, called with a front: the runtime hears of the hardware queue behind it.
#[test]
fn every_entry_that_takes_a_queue_takes_a_front() {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let queue = runtime.queue(64);
    let hardware = object(queue).pointer().addr();
    let (core, amd) = (runtime.core(), runtime.amd());
    let mut called = Vec::new();
    macro_rules! call {
        ($table:ident.$field:ident as $name:ident($($argument:expr),*)) => {{
            called.push(stringify!($name).to_owned());
            // SAFETY: the queue lives, and the other arguments are what the entry asks for.
            unsafe { $table.$field.unwrap()(queue $(, $argument)*) }
        }};
    }
    let mut mask = [0u32; 2];
    let mut agent = hsa_agent_t { handle: 0 };
    let ok = HSA_STATUS_SUCCESS;
    assert_eq!(call!(core.hsa_queue_add_write_index_relaxed_fn as hsa_queue_add_write_index_relaxed(1)), 0);
    assert_eq!(
        call!(core.hsa_queue_add_write_index_scacquire_fn as hsa_queue_add_write_index_scacquire(1)),
        1
    );
    assert_eq!(
        call!(core.hsa_queue_add_write_index_screlease_fn as hsa_queue_add_write_index_screlease(1)),
        2
    );
    assert_eq!(
        call!(core.hsa_queue_add_write_index_scacq_screl_fn as hsa_queue_add_write_index_scacq_screl(1)),
        3
    );
    assert_eq!(
        call!(core.hsa_queue_cas_write_index_relaxed_fn as hsa_queue_cas_write_index_relaxed(4, 5)),
        4
    );
    assert_eq!(
        call!(core.hsa_queue_cas_write_index_scacquire_fn as hsa_queue_cas_write_index_scacquire(4, 9)),
        5
    );
    assert_eq!(
        call!(core.hsa_queue_cas_write_index_screlease_fn as hsa_queue_cas_write_index_screlease(5, 6)),
        5
    );
    assert_eq!(
        call!(core.hsa_queue_cas_write_index_scacq_screl_fn as hsa_queue_cas_write_index_scacq_screl(6, 7)),
        6
    );
    assert_eq!(call!(core.hsa_queue_load_write_index_relaxed_fn as hsa_queue_load_write_index_relaxed()), 7);
    call!(core.hsa_queue_store_write_index_relaxed_fn as hsa_queue_store_write_index_relaxed(8));
    assert_eq!(
        call!(core.hsa_queue_load_write_index_scacquire_fn as hsa_queue_load_write_index_scacquire()),
        8
    );
    call!(core.hsa_queue_store_write_index_screlease_fn as hsa_queue_store_write_index_screlease(0));
    call!(core.hsa_queue_store_read_index_relaxed_fn as hsa_queue_store_read_index_relaxed(3));
    assert_eq!(call!(core.hsa_queue_load_read_index_relaxed_fn as hsa_queue_load_read_index_relaxed()), 3);
    call!(core.hsa_queue_store_read_index_screlease_fn as hsa_queue_store_read_index_screlease(0));
    assert_eq!(
        call!(core.hsa_queue_load_read_index_scacquire_fn as hsa_queue_load_read_index_scacquire()),
        0
    );
    let untouched = [READ_INDEX, WRITE_INDEX].map(|index| object(queue).index(index).load(Ordering::Relaxed));
    assert_eq!(untouched, [0, 0], "the hardware queue's own indices are not the application's");

    state().calls.lock().unwrap().clear();
    let set_profiler = call!(
        amd.hsa_amd_profiling_set_profiler_enabled_fn as hsa_amd_profiling_set_profiler_enabled(1)
    );
    assert_eq!(set_profiler, ok);
    assert_eq!(call!(amd.hsa_amd_queue_cu_set_mask_fn as hsa_amd_queue_cu_set_mask(64, mask.as_ptr())), ok);
    assert_eq!(
        call!(amd.hsa_amd_queue_cu_get_mask_fn as hsa_amd_queue_cu_get_mask(64, mask.as_mut_ptr())),
        ok
    );
    let priority = HSA_AMD_QUEUE_PRIORITY_NORMAL;
    assert_eq!(call!(amd.hsa_amd_queue_set_priority_fn as hsa_amd_queue_set_priority(priority)), ok);
    let into = (&raw mut agent).cast();
    assert_eq!(
        call!(amd.hsa_amd_queue_get_info_fn as hsa_amd_queue_get_info(HSA_AMD_QUEUE_INFO_AGENT, into)),
        ok
    );
    assert_eq!(agent, gpu(0));
    // One that is not replaced: the runtime finds its own queue by the pointer behind the front.
    let register = call!(
        amd.hsa_amd_queue_intercept_register_fn
            as hsa_amd_queue_intercept_register(None, std::ptr::null_mut())
    );
    assert_eq!(register, ok);
    assert_eq!(call!(core.hsa_queue_inactivate_fn as hsa_queue_inactivate()), ok);
    assert_eq!(call!(core.hsa_queue_destroy_fn as hsa_queue_destroy()), ok);
    let heard = std::mem::take(&mut *state().calls.lock().unwrap());
    assert_eq!(heard.len(), 8, "{heard:?}");
    for (name, with) in heard {
        let named = if name == "hsa_amd_queue_intercept_register" { queue.addr() } else { hardware };
        assert_eq!(with, named, "{name}");
    }
    called.sort_unstable();
    assert_eq!(called, functions_with_a_queue(), "all that the headers know");
    interceptor.shut_down().unwrap();
    runtime.assert_clean();
}

// An application gets a kernel's times from the moment its signal falls until it arms the signal again, silently as HIP does.
#[test]
fn times_last_until_the_signal_is_armed_again_or_destroyed() {
    for technique in TECHNIQUES {
        let runtime = Runtime::start();
        let interceptor = runtime.install(technique);
        let service = FakeService::new(|_| Plan::Count);
        let id = interceptor.subscribe(service.subscription(&[], true)).unwrap();
        let queue = runtime.queue(64);
        let app = runtime.signal(1);
        runtime.submit(queue, &[kernel(7, app)]);
        // Start, kernel and forward ran; read and stop have not.
        object(queue).run(3);
        assert_eq!((runtime::value(app), runtime.times(app)), (0, (70, 75)));
        runtime.run_until(|| service.retired() == 1);
        assert_eq!(runtime.times(app), (70, 75));
        // Armed again: what it stood for is over, whoever uses it next.
        runtime.silent_store(app, 1);
        assert_eq!(runtime.times(app), (0, 0), "what the runtime itself says of it");
        runtime.submit(queue, &[kernel(8, app)]);
        runtime.run_until(|| service.retired() == 2);
        assert_eq!(runtime.times(app), (80, 85));
        interceptor.quiesce(id).unwrap();
        interceptor.drain(id, LIMIT).unwrap();
        interceptor.unsubscribe(id).unwrap();
        assert_eq!(runtime.times(app), (80, 85), "it outlasts the subscription");
        // SAFETY: the application's own signal.
        unsafe { runtime.core().hsa_signal_destroy_fn.unwrap()(hsa_sys::hsa_signal_t { handle: app }) };
        runtime.destroy(queue);
        interceptor.shut_down().unwrap();
        runtime.assert_clean();
    }
}

// One of several `hsa_shut_down`, while a callback of one queue takes its time: other queues go on.
#[test]
fn a_slow_callback_does_not_stall_other_queues_at_an_end_that_is_not_the_last() {
    // What is held back for longer is so in each round; a machine that stalls is not.
    let took = [(); 3].map(|()| end_beside_a_slow_callback());
    assert!(took.iter().any(|(ran_after, _)| *ran_after < Duration::from_millis(500)), "{took:?}");
}

/// After what time another queue's kernel ran, and how long the call took.
fn end_beside_a_slow_callback() -> (Duration, Duration) {
    let runtime = Runtime::start();
    let interceptor = runtime.install(Technique::Doorbell);
    let gates = std::sync::Arc::new((Barrier::new(2), Barrier::new(2)));
    let callback = std::sync::Arc::clone(&gates);
    let service = FakeService::new(move |dispatch| {
        if dispatch.kernel_object == 1 {
            callback.0.wait();
            callback.1.wait();
        }
        Plan::Count
    });
    interceptor.subscribe(service.subscription(&[], true)).unwrap();
    let (idle, busy) = (runtime.queue(64).expose_provenance(), runtime.queue(64).expose_provenance());
    let at = std::ptr::with_exposed_provenance_mut::<hsa_queue_t>;
    let (ended, ran_after) = std::thread::scope(|scope| {
        let shared = Shared(&runtime);
        scope.spawn(move || shared.get().submit(at(busy), &[kernel(1, 0)]));
        gates.0.wait();
        let other = scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            let began = Instant::now();
            shared.get().submit(at(idle), &[kernel(2, 0)]);
            while ran(at(idle)).is_empty() && began.elapsed() < LIMIT {
                runtime::run();
                std::thread::sleep(Duration::from_millis(1));
            }
            began.elapsed()
        });
        let began = Instant::now();
        runtime.end();
        let ended = began.elapsed();
        let ran_after = other.join().unwrap();
        gates.1.wait();
        (ended, ran_after)
    });
    runtime.run_until(|| service.retired() == 2);
    interceptor.shut_down().unwrap();
    (ran_after, ended)
}
