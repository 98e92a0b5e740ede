//! Queues, packets and kernels.

use std::time::Instant;

use wavescope_workload::{Arguments, Batch, Dependency, Launch, Queue};

use crate::rig::{SOON, TARGETS, on_runtime, on_runtime_with};

#[test]
fn every_kernel_completes_on_two_queues_at_once() {
    on_runtime(&TARGETS, module_path!(), "every_kernel_completes_on_two_queues_at_once", |rig| {
        const COUNT: usize = 10_000;
        let module = rig.vectors(rig.gpu());
        let vector = || rig.application.buffer(rig.gpu(), 4 * COUNT).unwrap();
        let (a, b, c) = (vector(), vector(), vector());
        let count = COUNT as u32;
        let launches = [
            ("empty", Arguments::new()),
            ("vector_add", Arguments::new().buffer(&a).buffer(&b).buffer(&c).u32(count)),
            ("saxpy", Arguments::new().buffer(&a).buffer(&b).f32(2.0).u32(count)),
            ("collatz", Arguments::new().buffer(&c).u32(count)),
        ];
        let queues: Vec<_> = (0..2).map(|_| rig.application.queue(rig.gpu(), 64).unwrap()).collect();
        let submit = |queue: &Queue| {
            let mut batch = Batch::new();
            for (name, arguments) in &launches {
                let launch = Launch::new(module.kernel(name).unwrap(), [count, 1, 1], [256, 1, 1]);
                batch.launch(launch.arguments(arguments.clone()));
            }
            queue.submit(&batch).unwrap()
        };
        let submitted: Vec<_> = queues.iter().map(submit).collect();
        for submission in submitted {
            submission.wait(SOON).unwrap();
        }
        queues.iter().for_each(|queue| queue.health().unwrap());
    });
}

#[test]
fn batches_longer_than_the_ring_wrap_and_complete() {
    on_runtime(&["gfx942"], module_path!(), "batches_longer_than_the_ring_wrap_and_complete", |rig| {
        let (_module, kernel) = rig.empty();
        let queue = rig.application.queue(rig.gpu(), 64).unwrap();
        for length in [1, 63, 64, 7, 64] {
            let mut batch = Batch::new();
            for _ in 0..length {
                batch.launch(Launch::new(kernel.clone(), [64, 1, 1], [64, 1, 1]));
            }
            queue.submit(&batch).unwrap().wait(SOON).unwrap();
        }
        queue.health().unwrap();
    });
}

#[test]
fn barrier_holds_a_queue_until_another_has_completed_the_signal() {
    let name = "barrier_holds_a_queue_until_another_has_completed_the_signal";
    on_runtime(&["gfx942", "gfx1201"], module_path!(), name, |rig| {
        let (_module, kernel) = rig.empty();
        let launch = || Launch::new(kernel.clone(), [256, 1, 1], [64, 1, 1]);
        let (first, second) =
            (rig.application.queue(rig.gpu(), 64).unwrap(), rig.application.queue(rig.gpu(), 64).unwrap());
        let gate = rig.application.signal(1).unwrap();

        let mut held = Batch::new();
        held.barrier(Dependency::All, &[&gate], None).launch(launch());
        let held = first.submit(&held).unwrap();
        let mut free = Batch::new();
        free.launch(launch());
        second.submit(&free).unwrap().wait(SOON).unwrap();
        assert!(!held.is_complete().unwrap());
        gate.store(0).unwrap();
        held.wait(SOON).unwrap();
    });
}

#[test]
fn dispatch_times_are_nanoseconds_of_the_system_clock() {
    on_runtime(&TARGETS, module_path!(), "dispatch_times_are_nanoseconds_of_the_system_clock", |rig| {
        let (_module, kernel) = rig.empty();
        let queue = rig.application.queue(rig.gpu(), 64).unwrap();
        let mut batch = Batch::new().own_signals();
        for _ in 0..8 {
            batch.launch(Launch::new(kernel.clone(), [65_536, 1, 1], [256, 1, 1]).after_all_before());
        }
        let (before, start) = (rig.application.timestamp_ns().unwrap(), Instant::now());
        let times = queue.submit(&batch).unwrap().wait(SOON).unwrap();
        let (after, took) = (rig.application.timestamp_ns().unwrap(), start.elapsed());
        assert_eq!(times.len(), 8);
        // ROCr fits the GPU clock to the system clock: allow it a tenth of a millisecond.
        const FIT_NS: u64 = 100_000;
        assert!(times[0].start_ns + FIT_NS >= before, "{times:?} before {before}");
        assert!(times[7].end_ns <= after + FIT_NS, "{times:?} after {after}");
        for pair in times.windows(2) {
            assert!(pair[0].start_ns < pair[0].end_ns && pair[0].end_ns <= pair[1].start_ns, "{pair:?}");
        }
        assert!(u128::from(times[7].end_ns - times[0].start_ns) <= took.as_nanos());
    });
}

#[test]
fn truth_log_tells_what_ran() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let ran = on_runtime_with(
        "gfx942",
        ("WAVESCOPE_GPU_TRUTH", log.path()),
        module_path!(),
        "truth_log_tells_what_ran",
        |rig| {
            let (_module, kernel) = rig.empty();
            let queue = rig.application.queue(rig.gpu(), 64).unwrap();
            let mut batch = Batch::new();
            batch.launch(Launch::new(kernel, [1000, 3, 1], [200, 1, 1]));
            queue.submit(&batch).unwrap().wait(SOON).unwrap();
        },
    );
    if ran {
        let log = std::fs::read_to_string(log.path()).unwrap();
        let lines = |kind: &str| log.lines().filter(|line| line.contains(kind)).count();
        // 15 work-groups of four waves, the last of 8 work-items.
        assert_eq!((lines(r#""kind":"dispatch""#), lines(r#""kind":"wave""#)), (1, 60), "{log}");
    }
}
