//! What interception and counting cost the submitting thread for each dispatch, batches of 64, on a device that does
//! nothing: `intercept/enqueue/*`. What the packets then cost on a queue is not in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};

mod heap;
mod rig;

use heap::Heap;
use rig::{BATCH, Case, Rig};

fn enqueue(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("intercept/enqueue");
    group.throughput(Throughput::Elements(BATCH as u64));
    let cases = [
        ("no subscriber", Case::NoSubscriber),
        ("declined", Case::Declined { serialized: false }),
        ("declined serialized", Case::Declined { serialized: true }),
        ("counted", Case::Counted),
    ];
    for (name, case) in cases {
        let mut rig = Rig::new(case, Arc::new(Heap::default()));
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let mut spent = Duration::ZERO;
                for _ in 0..rounds {
                    let start = Instant::now();
                    rig.submit();
                    spent += start.elapsed();
                    rig.retire();
                }
                spent
            });
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    enqueue(&mut criterion);
    criterion.final_summary();
}
