//! Queues: batch sizes, wrap, barriers, chains, limits, errors.

use std::sync::atomic::{AtomicU64, Ordering};

use hsa_sys::*;
use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};
use wavescope_software_gpu::face::{Options, TimeMode};
use wavescope_software_gpu::{Fault, FaultPlan, Queue as DeviceQueue};
use wavescope_workload::{Batch, Dependency, Error, Launch, Signal, kernels};

use crate::rig::{Rig, SOON, hsa};

fn empty_launch(rig: &Rig, module: &wavescope_workload::Module) -> Launch {
    assert_eq!(rig.gpu().target(), "gfx942");
    Launch::new(module.kernel("empty").unwrap(), [64, 1, 1], [64, 1, 1])
}

fn barriers(count: usize, completion: &Signal) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..count {
        batch.barrier(Dependency::All, &[], Some(completion));
    }
    batch
}

#[test]
fn batches_of_every_size_complete_and_wrap() {
    let rig = Rig::new();
    let queue = rig.application.queue(rig.gpu(), 64).unwrap();
    let mut total = 0;
    for size in (1..=64).chain([64, 63, 1, 64]) {
        let done = rig.application.signal(size as i64).unwrap();
        queue.submit(&barriers(size, &done)).unwrap();
        assert_eq!(done.wait_below(1, SOON).unwrap(), 0, "batch of {size}");
        total += size as u64;
        let written = hsa!(rig.table(), core_.hsa_queue_load_write_index_relaxed_fn(queue.raw()));
        assert_eq!(written, total);
    }
    let read = hsa!(rig.table(), core_.hsa_queue_load_read_index_scacquire_fn(queue.raw()));
    assert_eq!(read, total, "everything was consumed");
}

#[test]
fn batch_larger_than_the_ring_is_refused_before_anything_is_written() {
    let rig = Rig::new();
    let queue = rig.application.queue(rig.gpu(), 64).unwrap();
    let done = rig.application.signal(65).unwrap();
    let refused = queue.submit(&barriers(65, &done)).unwrap_err();
    assert!(matches!(refused, Error::BatchTooLarge { packets: 65, capacity: 64 }));
    assert_eq!(hsa!(rig.table(), core_.hsa_queue_load_write_index_relaxed_fn(queue.raw())), 0);
}

#[test]
fn producers_of_one_queue_lose_nothing() {
    let rig = Rig::with(Options::preset("gfx942".parse().unwrap(), 1).time(TimeMode::Skip));
    let module = rig.application.load(rig.gpu(), kernels::vectors("gfx942").unwrap()).unwrap();
    let queue = rig.application.queue(rig.gpu(), 64).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for size in [1, 5, 17, 40] {
                    let mut batch = Batch::new();
                    for _ in 0..size {
                        batch.launch(empty_launch(&rig, &module));
                    }
                    queue.submit(&batch).unwrap().wait(SOON).unwrap();
                }
            });
        }
    });
    assert_eq!(rig.log.dispatches().len(), 4 * (1 + 5 + 17 + 40));
}

#[test]
fn barrier_and_waits_for_all_of_its_signals_and_barrier_or_for_one() {
    let rig = Rig::new();
    for (wait, needed) in [(Dependency::All, 5), (Dependency::Any, 1)] {
        let queue = rig.application.queue(rig.gpu(), 64).unwrap();
        let signals: Vec<_> = (0..5).map(|_| rig.application.signal(1).unwrap()).collect();
        let done = rig.application.signal(1).unwrap();
        let mut batch = Batch::new();
        batch.barrier(wait, &signals.iter().collect::<Vec<_>>(), Some(&done));
        queue.submit(&batch).unwrap();
        for (count, signal) in (1..).zip(signals.iter().rev()) {
            let early = done.wait_below(1, std::time::Duration::from_millis(2));
            assert!(early.is_err(), "{wait:?} completed with {} of {needed}", count - 1);
            signal.store(0).unwrap();
            if count == needed {
                break;
            }
        }
        assert_eq!(done.wait_below(1, SOON).unwrap(), 0, "{wait:?}");
    }
}

#[test]
fn kernels_of_two_queues_form_a_chain_through_signals() {
    let rig = Rig::with(Options::preset("gfx942".parse().unwrap(), 1).time(TimeMode::Skip));
    let module = rig.application.load(rig.gpu(), kernels::vectors("gfx942").unwrap()).unwrap();
    let queues: Vec<_> = (0..2).map(|_| rig.application.queue(rig.gpu(), 64).unwrap()).collect();
    let links: Vec<_> = (0..=12).map(|_| rig.application.signal(1).unwrap()).collect();
    let (first, second) = (&queues[0], &queues[1]);
    let mut running = Vec::new();
    for link in 0..12 {
        let mut batch = Batch::new().own_signals();
        batch.barrier(Dependency::All, &[&links[link]], None);
        batch.launch(empty_launch(&rig, &module).after_all_before());
        batch.barrier(Dependency::All, &[], Some(&links[link + 1]));
        let queue = if link % 2 == 0 { second } else { first };
        running.push(queue.submit(&batch).unwrap());
    }
    assert_eq!(links[12].load().unwrap(), 1, "nothing runs before the first link");
    links[0].store(0).unwrap();
    links[12].wait_below(1, SOON).unwrap();
    let times: Vec<_> = running.into_iter().map(|one| one.wait(SOON).unwrap()[0]).collect();
    for pair in times.windows(2) {
        assert!(pair[0].end_ns <= pair[1].start_ns, "{pair:?}");
    }
}

