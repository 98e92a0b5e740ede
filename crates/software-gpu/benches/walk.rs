//! Walked instructions per second, and bytes of thread trace per second, each on one thread.

#![expect(missing_docs, reason = "criterion_group makes an undocumented public function")]

#[path = "../tests/model/rig/mod.rs"]
#[expect(dead_code, clippy::unwrap_used, clippy::panic, reason = "test code, of which this is a part")]
mod rig;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rig::stream::Recorded;
use rig::{Rig, dispatch};
use wavescope_isa::Target;
use wavescope_software_gpu::walk::{Crowd, End, Outcome, Program, Recorded as Outcomes, Timed, walk};
use wavescope_software_gpu::{DeviceConfig, DeviceOptions, Truth, TruthSink};

/// A loop of 62 instructions with a load and a wait, and the end: gfx9 and gfx11.
fn code(target: Target) -> Vec<u32> {
    let gfx9 = target.gfxip() == 9;
    // v_add_f32 v0, v0, v1; s_nop 0.
    let (add, s_nop) = (if gfx9 { 0x0200_0300 } else { 0x0600_0300 }, 0xBF80_0000);
    let mut code = Vec::new();
    for _ in 0..29 {
        code.extend([add, s_nop]);
    }
    // global_load of one dword at v[0:1]; s_waitcnt for it.
    code.extend(if gfx9 { [0xDC50_8000, 0x027F_0000] } else { [0xDC52_0000, 0x027C_0000] });
    code.push(if gfx9 { 0xBF8C_0F70 } else { 0xBF89_03F7 });
    // s_mov_b32 s0, 0; s_cbranch_scc1 to the beginning; s_endpgm.
    code.push(0xBE80_0080);
    let back = (-(code.len() as i32 + 1)) as u16;
    code.push(if gfx9 { 0xBF85_0000 } else { 0xBFA2_0000 } | u32::from(back));
    code.push(if gfx9 { 0xBF81_0000 } else { 0xBFB0_0000 });
    code
}

fn walks(criterion: &mut Criterion) {
    const TRIPS: usize = 200;
    let mut group = criterion.benchmark_group("software-gpu/walk");
    for target in [Target::Gfx942, Target::Gfx1100] {
        let bytes: Vec<u8> = code(target).iter().flat_map(|word| word.to_le_bytes()).collect();
        let read = |address: u64, into: &mut [u8]| {
            let from = &bytes[(address as usize).min(bytes.len())..];
            let count = from.len().min(into.len());
            into[..count].copy_from_slice(&from[..count]);
            count
        };
        let outcomes =
            || (0..TRIPS).map(|trip| if trip + 1 < TRIPS { Outcome::Taken } else { Outcome::Falls });
        let mut program = Program::new(target);
        let mut run = || walk(&mut program, &read, 0, &mut Outcomes::new(outcomes()), 1 << 20);
        let path = run();
        assert_eq!((path.end, path.steps.len()), (End::Program, TRIPS * 62 + 1));
        group.throughput(Throughput::Elements(path.steps.len() as u64));
        group.bench_function(BenchmarkId::new("instructions", target), |bencher| {
            bencher.iter(|| black_box(run()))
        });
        let path = Arc::new(path);
        let crowd = Crowd { waves_of_simd: 4, waves_of_group: 4, stagger: 4, seed: 1 };
        group.bench_function(BenchmarkId::new("timed instructions", target), |bencher| {
            bencher.iter(|| {
                let path = Arc::new(run());
                black_box(Timed::new(target.generation(), path, &crowd))
            });
        });
        drop(path);
    }
    group.finish();
}

struct NoTruth;

impl TruthSink for NoTruth {
    fn record(&self, _: &Truth) {}
}

/// A device with one compute unit or WGP, so that all waves are the target's.
fn device(recorded: &Recorded) -> DeviceConfig {
    let config = recorded.config();
    let units = if config.wave_size == 64 { 1 } else { 2 };
    DeviceConfig {
        xcc: 1,
        se_per_xcc: 1,
        sa_per_se: 1,
        cu_per_sa: units,
        compute_units: u32::from(units),
        ..config
    }
}

fn traces(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("software-gpu/trace");
    group.sample_size(20);
    for (name, target) in [("gfx942", Target::Gfx942), ("gfx1100", Target::Gfx1100)] {
        let recorded = Recorded::own(name, "att-se-mask-1.json");
        let options = DeviceOptions { truth: Some(Arc::new(NoTruth)), ..DeviceOptions::default() };
        let rig = Rig::with(device(&recorded), options, rig::virtual_clock(), 16 << 30);
        let loaded = recorded.load(&rig);
        let kernel = rig.kernel(3);
        rig.arena().store_dwords(kernel + 0x100, &code(target));
        let signal = rig.signal(i64::MAX);
        let mut queue = rig.queue(64);
        let mut value = rig.value(signal);
        let mut run = || {
            let waves = dispatch(kernel, [64 * 4000, 1, 1], [256, 1, 1], 0);
            queue.submit(&[loaded.packet("start", 0), waves, loaded.packet("stop", signal)]);
            value -= 1;
            rig.wait(signal, value);
        };
        run();
        let pointer = u64::from(rig.arena().load_u32(loaded.bases[0] + 8) & 0x1FFF_FFFF) * 32;
        // An address on gfx11.
        let bytes =
            if name == "gfx942" { pointer } else { pointer.wrapping_sub(loaded.bases[1]) & 0x3_FFFF_FFFF };
        assert!(bytes > 100_000, "{name}: only {bytes} bytes of trace");
        group.throughput(Throughput::Bytes(bytes));
        group.bench_function(name, |bencher| bencher.iter(&mut run));
    }
    group.finish();
}

criterion_group!(benches, walks, traces);
criterion_main!(benches);
