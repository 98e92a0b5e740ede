//! Values against the launch geometry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use wavescope_core::{CounterRecord, DispatchId, Position};
use wavescope_counting::{Choice, PoolSize};
use wavescope_software_gpu::{Truth, TruthSink, face};
use wavescope_workload::Launch;

use crate::rig::*;

/// Grid and work-group sizes, among them partial work-groups and 3-D grids.
const SHAPES: [([u32; 3], [u16; 3]); 8] = [
    ([64, 1, 1], [64, 1, 1]),
    ([1024, 1, 1], [256, 1, 1]),
    ([1000, 1, 1], [256, 1, 1]),
    ([65, 1, 1], [64, 1, 1]),
    ([100, 7, 1], [16, 16, 1]),
    ([33, 9, 5], [8, 4, 2]),
    ([40, 40, 40], [10, 10, 10]),
    ([1, 1, 1], [1, 1, 1]),
];

/// Waves of a launch: each work-group, also one cut off by the grid's edge, is launched on its own, and its work-items fill
/// waves of `wave_size` lanes. (HSA Programmer's Reference, 2.2: partial work-groups.)
fn waves(grid: [u32; 3], workgroup: [u16; 3], wave_size: u32) -> u64 {
    let mut waves = 0;
    let sizes = |dimension: usize| {
        let size = u32::from(workgroup[dimension]);
        (0..grid[dimension].div_ceil(size)).map(move |group| size.min(grid[dimension] - group * size))
    };
    for x in sizes(0) {
        for y in sizes(1) {
            for z in sizes(2) {
                waves += u64::from((x * y * z).div_ceil(wave_size));
            }
        }
    }
    waves
}

/// Waves of the model's log by engine, array and work-group processor.
#[derive(Default)]
struct Placed(Mutex<HashMap<(u16, u16, u16), u32>>);

impl TruthSink for Placed {
    fn record(&self, truth: &Truth) {
        if let Truth::Wave(wave) = truth {
            let place = (u16::from(wave.se), u16::from(wave.sa), u16::from(wave.cu / 2));
            *self.0.lock().unwrap().entry(place).or_default() += 1;
        }
    }
}

// On chips with work-group processors each has counters of its own: each value is of the processor that it names.
#[test]
fn values_of_work_group_processors_are_where_the_waves_were() {
    for target in ["gfx1100", "gfx1201"] {
        let placed = Arc::new(Placed::default());
        let sink: Arc<dyn TruthSink> = Arc::<Placed>::clone(&placed);
        let options = face::Options::preset(target.parse().unwrap(), 1).truth(sink);
        let rig = Rig::in_process_with(options, Technique::Doorbell);
        let (counting, records) = rig.counting(1, &[0], always(rig.config(0, &["SQ_WAVES"], PoolSize(1))));
        counting.start().unwrap();
        // Not a multiple of anything that the chips have.
        let launch = Launch::new(rig.kernel(0, "empty"), [64 * 37, 1, 1], [64, 1, 1]);
        rig.queue(0).submit(&batch([launch])).unwrap().wait(LIMIT).unwrap();
        counting.stop(LIMIT).unwrap();
        let counted = records.try_recv().unwrap();
        let value = |record: &CounterRecord| (record.value > 0.0).then_some(record.value as u32);
        let place = |at: &Position| (at.shader_engine, at.shader_array, at.wgp);
        let values = counted.records.iter().filter_map(|one| Some((place(&one.position), value(one)?)));
        assert_eq!(values.collect::<HashMap<_, _>>(), *placed.0.lock().unwrap(), "{target}");
    }
}