#[test]
fn agent_has_128_queues_and_refuses_more_until_one_is_destroyed() {
    let rig = Rig::new();
    let mut queues: Vec<_> =
        (0..DeviceQueue::LIMIT).map(|_| rig.application.queue(rig.gpu(), 64).unwrap()).collect();
    let refused = rig.application.queue(rig.gpu(), 64).unwrap_err();
    assert!(matches!(refused, Error::Call { status: HSA_STATUS_ERROR_OUT_OF_RESOURCES, .. }), "{refused}");
    queues.pop();
    queues.push(rig.application.queue(rig.gpu(), 64).unwrap());
    let done = rig.application.signal(queues.len() as i64).unwrap();
    for queue in &queues {
        queue.submit(&barriers(1, &done)).unwrap();
    }
    done.wait_below(1, SOON).unwrap();
}

#[test]
fn unknown_packet_stops_its_queue_and_no_other() {
    let rig = Rig::new();
    let (bad, good) =
        (rig.application.queue(rig.gpu(), 64).unwrap(), rig.application.queue(rig.gpu(), 64).unwrap());
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType(9), true, Fence::None, Fence::None));
    let mut batch = Batch::new();
    batch.packet(packet);
    bad.submit(&batch).unwrap();
    let start = std::time::Instant::now();
    while bad.health().is_ok() {
        assert!(start.elapsed() < SOON, "the error never reached the application");
        std::thread::yield_now();
    }
    let failed = bad.health().unwrap_err();
    assert!(matches!(failed, Error::QueueFailed { status: HSA_STATUS_ERROR_INVALID_PACKET_FORMAT }));
    let done = rig.application.signal(1).unwrap();
    good.submit(&barriers(1, &done)).unwrap();
    done.wait_below(1, SOON).unwrap();
}

#[test]
fn lost_completion_is_a_time_out_for_the_application() {
    let fault = FaultPlan::parse(r#"[{"lose_completion": {"queue": 1, "packet": 1}}]"#).unwrap();
    assert!(matches!(fault.faults[0], Fault::LoseCompletion(_)));
    let rig = Rig::with(Options::preset("gfx942".parse().unwrap(), 1).faults(fault));
    let module = rig.application.load(rig.gpu(), kernels::vectors("gfx942").unwrap()).unwrap();
    let queue = rig.application.queue(rig.gpu(), 64).unwrap();
    let mut batch = Batch::new();
    for _ in 0..3 {
        batch.launch(empty_launch(&rig, &module));
    }
    let submission = queue.submit(&batch).unwrap();
    let late = submission.wait(std::time::Duration::from_millis(200)).unwrap_err();
    assert!(late.to_string().contains("a signal is 1"), "two of three completed: {late}");
}

#[test]
fn queue_arguments_are_checked_as_rocr_checks_them() {
    let rig = Rig::new();
    let agent = rig.gpu().agent();
    let mut queue = std::ptr::null_mut();
    let mut create = |agent, packets, private| {
        let (kind, none) = (HSA_QUEUE_TYPE_MULTI.0, std::ptr::null_mut());
        hsa!(
            rig.table(),
            core_.hsa_queue_create_fn(agent, packets, kind, None, none, private, 0, &raw mut queue)
        )
    };
    assert_eq!(create(agent, 65, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_eq!(create(agent, 32, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_eq!(create(agent, 1 << 18, 0), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_eq!(create(agent, 64, 262_129), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_eq!(create(hsa_agent_t { handle: 1 }, 64, 0), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_eq!(create(agent, 64, 0), HSA_STATUS_SUCCESS);
    assert_eq!(hsa!(rig.table(), core_.hsa_queue_destroy_fn(queue)), HSA_STATUS_SUCCESS);
    assert_eq!(hsa!(rig.table(), core_.hsa_queue_destroy_fn(queue)), HSA_STATUS_ERROR_INVALID_QUEUE);
    assert_eq!(
        hsa!(rig.table(), core_.hsa_queue_destroy_fn(std::ptr::null_mut())),
        HSA_STATUS_ERROR_INVALID_ARGUMENT
    );
}

#[test]
fn doorbell_written_in_memory_is_noticed_where_asked_for() {
    let rig = Rig::with(Options::preset("gfx942".parse().unwrap(), 1).poll_doorbells(true));
    let queue = rig.application.queue(rig.gpu(), 64).unwrap();
    let done = rig.application.signal(1).unwrap();
    let handle = done.handle().handle;
    // SAFETY: the queue lives; its ring has room for the packet, and the device looks at it after the doorbell.
    let ring = unsafe { (*queue.raw()).base_address }.cast::<AqlPacket>();
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::BARRIER_AND, true, Fence::System, Fence::System));
    packet.set_completion_signal(handle);
    // SAFETY: as above.
    unsafe { ring.write(packet) };
    hsa!(rig.table(), core_.hsa_queue_add_write_index_screlease_fn(queue.raw(), 1));
    // SAFETY: the queue lives.
    let doorbell = unsafe { (*queue.raw()).doorbell_signal };
    let abi = std::ptr::with_exposed_provenance::<amd_signal_t>(doorbell.handle as usize);
    // SAFETY: a doorbell's handle points at its ABI block (amd_hsa_signal.h).
    let kind = unsafe { (*abi).kind };
    assert_eq!(kind, AMD_SIGNAL_KIND_DOORBELL.0 as i64);
    let word =
        std::ptr::with_exposed_provenance::<u64>(doorbell.handle as usize + 8).cast::<*const AtomicU64>();
    // SAFETY: for this kind the second word is the address of the doorbell.
    let word = unsafe { *word };
    // SAFETY: the doorbell lives as long as its queue.
    unsafe { &*word }.store(0, Ordering::Release);
    done.wait_below(1, SOON).unwrap();
}
