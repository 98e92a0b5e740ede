//! A GPU that does not answer, loses completions or fails: everything ends within its limits, with errors that say what
//! happened, and memory that the GPU may still write is kept. Only the in-process runtime takes a fault plan from a test.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wavescope_att_resources::{BufferId, Decision};
use wavescope_core::{AgentId, InterceptionError, LossReason};
use wavescope_hsa_intercept::Technique;
use wavescope_software_gpu::{CompletionFault, Fault, FaultPlan};
use wavescope_tests::{
    Bed, FAULT_PATIENCE, PATIENCE, What, count, decode, on_engine, place, total, trace, waves,
};
use wavescope_workload::Queue;

use crate::run::{batch, launch, run};

const GRID: [u32; 3] = [6400, 1, 1];
const GROUP: [u16; 3] = [64, 1, 1];

/// Much more than the limits that are handed out add up to, much less than a hang.
const PROMPT: Duration = Duration::from_secs(10);

/// Packets of one instrumented dispatch and a few more.
const PACKETS: u64 = 8;

/// Tests with each technique.
macro_rules! with_either_technique {
    ($($(#[$doc:meta])* fn $name:ident($technique:ident) $body:block)*) => { $(
        $(#[$doc])*
        mod $name {
            use super::*;

            fn check($technique: Technique) $body

            #[test]
            fn in_process() {
                check(Technique::Doorbell);
            }

            #[test]
            fn in_process_with_runtime_queues() {
                check(Technique::Runtime);
            }
        }
    )* };
}

/// The first queue of the machine, at a packet.
fn at(packet: u64) -> CompletionFault {
    CompletionFault { queue: 1, packet, micros: 0 }
}

/// A machine with one fault, and the application's queue that it hits.
fn faulty(technique: Technique, fault: Fault) -> (Bed, Queue) {
    let bed = Bed::with_faults("gfx942", technique, FaultPlan { faults: vec![fault] });
    let queue = bed.application.queue(bed.gpu(0), 64).unwrap();
    (bed, queue)
}

fn promptly<T>(what: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = what();
    assert!(start.elapsed() < PROMPT, "took {:?}", start.elapsed());
    result
}

/// What the application is told of its queue; the services may hear of it first.
fn failure(queue: &Queue) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        match queue.health() {
            Err(error) => return error.to_string(),
            Ok(()) => assert!(Instant::now() < end, "no error of the queue"),
        }
        std::thread::yield_now();
    }
}

