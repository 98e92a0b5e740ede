//! Every entry of the table that takes a queue, called with an intercepted one; errors; calls from inside callbacks.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use hsa_sys::{
    AmdExtTable, CoreApiTable, HSA_AMD_QUEUE_INFO_AGENT, HSA_AMD_QUEUE_PRIORITY_NORMAL, HSA_QUEUE_TYPE_MULTI,
    HSA_STATUS_SUCCESS, hsa_agent_t, hsa_queue_t, hsa_status_t,
};
use wavescope_core::{AqlPacket, Fence, LossReason, PacketHeader, PacketType};
use wavescope_counting::{Choice, PoolSize};
use wavescope_workload::{Launch, Queue};

use crate::rig::*;

fn launch(rig: &Rig, waves: u32) -> Launch {
    Launch::new(rig.kernel(0, "empty"), [64 * waves, 1, 1], [64, 1, 1])
}

fn tables(rig: &Rig) -> (&CoreApiTable, &AmdExtTable) {
    // SAFETY: the runtime's table lives as long as the rig.
    let table = unsafe { &*rig.table };
    // SAFETY: likewise.
    let core = unsafe { &*table.core_ };
    // SAFETY: likewise.
    (core, unsafe { &*table.amd_ext_ })
}

/// Calls an entry with the queue and more arguments.
macro_rules! with_queue {
    ($table:expr, $field:ident, $queue:expr $(, $argument:expr)*) => {{
        let entry = $table.$field.expect(stringify!($field));
        // SAFETY: the queue lives, and the other arguments are what the entry asks for.
        unsafe { entry($queue $(, $argument)*) }
    }};
}

on_both_faces! {
    fn index_entries_answer_for_the_applications_queue(rig on "gfx942") {
        let (core, _) = tables(rig);
        let owner = rig.application.queue(rig.gpu(0), 64).unwrap();
        let queue = owner.raw();
        assert_eq!(with_queue!(core, hsa_queue_load_write_index_relaxed_fn, queue), 0);
        assert_eq!(with_queue!(core, hsa_queue_add_write_index_relaxed_fn, queue, 0), 0);
        assert_eq!(with_queue!(core, hsa_queue_cas_write_index_relaxed_fn, queue, 0, 0), 0);
        assert_eq!(with_queue!(core, hsa_queue_cas_write_index_scacquire_fn, queue, 1, 2), 0, "not exchanged");
        assert_eq!(with_queue!(core, hsa_queue_cas_write_index_screlease_fn, queue, 0, 0), 0);
        assert_eq!(with_queue!(core, hsa_queue_add_write_index_scacquire_fn, queue, 0), 0);
        assert_eq!(with_queue!(core, hsa_queue_add_write_index_screlease_fn, queue, 0), 0);
        with_queue!(core, hsa_queue_store_write_index_relaxed_fn, queue, 0);
        owner.submit(&batch((1..=7).map(|waves| launch(rig, waves)))).unwrap().wait(LIMIT).unwrap();
        assert_eq!(with_queue!(core, hsa_queue_load_write_index_scacquire_fn, queue), 7);
        assert_eq!(with_queue!(core, hsa_queue_load_read_index_scacquire_fn, queue), 7);
        assert_eq!(with_queue!(core, hsa_queue_load_read_index_relaxed_fn, queue), 7);
    }

    fn extension_entries_take_the_applications_queue(rig on "gfx942") {
        let (_, amd) = tables(rig);
        let owner = rig.application.queue(rig.gpu(0), 64).unwrap();
        let queue = owner.raw();
        let ok = HSA_STATUS_SUCCESS;
        assert_eq!(with_queue!(amd, hsa_amd_profiling_set_profiler_enabled_fn, queue, 1), ok);
        assert_eq!(with_queue!(amd, hsa_amd_queue_set_priority_fn, queue, HSA_AMD_QUEUE_PRIORITY_NORMAL), ok);
        let mut mask = [u32::MAX; 10];
        assert_eq!(with_queue!(amd, hsa_amd_queue_cu_set_mask_fn, queue, 320, mask.as_ptr()), ok);
        assert_eq!(with_queue!(amd, hsa_amd_queue_cu_get_mask_fn, queue, 320, mask.as_mut_ptr()), ok);
        let mut agent = hsa_agent_t { handle: 0 };
        let into = (&raw mut agent).cast();
        assert_eq!(with_queue!(amd, hsa_amd_queue_get_info_fn, queue, HSA_AMD_QUEUE_INFO_AGENT, into), ok);
        assert_eq!(agent, rig.gpu(0).agent());
        owner.submit(&batch([launch(rig, 1)])).unwrap().wait(LIMIT).unwrap();
    }

    fn an_inactivated_queue_can_be_destroyed(rig on "gfx942") {
        let (core, _) = tables(rig);
        let owner = rig.application.queue(rig.gpu(0), 64).unwrap();
        assert_eq!(with_queue!(core, hsa_queue_inactivate_fn, owner.raw()), HSA_STATUS_SUCCESS);
    }
}

