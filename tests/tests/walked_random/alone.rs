//! Random programs on the device alone, without a runtime: gfx9, gfx10.3, gfx11 and gfx12, with random trace parameters.

#[path = "../../../crates/software-gpu/tests/model/rig/mod.rs"]
#[expect(dead_code, reason = "a part of it is used")]
mod rig;

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use rig::stream::Recorded;
use rig::{Rig, TestHost, dispatch};
use wavescope_aql_profile::{
    AgentShape, AllocationRequest, Builtin, Memory, PacketPrograms, Status, TraceConfig, TraceParameter,
};
use wavescope_core::AqlPacket;
use wavescope_isa::Target;
use wavescope_pm4::Generation;
use wavescope_software_gpu::{DeviceConfig, PathTruth, Truth, WalkTruth, WaveTruth};

use crate::decoded::{Wave, decode_waves, relative};
use crate::programs::{Random, assemble, pool, pool_of_gfx10, randoms};
use crate::{CODE, PROGRAMS, PROPERTIES, WAVES_OF_32};

/// What a trace selects.
#[derive(Clone, Copy, Debug)]
struct Selection {
    engine: u32,
    unit: u8,
    /// gfx9: a mask of SIMDs; later: one of them, in the lowest bits.
    simds: u8,
    clock_samples: bool,
}

fn selections(config: &DeviceConfig) -> impl Strategy<Value = Selection> + use<> {
    let units = if is_gfx9(config) { config.cu_per_sa } else { config.cu_per_sa / 2 };
    let parts = (0..config.shader_engines(), 0..units, 1_u8..16, any::<bool>());
    parts.prop_map(|(engine, unit, simds, clock_samples)| Selection { engine, unit, simds, clock_samples })
}

fn is_gfx9(config: &DeviceConfig) -> bool {
    config.target.generation() == Generation::Gfx9
}

impl Selection {
    fn config(&self) -> TraceConfig {
        let mut parameters = vec![
            TraceParameter::target(self.unit.into()),
            TraceParameter::se_mask(1 << self.engine),
            TraceParameter::simd_selection(self.simds.into()),
        ];
        parameters.extend(TraceParameter::buffer_size(64 << 20));
        if !self.clock_samples {
            parameters.push(TraceParameter::rt_timestamp(false));
        }
        TraceConfig::from(parameters)
    }

    /// A selected wave's place as the decoder names it.
    fn place(&self, config: &DeviceConfig, wave: &WaveTruth) -> Option<(u8, u8, u8)> {
        let engine = u32::from(wave.xcc) * u32::from(config.se_per_xcc) + u32::from(wave.se);
        let (unit, simd) = match is_gfx9(config) {
            true => (wave.cu, self.simds >> wave.simd & 1 != 0),
            false => (wave.cu / 2, wave.simd == self.simds & 3),
        };
        let selected = engine == self.engine && wave.sa == 0 && unit == self.unit && simd;
        selected.then_some((unit, wave.simd, wave.slot))
    }
}

/// The device's memory for packet programs.
struct ArenaMemory(Arc<TestHost>);

impl Memory for ArenaMemory {
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status> {
        Ok(self.0.arena.allocate(request.bytes as usize))
    }

    fn free(&self, _: u64) {}

    fn copy_in(&self, address: u64, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<4>();
        assert!(rest.is_empty());
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        self.0.arena.store_dwords(address, &words);
    }

    fn copy_out(&self, address: u64, into: &mut [u8]) {
        let words = self.0.arena.dwords(address, into.len().div_ceil(4) as u64);
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        into.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    }
}

/// A device and what packet programs know of it.
struct Alone {
    rig: Rig,
    config: DeviceConfig,
    shape: AgentShape,
    memory: Arc<dyn Memory>,
}

