//! Random programs on the device alone, for gfx10.3: packets as upstream's library recorded them, no runtime.

#[path = "../../../crates/software-gpu/tests/model/rig/mod.rs"]
#[expect(dead_code, reason = "a part of it is used")]
mod rig;

use std::cell::Cell;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use rig::stream::{Loaded, Recorded};
use rig::{Rig, dispatch};
use wavescope_isa::Target;
use wavescope_software_gpu::{PathTruth, Truth, WalkTruth, WaveTruth};

use crate::decoded::{Wave, decode_waves, relative};
use crate::programs::{Random, assemble, pool_of_gfx10, randoms};
use crate::{CODE, PROGRAMS, PROPERTIES, WAVES_OF_32};

/// WGP 0 of array 0, and the SIMD that the low bits of 0xF name.
const TARGET: (u8, u8, u8) = (0, 0, 3);

/// A device with a trace of engine 0.
struct Alone {
    rig: Rig,
    loaded: Loaded,
}

impl Alone {
    fn new() -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/software-gpu/tests/fixtures");
        let recorded = Recorded::read(&fixtures.join("aqlprofile/gfx1030/att-se-mask-1.json"));
        let rig = Rig::new(recorded.config());
        let loaded = recorded.load(&rig);
        Self { rig, loaded }
    }

    /// Runs a program; returns its address and the stream.
    fn run(&self, random: &Random, code: &[u8]) -> (u64, Vec<u8>) {
        let arena = self.rig.arena();
        let kernel = arena.allocate(CODE + code.len());
        arena.store_u32(kernel + 16, CODE as u32);
        arena.store_u16(kernel + PROPERTIES as u64, if random.narrow { WAVES_OF_32 } else { 0 });
        let words: Vec<u32> = code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        arena.store_dwords(kernel + CODE as u64, &words);
        let (mut queue, signal) = (self.rig.queue(64), self.rig.signal(1));
        let launch = dispatch(kernel, [random.grid, 1, 1], [random.workgroup, 1, 1], 0);
        queue.submit(&[self.loaded.packet("start", 0), launch, self.loaded.packet("stop", signal)]);
        self.rig.wait(signal, 0);
        // The third word of the engine's record counts pieces of 32 bytes.
        let pieces = arena.load_u32(self.loaded.bases[0] + 8) & 0x1FFF_FFFF;
        let stream = arena.dwords(self.loaded.bases[1], u64::from(pieces) * 8);
        (kernel + CODE as u64, stream.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    /// What the log has of the last dispatch's waves in detail.
    fn expected(&self) -> Vec<Wave> {
        let notes = self.rig.notes.0.lock().unwrap();
        let last = notes.iter().filter_map(wave).map(|wave| wave.dispatch).max().unwrap();
        let ours = notes.iter().filter_map(wave).filter(|wave| wave.dispatch == last && wave.se == 0);
        let detailed = ours.filter(|wave| (wave.sa, wave.cu / 2, wave.simd) == TARGET);
        let instructions = |wave: &WaveTruth| {
            let walk = |walk: &&WalkTruth| walk.dispatch == last && walk.walk == wave.walk;
            let walk = notes.iter().filter_map(walk_of).find(walk).unwrap();
            assert_eq!(walk.stopped, None);
            let path = notes.iter().filter_map(path_of).find(|path| path.path == walk.path).unwrap();
            path.instructions.traced().map(|(pc, category)| (pc, category as u8)).collect()
        };
        relative(
            detailed.map(|wave| (wave.start as i64, (0, wave.simd, wave.slot), instructions(wave))).collect(),
        )
    }
}

fn wave(truth: &Truth) -> Option<&WaveTruth> {
    if let Truth::Wave(wave) = truth { Some(wave) } else { None }
}

fn walk_of(truth: &Truth) -> Option<&WalkTruth> {
    if let Truth::Walk(walk) = truth { Some(walk) } else { None }
}

fn path_of(truth: &Truth) -> Option<&PathTruth> {
    if let Truth::Path(path) = truth { Some(path) } else { None }
}

#[test]
fn random_kernels_of_gfx10_decode_to_what_was_walked() {
    let (alone, pool) = (Alone::new(), pool_of_gfx10());
    let compared = Cell::new([0; 2]);
    let config = Config { cases: 2 * PROGRAMS, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let result = runner.run(&randoms(20_000), |random| {
        let code = assemble(Target::Gfx1030, &pool, &random.pieces);
        let (base, stream) = alone.run(&random, &code);
        let (found, expected) = (decode_waves(&stream, Target::Gfx1030, base, &code), alone.expected());
        prop_assert_eq!(&found, &expected);
        let mut counts = compared.get();
        counts[usize::from(random.narrow)] += expected.iter().map(|wave| wave.2.len()).sum::<usize>();
        compared.set(counts);
        Ok::<_, TestCaseError>(())
    });
    result.unwrap();
    assert!(compared.get().iter().all(|&count| count > 1000), "{:?} instructions", compared.get());
}
