//! Two kernels of one queue that may overlap: they do while they are only traced, and do not while they are counted.

use wavescope_core::DispatchTimes;
use wavescope_counting::PoolSize;
use wavescope_workload::Launch;

use crate::rig::*;
use crate::tracing::{Records, stop};

/// Pairs of kernels, each pair rung for together.
const PAIRS: u32 = 50;

/// Two kernels of a few waves each, neither with the barrier bit.
fn pair(rig: &Rig) -> [Launch; 2] {
    [8, 2].map(|waves| Launch::new(rig.kernel(0, "empty"), [64 * waves, 1, 1], [64, 1, 1]))
}

fn overlap(times: &[DispatchTimes]) -> bool {
    times[0].start_ns <= times[1].start_ns && times[1].start_ns < times[0].end_ns
}

/// Runs the pairs, and returns the times that the application is told.
fn run(rig: &Rig) -> Vec<[DispatchTimes; 2]> {
    let queue = rig.queue(0);
    let times = |_| {
        let times = queue.submit(&batch(pair(rig))).unwrap().wait(LIMIT).unwrap();
        [0, 1].map(|index| DispatchTimes { start_ns: times[index].start_ns, end_ns: times[index].end_ns })
    };
    (0..PAIRS).map(times).collect()
}

on_both_faces! {
    /// Nobody listens: what the application itself sees.
    fn kernels_that_nobody_listens_to_overlap(rig on "gfx942") {
        let told = run(rig);
        assert!(told.iter().all(|pair| overlap(pair)), "{told:?}");
    }

    /// The records say the same as the application's signals: the kernels ran beside each other.
    fn kernels_that_are_only_traced_overlap(rig on "gfx942") {
        let (records, id) = Records::start(rig);
        let told = run(rig);
        stop(rig, id);
        let completed = records.completed();
        assert_eq!(completed.len(), 2 * PAIRS as usize);
        let ran: Vec<_> = completed.iter().map(|(_, times)| *times).collect();
        for (ran, told) in ran.chunks(2).zip(&told) {
            assert!(overlap(ran) && overlap(told), "recorded {ran:?}, told {told:?}");
        }
        assert!(completed.iter().all(|(kernel, _)| !kernel.serialized));
    }

    /// Counting wants each kernel for itself, also where the application does not ask for it.
    fn kernels_that_are_counted_run_one_after_the_other(rig on "gfx942") {
        let config = rig.config(0, &["SQ_WAVES"], PoolSize(4));
        let (counting, counted) = rig.counting(2, &[0], always(config));
        let (records, id) = Records::start(rig);
        counting.start().unwrap();
        let told = run(rig);
        counting.stop(LIMIT).unwrap();
        stop(rig, id);
        let mut ran: Vec<_> = records.completed().iter().map(|(_, times)| *times).collect();
        assert_eq!(ran.len(), 2 * PAIRS as usize);
        ran.sort_by_key(|times| times.start_ns);
        assert!(ran.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns), "{ran:?}");
        assert!(told.iter().all(|[first, second]| first.end_ns <= second.start_ns), "{told:?}");
        let waves: Vec<_> =
            std::iter::from_fn(|| counted.try_recv()).map(|counted| total(&counted, "SQ_WAVES")).collect();
        assert_eq!(waves, [8.0, 2.0].repeat(PAIRS as usize), "each kernel's own waves");
    }
}
