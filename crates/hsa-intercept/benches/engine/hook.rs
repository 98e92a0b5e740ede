//! What the write hook costs the submitting thread for each dispatch, on a device that does nothing:
//! `intercept/hook/<who listens>/<kernels in a batch>`. Processor time of that thread, so that a busy machine does not
//! count.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use wavescope_core::PacketType;

use crate::rig::{Listener, Rig, new_signal, packet};

/// Batches between two looks at the clock.
const BATCHES: u32 = 64;

/// Processor time of this thread.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the result outlives the call.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "the clock of a thread");
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

pub(crate) fn hook(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("intercept/hook");
    let listeners = [
        ("nobody", Listener::Nobody),
        ("declined", Listener::Declines { serialized: false }),
        ("declined, serialized", Listener::Declines { serialized: true }),
        ("measured", Listener::Measures),
        ("traced", Listener::Traces),
    ];
    for (name, listener) in listeners {
        for kernels in [1, 64] {
            let mut rig = Rig::new(listener, 1);
            let application = new_signal(i64::MAX / 2);
            let batch = vec![packet(PacketType::KERNEL_DISPATCH, application); kernels];
            group.throughput(Throughput::Elements(kernels as u64));
            group.bench_function(BenchmarkId::new(name, kernels), |bencher| {
                bencher.iter_custom(|rounds| {
                    let mut spent = Duration::ZERO;
                    for _ in 0..rounds {
                        // Many batches at a time, so that the clock is not what is measured.
                        let start = processor_time();
                        for _ in 0..BATCHES {
                            rig.submit(0, &batch);
                        }
                        spent += (processor_time() - start) / BATCHES;
                        rig.complete();
                        rig.wait();
                    }
                    spent
                });
            });
        }
    }
    group.finish();
}
