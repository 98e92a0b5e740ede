//! Time per small chunk, as real ones are, and throughput on large ones; two shader engines side by side.
//!
//! Instruction counts, which no noise disturbs: `cargo xtask bench decode --callgrind`.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_main};
use wavescope_att_decode::quick::{TraceFormat, scan};
use wavescope_att_decode::{
    Decoder, Options, Pc, ProgramLine, Record, RecordKind, RecordSet, Tokens, decode_parallel,
};
use wavescope_sqtt_fixtures::{Kernel, Set, find_line, shared_sets};

/// Sets and chunks of the yardstick that a checkout has.
const CHUNKS: [(&str, &str); 7] = [
    ("gfx1100/gemm_run_0", "k0_x1_se0.sqtt"),
    ("gfx1200/gemm_run_0", "k0_x1_se0.sqtt"),
    ("gfx1200/handwritten_run_0", "k0_x1_se1.sqtt"),
    ("gfx950/gemm_run_0", "k0_x1_se0.sqtt"),
    ("gfx10/synth_3", "k0_x0_se0.sqtt"),
    ("gfx1250/synth_2", "k0_x0_se0.sqtt"),
    ("gfx9_mi300/synth_2", "k0_x0_se0.sqtt"),
];

/// Size of a large chunk.
const LARGE: usize = 64 << 20;

struct Input {
    name: String,
    chunk: Vec<u8>,
    kernels: Vec<Kernel>,
}

impl Input {
    /// The chunk repeated; the software header of gfx9 counts once.
    fn repeated(&self, bytes: usize) -> Vec<u8> {
        let header = usize::from(TraceFormat::of_first_chunk(&self.chunk).is_ok_and(|f| f.is_gfx9())) * 8;
        let times = bytes / (self.chunk.len() - header) + 1;
        [&self.chunk[..header], &self.chunk[header..].repeat(times)].concat()
    }

    fn line(&self, pc: Pc, gfxip: u32) -> Option<ProgramLine> {
        let (size, text) = find_line(&self.kernels, pc.address, pc.code_object_id)?;
        Some(ProgramLine::from_text(gfxip, size, text))
    }

    fn decode(&self, chunk: &[u8], records: RecordSet) -> usize {
        let mut count = 0;
        let mut decoder = Decoder::new(|pc: Pc, gfxip: u32| self.line(pc, gfxip), Options::of(records));
        let _ = decoder.decode(chunk, &mut |record: Record<'_>| {
            black_box(&record);
            count += 1;
        });
        count
    }
}

fn inputs() -> Vec<Input> {
    let copies = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let root = shared_sets(env!("CARGO_MANIFEST_DIR"));
    let read = |(set, file): (&str, &str)| {
        let folder: PathBuf = root.iter().chain([&copies]).map(|root| root.join(set)).find(|f| f.is_dir())?;
        let set = Set::in_folder(folder);
        Some(Input { name: set.name.clone(), chunk: set.bytes(file).ok()?, kernels: set.kernels().ok()? })
    };
    let inputs: Vec<_> = CHUNKS.into_iter().filter_map(read).collect();
    if inputs.len() < CHUNKS.len() {
        println!("NOT RUN: {} chunks of ../shared/fixtures/sqtt", CHUNKS.len() - inputs.len());
    }
    inputs
}

const FULL: RecordSet = RecordSet::ALL.without(RecordKind::Loss);
const OCCUPANCY: RecordSet = RecordSet::of(&[RecordKind::Occupancy]);

fn measure(group: &mut BenchmarkGroup<'_, WallTime>, input: &Input, chunk: &[u8]) {
    group.throughput(Throughput::Bytes(chunk.len() as u64));
    group.bench_function(BenchmarkId::new("tokens", &input.name), |bencher| {
        bencher.iter(|| Tokens::new(chunk).map(|tokens| tokens.fold(0, |sum, token| sum + token.time)));
    });
    for (what, records) in [("full", FULL), ("occupancy", OCCUPANCY)] {
        group.bench_function(BenchmarkId::new(what, &input.name), |bencher| {
            bencher.iter(|| input.decode(chunk, records));
        });
    }
    if let Ok(format) = TraceFormat::of_first_chunk(chunk) {
        group.bench_function(BenchmarkId::new("quick scan", &input.name), |bencher| {
            bencher.iter(|| scan(&format, chunk, true).len());
        });
    }
}

fn benches(criterion: &mut Criterion) {
    let inputs = inputs();
    let mut group = criterion.benchmark_group("small chunk");
    for input in &inputs {
        measure(&mut group, input, &input.chunk);
    }
    group.finish();
    let mut group = criterion.benchmark_group("64 MiB");
    group.sample_size(10);
    for input in &inputs {
        measure(&mut group, input, &input.repeated(LARGE));
    }
    group.finish();
    side_by_side(criterion, &inputs);
}

/// Two shader engines on two threads, and the same one after the other.
fn side_by_side(criterion: &mut Criterion, inputs: &[Input]) {
    let mut group = criterion.benchmark_group("two shader engines");
    group.sample_size(10);
    for input in inputs {
        let chunk = input.repeated(8 << 20);
        let chunks = [&chunk[..], &chunk];
        group.throughput(Throughput::Bytes(2 * chunk.len() as u64));
        group.bench_function(BenchmarkId::new("one thread", &input.name), |bencher| {
            bencher.iter(|| chunks.map(|chunk| input.decode(chunk, FULL)));
        });
        group.bench_function(BenchmarkId::new("two threads", &input.name), |bencher| {
            bencher.iter(|| {
                let source = |_| |pc: Pc, gfxip: u32| input.line(pc, gfxip);
                decode_parallel(&chunks, Options::of(FULL), source, |_| {
                    |record: Record<'_>| {
                        black_box(&record);
                    }
                })
                .len()
            });
        });
    }
    group.finish();
}

mod group {
    criterion::criterion_group!(decode, super::benches);
}
criterion_main!(group::decode);