/// What the error callback was called with.
#[derive(Default)]
struct Reported {
    queue: AtomicUsize,
    times: AtomicU64,
}

unsafe extern "C-unwind" fn report(_status: hsa_status_t, queue: *mut hsa_queue_t, data: *mut c_void) {
    // SAFETY: the test's own record, which outlives the queue.
    let reported = unsafe { &*data.cast::<Reported>() };
    reported.queue.store(queue.addr(), Ordering::Release);
    reported.times.fetch_add(1, Ordering::AcqRel);
}

fn submit(core: &CoreApiTable, queue: *mut hsa_queue_t, packets: &[AqlPacket]) {
    let first = with_queue!(core, hsa_queue_add_write_index_relaxed_fn, queue, packets.len() as u64);
    // SAFETY: the queue lives.
    let header = unsafe { &*queue };
    for (index, packet) in (first..).zip(packets) {
        let slot =
            header.base_address.cast::<AqlPacket>().wrapping_add(index as usize % header.size as usize);
        // SAFETY: a reserved slot of the ring; nobody reads it before the doorbell.
        unsafe { slot.write(*packet) };
    }
    let store = core.hsa_signal_store_screlease_fn.unwrap();
    // SAFETY: the doorbell lives as long as its queue.
    unsafe { store(header.doorbell_signal, (first as usize + packets.len() - 1) as i64) };
}

// A packet of no type stops the queue: the application's callback names its own queue, what is in flight is lost, and the
// others go on.
fn a_stopped_queue_is_reported(rig: &Rig) {
    let (core, _) = tables(rig);
    let config = rig.config(0, &["SQ_WAVES"], PoolSize(4));
    let (counting, records) = rig.counting(1, &[0], always(config));
    counting.start().unwrap();
    let reported = Reported::default();
    let mut queue = std::ptr::null_mut();
    let create = core.hsa_queue_create_fn.unwrap();
    let data = (&raw const reported).cast_mut().cast();
    let (agent, kind) = (rig.gpu(0).agent(), HSA_QUEUE_TYPE_MULTI.0);
    // SAFETY: the agent is the runtime's, and the callback's data outlive the queue.
    let status = unsafe { create(agent, 64, kind, Some(report), data, u32::MAX, u32::MAX, &raw mut queue) };
    assert_eq!(status, HSA_STATUS_SUCCESS);
    let done = rig.application.signal(1).unwrap();
    let mut bad = AqlPacket([0; 16]);
    bad.set_header(PacketHeader::new(PacketType(200), true, Fence::None, Fence::None));
    let mut kernel = one_wave(rig);
    kernel.set_completion_signal(done.handle().handle);
    submit(core, queue, &[bad, kernel]);
    let started = std::time::Instant::now();
    while reported.times.load(Ordering::Acquire) == 0 {
        assert!(started.elapsed() < LIMIT, "the callback was not called");
        std::thread::yield_now();
    }
    assert_eq!(reported.queue.load(Ordering::Acquire), queue.addr());
    let other = rig.queue(0);
    other.submit(&batch([launch(rig, 3)])).unwrap().wait(LIMIT).unwrap();
    counting.stop(LIMIT).unwrap();
    let lost = records.try_recv().unwrap();
    assert_eq!((lost.lost, lost.records.len()), (Some(LossReason::QueueError), 0));
    assert_eq!(total(&records.try_recv().unwrap(), "SQ_WAVES"), 3.0);
    with_queue!(core, hsa_queue_destroy_fn, queue);
}

with_fronts! {
    fn a_stopped_front_is_reported_by_the_applications_name(rig on "gfx942") {
        a_stopped_queue_is_reported(rig);
    }
}

// ROCr's own intercept queue tells nobody of such a packet, whatever hook it has.
#[test]
fn a_stopped_intercept_queue_is_reported_by_the_applications_name() {
    a_stopped_queue_is_reported(&Rig::in_process("gfx942", Technique::Runtime));
}

