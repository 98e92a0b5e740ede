//! How fast retirements are published, with ten thousand dispatches in flight: `intercept/retirement/<queues>`.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use wavescope_core::PacketType;

use crate::rig::{Listener, Rig, packet};

const IN_FLIGHT: usize = 10_000;

pub(crate) fn retirement(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("intercept/retirement");
    group.throughput(Throughput::Elements(IN_FLIGHT as u64)).sample_size(20);
    for (name, listener) in [("measured", Listener::Measures), ("traced", Listener::Traces)] {
        for queues in [1, 64] {
            let mut rig = Rig::new(listener, queues);
            let batch = vec![packet(PacketType::KERNEL_DISPATCH, 0); IN_FLIGHT.div_ceil(queues)];
            group.bench_function(BenchmarkId::new(name, queues), |bencher| {
                bencher.iter_custom(|rounds| {
                    let mut spent = Duration::ZERO;
                    for _ in 0..rounds {
                        (0..queues).for_each(|queue| rig.submit(queue, &batch));
                        let start = Instant::now();
                        rig.complete();
                        rig.wait();
                        spent += start.elapsed();
                    }
                    spent
                });
            });
        }
    }
    group.finish();
}