on_both_faces! {
fn sq_waves_equals_the_launch_geometry(rig on "gfx942") {
    let config = rig.config(0, &["SQ_WAVES", "GRBM_COUNT", "GRBM_GUI_ACTIVE"], PoolSize::default());
    let (counting, records) = rig.counting(1, &[0], always(config));
    counting.start().unwrap();
    let queue = rig.queue(0);
    let kernel = rig.kernel(0, "empty");
    let launches = SHAPES.map(|(grid, workgroup)| Launch::new(kernel.clone(), grid, workgroup));
    let times = queue.submit(&batch(launches)).unwrap().wait(LIMIT).unwrap();
    counting.stop(LIMIT).unwrap();

    for (index, (grid, workgroup)) in SHAPES.into_iter().enumerate() {
        let counted = records.try_recv().unwrap();
        assert_eq!(counted.dispatch.id, DispatchId(index as u64 + 1));
        assert_eq!((counted.dispatch.grid, counted.dispatch.workgroup), (grid, workgroup));
        let expected = waves(grid, workgroup, rig.agent(0).wave_size);
        assert_eq!(total(&counted, "SQ_WAVES"), expected as f64, "{grid:?} in {workgroup:?}");
        let (all, busy) = (total(&counted, "GRBM_COUNT"), total(&counted, "GRBM_GUI_ACTIVE"));
        assert!(0.0 < busy && busy <= all, "busy for {busy} of {all} cycles");
        assert_eq!(counted.user_data, counted.dispatch.id.0 * 10);
        assert_eq!(
            (counted.times.start_ns, counted.times.end_ns),
            (times[index].start_ns, times[index].end_ns),
            "the application sees the same times"
        );
    }
    assert!(records.try_recv().is_none());
}

fn each_record_names_its_place(rig on "gfx942") {
    let config = rig.config(0, &["SQ_WAVES"], PoolSize::default());
    let (counting, records) = rig.counting(1, &[0], always(config));
    counting.start().unwrap();
    let queue = rig.queue(0);
    let launch = Launch::new(rig.kernel(0, "empty"), [64 * 4096, 1, 1], [64, 1, 1]);
    queue.submit(&batch([launch])).unwrap().wait(LIMIT).unwrap();
    counting.stop(LIMIT).unwrap();
    let counted = records.try_recv().unwrap();
    // 8 XCCs with 4 shader engines each, every one of them busy with 4,096 work-groups.
    let mut places: Vec<_> = counted
        .records
        .iter()
        .map(|record| (record.position.xcc, record.position.shader_engine, record.value > 0.0))
        .collect();
    places.sort_unstable();
    let expected: Vec<_> = (0..8).flat_map(|xcc| (0..4).map(move |engine| (xcc, engine, true))).collect();
    assert_eq!(places, expected);
}

fn declined_dispatches_are_not_counted_and_the_others_are_right(rig on "gfx942") {
    let config = rig.config(0, &["SQ_WAVES"], PoolSize::default());
    let (counting, records) = rig.counting(1, &[0], move |dispatch| {
        let odd = dispatch.id.0 % 2 == 1;
        Choice { config: odd.then(|| Arc::clone(&config)), user_data: 0 }
    });
    counting.start().unwrap();
    let queue = rig.queue(0);
    let kernel = rig.kernel(0, "empty");
    let launches = (1..=20u32).map(|n| Launch::new(kernel.clone(), [64 * n, 1, 1], [64, 1, 1]));
    queue.submit(&batch(launches)).unwrap().wait(LIMIT).unwrap();
    counting.stop(LIMIT).unwrap();
    let found: Vec<_> = std::iter::from_fn(|| records.try_recv()).map(|c| total(&c, "SQ_WAVES")).collect();
    let expected: Vec<_> = (1..=20).step_by(2).map(f64::from).collect();
    assert_eq!(found, expected);
    let summary = counting.summary();
    assert_eq!((summary.seen, summary.counted, summary.declined), (20, 10, 10));
}

/// A batch that is much longer than the pool: the GPU waits, nothing is lost, nothing is overwritten.
fn batch_longer_than_the_pool_is_counted_completely(rig on "gfx942") {
    let config = rig.config(0, &["SQ_WAVES"], PoolSize(8));
    let (counting, records) = rig.counting(1, &[0], always(config));
    counting.start().unwrap();
    let queue = rig.queue(0);
    let kernel = rig.kernel(0, "empty");
    let launches = (1..=200u32).map(|n| Launch::new(kernel.clone(), [64 * n, 1, 1], [64, 1, 1]));
    queue.submit(&batch(launches)).unwrap().wait(LIMIT).unwrap();
    counting.stop(LIMIT).unwrap();
    let found: Vec<_> = std::iter::from_fn(|| records.try_recv()).map(|c| total(&c, "SQ_WAVES")).collect();
    let expected: Vec<_> = (1..=200).map(f64::from).collect();
    assert_eq!(found, expected);
}

fn two_queues_of_one_agent_do_not_see_each_others_waves(rig on "gfx942") {
    let config = rig.config(0, &["SQ_WAVES"], PoolSize(4));
    let (counting, records) = rig.counting(1, &[0], always(config));
    counting.start().unwrap();
    let kernel = rig.kernel(0, "empty");
    std::thread::scope(|scope| {
        for waves in [3u32, 50] {
            let (queue, kernel) = (rig.queue(0), kernel.clone());
            scope.spawn(move || {
                for _ in 0..20 {
                    let launches =
                        (0..10).map(|_| Launch::new(kernel.clone(), [64 * waves, 1, 1], [64, 1, 1]));
                    queue.submit(&batch(launches)).unwrap().wait(LIMIT).unwrap();
                }
            });
        }
    });
    counting.stop(LIMIT).unwrap();
    let mut seen = 0;
    while let Some(counted) = records.try_recv() {
        assert_eq!(total(&counted, "SQ_WAVES"), f64::from(counted.dispatch.grid[0] / 64));
        seen += 1;
    }
    assert_eq!(seen, 400);
}
}