impl Alone {
    fn new(target: &str) -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/software-gpu/tests/fixtures");
        let config =
            Recorded::read(&fixtures.join(format!("aqlprofile/{target}/att-se-mask-1.json"))).config();
        let rig = Rig::new(config.clone());
        let (xcc, engines, arrays) = (config.xcc.into(), config.shader_engines(), config.sa_per_se.into());
        let shape = AgentShape::new(target, xcc, engines, config.compute_units, arrays);
        let memory = Arc::new(ArenaMemory(Arc::clone(&rig.host)));
        Self { rig, config, shape, memory }
    }

    /// Runs a program; returns its address and the stream.
    fn run(&self, random: &Random, selection: Selection, code: &[u8]) -> (u64, Vec<u8>) {
        let arena = self.rig.arena();
        let kernel = arena.allocate(CODE + code.len());
        arena.store_u32(kernel + 16, CODE as u32);
        arena.store_u16(kernel + PROPERTIES as u64, if random.narrow { WAVES_OF_32 } else { 0 });
        self.memory.copy_in(kernel + CODE as u64, code);
        let program = Builtin.trace(&self.shape, &selection.config()).unwrap();
        let trace = program.instance(&self.memory).unwrap();
        let (mut queue, signal) = (self.rig.queue(64), self.rig.signal(1));
        let launch = dispatch(kernel, [random.grid, 1, 1], [random.workgroup, 1, 1], 0);
        queue.submit(&[trace.start(), launch, signalling(trace.stop(), signal)]);
        self.rig.wait(signal, 0);
        let mut stream = Vec::new();
        let status = trace.iterate(&mut |engine, bytes| {
            assert_eq!(engine, selection.engine);
            stream.extend_from_slice(bytes);
        });
        assert!(status.is_success(), "{status:?}");
        (kernel + CODE as u64, stream)
    }

    /// What the log has of the last dispatch's waves in detail.
    fn expected(&self, selection: Selection) -> Vec<Wave> {
        let notes = self.rig.notes.0.lock().unwrap();
        let last = notes.iter().filter_map(wave).map(|wave| wave.dispatch).max().unwrap();
        let ours = notes.iter().filter_map(wave).filter(|wave| wave.dispatch == last);
        let instructions = |wave: &WaveTruth| {
            let walk = |walk: &&WalkTruth| walk.dispatch == last && walk.walk == wave.walk;
            let walk = notes.iter().filter_map(walk_of).find(walk).unwrap();
            assert_eq!(walk.stopped, None);
            let path = notes.iter().filter_map(path_of).find(|path| path.path == walk.path).unwrap();
            path.instructions.traced().map(|(pc, category)| (pc, category as u8)).collect()
        };
        let detailed = ours.filter_map(|wave| Some((selection.place(&self.config, wave)?, wave)));
        detailed.map(|(place, wave)| (wave.start as i64, place, instructions(wave))).collect()
    }
}

/// gfx9 tells no decoder which SIMDs were selected: it shows the unit's other waves without instructions.
fn with_instructions(mut waves: Vec<Wave>) -> Vec<Wave> {
    waves.retain(|wave| !wave.2.is_empty());
    relative(waves)
}

fn signalling(mut packet: AqlPacket, signal: u64) -> AqlPacket {
    packet.set_completion_signal(signal);
    packet
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

/// Runs random programs; returns how many instructions of waves of 64 and of waves of 32 were compared.
fn check(name: &str) -> [usize; 2] {
    let target: Target = name.parse().unwrap();
    let pool = if target == Target::Gfx1030 { pool_of_gfx10() } else { pool(name, target) };
    let alone = Alone::new(name);
    let compared = Cell::new([0; 2]);
    let config = Config { cases: 2 * PROGRAMS, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let cases = (randoms(50_000), selections(&alone.config));
    let result = runner.run(&cases, |(random, selection)| {
        let code = assemble(target, &pool, &random.pieces);
        let (base, stream) = alone.run(&random, selection, &code);
        let found = with_instructions(decode_waves(&stream, target, base, &code));
        let expected = with_instructions(alone.expected(selection));
        prop_assert_eq!(&found, &expected);
        let mut counts = compared.get();
        counts[usize::from(random.narrow)] += expected.iter().map(|wave| wave.2.len()).sum::<usize>();
        compared.set(counts);
        alone.rig.notes.0.lock().unwrap().retain(|truth| matches!(truth, Truth::Path(_)));
        Ok::<_, TestCaseError>(())
    });
    result.unwrap();
    compared.get()
}

#[test]
fn random_kernels_decode_to_what_was_walked_whatever_is_selected() {
    for target in ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201"] {
        let compared = check(target);
        println!("{target}: {compared:?}");
        assert!(compared.iter().all(|&count| count > 500), "{target}: {compared:?} instructions");
    }
}
