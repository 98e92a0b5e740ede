//! Packets per second through one queue: barriers, kernels one after the other and beside each other, counted kernels,
//! traced kernels.
//!
//! The producer keeps the ring full; each iteration submits a batch and waits for the completion of its last packet.

#![expect(missing_docs, reason = "criterion_group makes an undocumented public function")]

#[path = "../tests/model/rig/mod.rs"]
#[expect(dead_code, clippy::unwrap_used, clippy::panic, reason = "test code, of which this is a part")]
mod rig;

use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rig::stream::Recorded;
use rig::{Clock, Rig, barrier, dispatch, overlapping};
use wavescope_core::{AqlPacket, PacketType};
use wavescope_software_gpu::{ClockHost, DeviceOptions, Truth, TruthSink};

struct NoTruth;

impl TruthSink for NoTruth {
    fn record(&self, _: &Truth) {}
}

fn quiet_rig(config: wavescope_software_gpu::DeviceConfig) -> Rig {
    let options = DeviceOptions { truth: Some(Arc::new(NoTruth)), ..DeviceOptions::default() };
    Rig::with(config, options, Clock::Real(ClockHost::new()), 16 << 30)
}

/// Submits `batch` again and again; the last packet's signal counts the batches.
fn run(criterion: &mut Criterion, name: &str, rig: &Rig, elements: u64, batch: &[AqlPacket], signal: u64) {
    let mut group = criterion.benchmark_group("software-gpu/queue");
    group.throughput(Throughput::Elements(elements)).sample_size(20);
    let mut queue = rig.queue(4096);
    let mut value = rig.value(signal);
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
        bencher.iter(|| {
            queue.submit(batch);
            value -= 1;
            rig.wait(signal, value);
        });
    });
    group.finish();
}

fn packets(criterion: &mut Criterion) {
    const BATCH: usize = 4096;
    let recorded = Recorded::own("gfx942", "pmc-mix-grbm-sq.json");
    let rig = quiet_rig(recorded.config());
    let signal = rig.signal(i64::MAX);
    let mut barriers = vec![barrier(PacketType::BARRIER_AND, &[], 0); BATCH];
    barriers[BATCH - 1].set_completion_signal(signal);
    run(criterion, "barriers", &rig, BATCH as u64, &barriers, signal);

    let kernel = rig.kernel(3);
    let mut kernels = vec![dispatch(kernel, [256, 1, 1], [256, 1, 1], 0); BATCH];
    kernels[BATCH - 1].set_completion_signal(signal);
    run(criterion, "kernels", &rig, BATCH as u64, &kernels, signal);

    // The last one with the barrier bit: it ends when all have.
    let last = kernels.len() - 1;
    kernels[..last].iter_mut().for_each(|packet| *packet = overlapping(*packet));
    run(criterion, "overlapping kernels", &rig, BATCH as u64, &kernels, signal);

    let loaded = recorded.load(&rig);
    let step = |signal| {
        let kernel = dispatch(kernel, [256, 1, 1], [256, 1, 1], 0);
        [loaded.packet("start", 0), kernel, loaded.packet("read", 0), loaded.packet("stop", signal)]
    };
    let mut counted: Vec<_> = (0..BATCH / 4 - 1).flat_map(|_| step(0)).collect();
    counted.extend(step(signal));
    run(criterion, "counted kernels", &rig, BATCH as u64 / 4, &counted, signal);

    let huge = [dispatch(kernel, [1 << 26, 1, 1], [256, 1, 1], signal)];
    run(criterion, "waves of a dispatch of 1 Mi", &rig, 1 << 20, &huge, signal);

    let trace = Recorded::own("gfx942", "att-se-mask-1.json").load(&rig);
    let step = |signal| {
        let kernel = dispatch(kernel, [65_536, 1, 1], [256, 1, 1], 0);
        [trace.packet("start", 0), kernel, trace.packet("stop", signal)]
    };
    let mut traced: Vec<_> = (0..BATCH / 4 - 1).flat_map(|_| step(0)).collect();
    traced.extend(step(signal));
    run(criterion, "traced kernels of 1024 waves", &rig, BATCH as u64 / 4, &traced, signal);
}

criterion_group!(benches, packets);
criterion_main!(benches);
