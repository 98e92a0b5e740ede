//! Kernels end to end: loaded, dispatched, completed, placed, timed.

use wavescope_software_gpu::face::{Options, TimeMode};
use wavescope_workload::sample::Sample;
use wavescope_workload::{Batch, Launch, kernels};

use crate::rig::{Rig, SOON};

/// Waves of a launch: partial work-groups at each edge are launched with fewer work-items, and each group's items fill
/// waves in order (HSA Platform System Architecture 1.2, section 2.8).
fn waves(grid: [u32; 3], workgroup: [u16; 3], wave_size: u64) -> u64 {
    let groups = |dimension: usize| {
        let size = u64::from(workgroup[dimension]);
        let whole = u64::from(grid[dimension]) / size;
        let rest = u64::from(grid[dimension]) % size;
        [(whole, size), (u64::from(rest != 0), rest)]
    };
    let mut total = 0;
    for (x_count, x) in groups(0) {
        for (y_count, y) in groups(1) {
            for (z_count, z) in groups(2) {
                total += x_count * y_count * z_count * (x * y * z).div_ceil(wave_size);
            }
        }
    }
    total
}

#[test]
fn placed_waves_are_those_of_the_launch_geometry() {
    for (target, wave_size) in [("gfx942", 64), ("gfx90a", 64), ("gfx1100", 32)] {
        let rig = Rig::for_target(target);
        let sample = Sample::load(&rig.application, rig.gpu()).unwrap();
        let queue = rig.application.queue(rig.gpu(), 64).unwrap();
        let mut batch = Batch::new();
        let launches = sample.launches().unwrap();
        assert!(launches.len() >= 6);
        for launch in &launches {
            batch.launch(launch.clone().after_all_before());
        }
        queue.submit(&batch).unwrap().wait(SOON).unwrap();

        let placed = rig.log.dispatches();
        assert_eq!(placed.len(), launches.len(), "{target}");
        for (launch, truth) in launches.iter().zip(&placed) {
            let expected = waves(launch.grid(), launch.workgroup(), wave_size);
            let what = format!("{target}: {} {:?} {:?}", launch.name(), launch.grid(), launch.workgroup());
            assert_eq!(truth.waves, expected, "{what}");
            assert_eq!(rig.log.waves(truth.dispatch), expected, "{what}");
            assert_eq!(truth.grid, launch.grid(), "{what}");
        }
    }
}

#[test]
fn dispatch_times_lie_between_submission_and_completion_and_do_not_overlap_behind_a_barrier() {
    for time in [TimeMode::Real, TimeMode::Skip] {
        let rig = Rig::with(Options::preset("gfx942".parse().unwrap(), 1).time(time));
        let module = rig.application.load(rig.gpu(), kernels::vectors("gfx942").unwrap()).unwrap();
        let queue = rig.application.queue(rig.gpu(), 64).unwrap();
        let kernel = module.kernel("empty").unwrap();
        let mut batch = Batch::new().own_signals();
        for _ in 0..10 {
            batch.launch(Launch::new(kernel.clone(), [65_536, 1, 1], [256, 1, 1]).after_all_before());
        }
        let before = rig.application.timestamp_ns().unwrap();
        let times = queue.submit(&batch).unwrap().wait(SOON).unwrap();
        let after = rig.application.timestamp_ns().unwrap();
        assert_eq!(times.len(), 10);
        // Device ticks are 10 ns: a start may be rounded down by one.
        assert!(times[0].start_ns + 10 >= before, "{times:?} before {before}");
        assert!(times[9].end_ns <= after, "{times:?} after {after}");
        for pair in times.windows(2) {
            assert!(pair[0].start_ns < pair[0].end_ns, "{pair:?}");
            assert!(pair[0].end_ns <= pair[1].start_ns, "{pair:?}");
        }
    }
}

#[test]
fn every_preset_loads_and_runs_every_kernel() {
    for target in kernels::targets() {
        let rig = Rig::for_target(target);
        let sample = Sample::load(&rig.application, rig.gpu()).unwrap();
        let queues: Vec<_> = (0..2).map(|_| rig.application.queue(rig.gpu(), 64).unwrap()).collect();
        let batches = sample.batches(2).unwrap();
        let submitted: Vec<_> =
            queues.iter().zip(&batches).map(|(queue, batch)| queue.submit(batch).unwrap()).collect();
        for submission in submitted {
            submission.wait(SOON).unwrap();
        }
        queues.iter().for_each(|queue| queue.health().unwrap());
        assert_eq!(rig.log.dispatches().len(), sample.launches().unwrap().len(), "{target}");
    }
}