on_both_faces! {
    /// A dispatch callback that submits to the same queue and to another: everything runs and is counted.
    fn callbacks_may_submit(rig on "gfx942") {
        let submit = Arc::new(OnceLock::<Box<dyn Fn() + Send + Sync>>::new());
        let config = rig.config(0, &["SQ_WAVES"], PoolSize(4));
        let (asked, nested_submit) = (AtomicU64::new(0), Arc::clone(&submit));
        let (counting, records) = rig.counting(1, &[0], move |_| {
            if asked.fetch_add(1, Ordering::Relaxed) == 0 {
                nested_submit.get().unwrap()();
            }
            Choice { config: Some(Arc::clone(&config)), user_data: 0 }
        });
        counting.start().unwrap();
        let queues = Arc::new([rig.queue(0), rig.queue(0)]);
        let submissions = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (inner, nested) = (Arc::clone(&queues), Arc::clone(&submissions));
        let inside = batch([launch(rig, 5)]);
        let nest = move || {
            for queue in inner.iter() {
                let submission = Queue::submit(queue, &inside).unwrap();
                nested.lock().unwrap().push(submission);
            }
        };
        assert!(submit.set(Box::new(nest)).is_ok());
        queues[0].submit(&batch([launch(rig, 3)])).unwrap().wait(LIMIT).unwrap();
        let nested = std::mem::take(&mut *submissions.lock().unwrap());
        assert_eq!(nested.len(), 2);
        nested.into_iter().for_each(|submission| drop(submission.wait(LIMIT).unwrap()));
        counting.stop(LIMIT).unwrap();
        let mut waves: Vec<_> =
            std::iter::from_fn(|| records.try_recv()).map(|counted| total(&counted, "SQ_WAVES") as u32).collect();
        waves.sort_unstable();
        assert_eq!(waves, [3, 5, 5]);
    }
}

/// An empty kernel of one workgroup of one wave.
fn one_wave(rig: &Rig) -> AqlPacket {
    let mut kernel = AqlPacket([0; 16]);
    kernel.set_header(PacketHeader::new(PacketType::KERNEL_DISPATCH, false, Fence::System, Fence::System));
    kernel.0[0] |= 1 << 16;
    (kernel.0[1], kernel.0[2], kernel.0[3], kernel.0[4], kernel.0[5]) = (64 | 1 << 16, 1, 64, 1, 1);
    let object = rig.kernel(0, "empty").object;
    (kernel.0[8], kernel.0[9]) = (object as u32, (object >> 32) as u32);
    kernel
}

fn create(core: &CoreApiTable, rig: &Rig) -> *mut hsa_queue_t {
    let mut queue = std::ptr::null_mut();
    let create = core.hsa_queue_create_fn.unwrap();
    let (agent, kind) = (rig.gpu(0).agent(), HSA_QUEUE_TYPE_MULTI.0);
    let none = std::ptr::null_mut();
    // SAFETY: the agent is the runtime's.
    let status = unsafe { create(agent, 64, kind, None, none, u32::MAX, u32::MAX, &raw mut queue) };
    assert_eq!(status, HSA_STATUS_SUCCESS);
    queue
}

on_both_faces! {
    /// A dispatch callback destroys the queue that it is called for: the batch in hand is lost, the rest of the machine goes on.
    fn a_callback_may_destroy_its_queue(rig on "gfx942") {
        let config = rig.config(0, &["SQ_WAVES"], PoolSize(4));
        let (core, _) = tables(rig);
        let (target, destroyed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let destroy = core.hsa_queue_destroy_fn.unwrap();
        let (queue_of_callback, count) = (Arc::clone(&target), Arc::clone(&destroyed));
        let (counting, records) = rig.counting(1, &[0], move |_| {
            let queue = queue_of_callback.swap(0, Ordering::AcqRel);
            if queue != 0 {
                // SAFETY: the test's queue, which nobody uses after this.
                let status = unsafe { destroy(std::ptr::with_exposed_provenance_mut(queue)) };
                assert_eq!(status, HSA_STATUS_SUCCESS);
                count.fetch_add(1, Ordering::AcqRel);
            }
            Choice { config: Some(Arc::clone(&config)), user_data: 0 }
        });
        counting.start().unwrap();
        for round in 1..=3 {
            let queue = create(core, rig);
            target.store(queue.expose_provenance(), Ordering::Release);
            submit(core, queue, &[one_wave(rig), one_wave(rig)]);
            assert_eq!(destroyed.load(Ordering::Acquire), round);
        }
        let other = rig.queue(0);
        other.submit(&batch([launch(rig, 3)])).unwrap().wait(LIMIT).unwrap();
        counting.stop(LIMIT).unwrap();
        let (lost, counted): (Vec<_>, Vec<_>) =
            std::iter::from_fn(|| records.try_recv()).partition(|record| record.lost.is_some());
        assert_eq!(lost.len(), 6);
        assert!(lost.iter().all(|record| record.lost == Some(LossReason::QueueDestroyed)));
        assert_eq!(counted.iter().map(|record| total(record, "SQ_WAVES")).collect::<Vec<_>>(), [3.0]);
    }
}