with_either_technique! {
    fn counting_on_a_queue_that_hangs_ends_with_a_named_error_and_a_lost_record(technique) {
        let mut lost = 0;
        for packet in 0..PACKETS {
            let (bed, queue) = faulty(technique, Fault::Hang(at(packet)));
            let counted = count(&bed, 1, 0, &["SQ_WAVES"]);
            counted.service.start().unwrap();
            let submission = queue.submit(&batch([launch(&bed, 0, GRID, GROUP)])).unwrap();
            let stopped = promptly(|| counted.service.stop(FAULT_PATIENCE));
            let Err(error) = stopped else {
                // Packets behind the last one of the dispatch.
                assert_eq!(counted.take().len(), 1);
                continue;
            };
            let in_flight = match &error {
                wavescope_counting::Error::Interception(InterceptionError::DrainTimedOut { in_flight, .. }) => {
                    *in_flight
                }
                other => panic!("packet {packet}: {other:?}"),
            };
            assert_eq!(in_flight, 1, "packet {packet}");
            assert_eq!(counted.take(), []);
            // The application gives up: what was in flight is closed.
            promptly(|| drop(queue));
            drop(submission);
            counted.service.flush(PATIENCE).unwrap();
            let record = counted.records.recv_timeout(PATIENCE).unwrap();
            match record.lost {
                Some(reason) => assert_eq!((reason, record.records.len()), (LossReason::QueueDestroyed, 0)),
                // The packet that wakes the reaper hung: the dispatch itself was over.
                None => assert_eq!(total(&record, "SQ_WAVES"), waves(GRID, GROUP, 64) as f64),
            }
            lost += usize::from(record.lost.is_some());
            // The agent goes on.
            counted.service.start().unwrap();
            run(&bed, 0, [launch(&bed, 0, GRID, GROUP)]);
            counted.service.stop(PATIENCE).unwrap();
            let records = counted.take();
            assert_eq!(records.len(), 1, "packet {packet}");
            assert_eq!(total(&records[0], "SQ_WAVES"), waves(GRID, GROUP, 64) as f64);
        }
        assert!(lost >= 4, "start, kernel, read and stop are packets: {lost}");
    }

    fn lost_completion_is_a_named_error_or_harmless(technique) {
        let mut lost = 0;
        for packet in 0..PACKETS {
            let (bed, queue) = faulty(technique, Fault::LoseCompletion(at(packet)));
            let counted = count(&bed, 1, 0, &["SQ_WAVES"]);
            counted.service.start().unwrap();
            let submission = queue.submit(&batch([launch(&bed, 0, GRID, GROUP)])).unwrap();
            match promptly(|| counted.service.stop(FAULT_PATIENCE)) {
                Ok(()) => {
                    let records = counted.take();
                    assert_eq!(records.len(), 1, "packet {packet}");
                    assert_eq!(total(&records[0], "SQ_WAVES"), waves(GRID, GROUP, 64) as f64);
                }
                Err(error) => {
                    lost += 1;
                    assert!(error.to_string().contains("1 dispatches of"), "packet {packet}: {error}");
                }
            }
            promptly(|| drop(queue));
            drop(submission);
        }
        assert!(lost >= 1, "nobody waits for the last packet");
    }

    fn late_and_reordered_completions_change_no_value(technique) {
        // Up to the read packet of the first of three dispatches.
        for packet in 0..5 {
            for fault in [
                Fault::DelayCompletion(CompletionFault { micros: 20_000, ..at(packet) }),
                Fault::ReorderCompletion(at(packet)),
            ] {
                let (bed, queue) = faulty(technique, fault);
                let counted = count(&bed, 1, 0, &["SQ_WAVES"]);
                counted.service.start().unwrap();
                let grids = [64, 640, 6400].map(|x| [x, 1, 1]);
                let launches = grids.map(|grid| launch(&bed, 0, grid, GROUP));
                queue.submit(&batch(launches)).unwrap().wait(PATIENCE).unwrap();
                promptly(|| counted.service.stop(PATIENCE)).unwrap();
                let records = counted.take();
                let values: Vec<_> = records.iter().map(|record| total(record, "SQ_WAVES")).collect();
                assert_eq!(values, grids.map(|grid| waves(grid, GROUP, 64) as f64), "packet {packet}");
            }
        }
    }

    fn queue_error_closes_what_is_in_flight_as_lost(technique) {
        const STATUS: hsa_sys::hsa_status_t = hsa_sys::HSA_STATUS_ERROR_INVALID_ISA;
        for packet in 0..PACKETS {
            let fault = Fault::QueueError { queue: 1, packet, status: STATUS.0 };
            let bed = Bed::with_faults("gfx942", technique, FaultPlan { faults: vec![fault] });
            let counted = count(&bed, 1, 0, &["SQ_WAVES"]);
            counted.service.start().unwrap();
            // After the start, which writes nothing to it: an error before the launches would leave them unread.
            let queue = bed.application.queue(bed.gpu(0), 64).unwrap();
            let launches = vec![launch(&bed, 0, GRID, GROUP); 5];
            let submission = queue.submit(&batch(launches)).unwrap();
            promptly(|| counted.service.stop(PATIENCE)).unwrap();
            assert_eq!(failure(&queue), format!("the queue failed: {STATUS:?}"));
            let records = counted.take();
            assert_eq!(records.len(), 5, "packet {packet}");
            let lost = records.iter().filter(|record| record.lost == Some(LossReason::QueueError)).count();
            assert!(lost > 0, "packet {packet}");
            for record in records.iter().filter(|record| record.lost.is_none()) {
                assert_eq!(total(record, "SQ_WAVES"), waves(GRID, GROUP, 64) as f64);
            }
            assert_eq!(counted.service.summary().lost, lost as u64);
            promptly(|| drop(queue));
            drop(submission);
            // Another queue of the agent is not touched.
            counted.service.start().unwrap();
            run(&bed, 0, [launch(&bed, 0, GRID, GROUP)]);
            counted.service.stop(PATIENCE).unwrap();
            assert_eq!(total(&counted.take()[0], "SQ_WAVES"), waves(GRID, GROUP, 64) as f64);
        }
    }

    fn tracing_on_a_queue_that_hangs_ends_with_a_named_error_and_keeps_the_slot(technique) {
        let mut hung = 0;
        for packet in 0..PACKETS {
            let (bed, queue) = faulty(technique, Fault::Hang(at(packet)));
            let resources = bed.resources(0);
            let decide = Arc::new(|_: &_| Decision::StartAndStop { user_data: 0 });
            let traces = trace(&bed, &resources, What::of_context(1), decide).unwrap();
            traces.service.start().unwrap();
            let submission = queue.submit(&batch([launch(&bed, 0, GRID, GROUP)])).unwrap();
            let stopped = promptly(|| traces.service.stop(FAULT_PATIENCE));
            if stopped.is_ok() {
                assert_eq!(traces.take().len(), 1);
                continue;
            }
            hung += 1;
            let error = stopped.unwrap_err().to_string();
            assert!(error.contains("1 dispatches of"), "packet {packet}: {error}");
            assert_eq!(traces.take(), []);
            // Nobody destroys the queue: the service goes, and what its packets name stays.
            promptly(|| drop(traces));
            assert_eq!(bed.claims.holders(AgentId(0)), [], "packet {packet}");
            let report = promptly(|| resources.owner.shutdown()).unwrap();
            assert_eq!(report.cut_short.len(), 1, "packet {packet}");
            assert_eq!(report.leaked, [BufferId::Output(0)], "packet {packet}");
            drop(submission);
            promptly(|| drop(queue));
        }
        assert!(hung >= 3, "start, kernel and stop are packets: {hung}");
    }

    fn traced_dispatch_of_a_destroyed_queue_is_a_lost_chunk_and_the_next_one_is_whole(technique) {
        let (bed, queue) = faulty(technique, Fault::Hang(at(2)));
        let resources = bed.resources(0);
        let decide = Arc::new(|_: &_| Decision::StartAndStop { user_data: 3 });
        let traces = trace(&bed, &resources, What::of_context(1), decide).unwrap();
        traces.service.start().unwrap();
        let submission = queue.submit(&batch([launch(&bed, 0, GRID, GROUP)])).unwrap();
        promptly(|| drop(queue));
        drop(submission);
        let chunk = traces.chunks.recv_timeout(PATIENCE).unwrap();
        assert_eq!((chunk.flags.lost, chunk.user_data, chunk.data.len()), (true, 3, 0));
        run(&bed, 0, [launch(&bed, 0, GRID, GROUP)]);
        promptly(|| traces.service.stop(PATIENCE)).unwrap();
        let chunks = traces.take();
        assert_eq!(chunks.len(), 1);
        let dispatch = bed.placement.dispatches(0).last().cloned().unwrap();
        let placed = on_engine(bed.agent(0), &bed.placement.waves(0, dispatch.dispatch), 0);
        assert_eq!(decode(&chunks[0].data).starts.len(), placed.len());
        let summary = traces.service.summary();
        assert_eq!((summary.delivered, summary.lost), (1, 1));
        drop(traces);
        let report = promptly(|| resources.owner.shutdown()).unwrap();
        assert!(report.cut_short.is_empty() && report.leaked.is_empty(), "{report:?}");
    }

    fn full_trace_buffer_is_said_and_what_was_written_is_right(technique) {
        let (bed, queue) = faulty(technique, Fault::TraceBytes(1024));
        let resources = bed.resources(0);
        let decide = Arc::new(|_: &_| Decision::StartAndStop { user_data: 0 });
        let traces = trace(&bed, &resources, What::of_context(1), decide).unwrap();
        traces.service.start().unwrap();
        let launches = [launch(&bed, 0, [1_000_000, 1, 1], GROUP)];
        queue.submit(&batch(launches)).unwrap().wait(PATIENCE).unwrap();
        traces.service.stop(PATIENCE).unwrap();
        let chunks = traces.take();
        assert_eq!(chunks.len(), 1);
        assert!(chunks[0].flags.gpu_buffer_full && !chunks[0].flags.lost, "{:?}", chunks[0].flags);
        let placed = on_engine(bed.agent(0), &bed.placement.waves(0, 1), 0);
        let wanted: Vec<_> = placed.iter().map(|wave| place(bed.agent(0), wave)).collect();
        let starts: Vec<_> = decode(&chunks[0].data).starts.into_iter().map(|start| start.1).collect();
        assert!(starts.len() > 50 && starts.len() < wanted.len(), "{} of {}", starts.len(), wanted.len());
        assert_eq!(starts, wanted[..starts.len()]);
    }

    fn queue_that_cannot_be_had_is_the_runtimes_error(technique) {
        // Behind a front, a smaller queue is asked for when the first is refused.
        let plan = FaultPlan { faults: vec![Fault::FailQueue(1), Fault::FailQueue(2)] };
        let bed = Bed::with_faults("gfx942", technique, plan);
        let counted = count(&bed, 1, 0, &["SQ_WAVES"]);
        counted.service.start().unwrap();
        let error = bed.application.queue(bed.gpu(0), 64).unwrap_err();
        assert!(error.to_string().contains("OUT_OF_RESOURCES"), "{error}");
        let _ = bed.application.queue(bed.gpu(0), 64);
        run(&bed, 0, [launch(&bed, 0, GRID, GROUP)]);
        counted.service.stop(PATIENCE).unwrap();
        assert_eq!(total(&counted.take()[0], "SQ_WAVES"), waves(GRID, GROUP, 64) as f64);
    }
}
