//! Random programs through the whole stack, on both faces.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};
use wavescope_isa::Target;
use wavescope_tests::{
    Bed, PATIENCE, PlacedWave, TARGETS, Traces, What, device_trace, is_detailed, on_both_faces, on_engine,
    place,
};
use wavescope_workload::{Batch, Buffer};

use crate::decoded::{Wave, decode_waves, relative};
use crate::programs::{Random, assemble, pool, randoms};
use crate::{CODE, PROGRAMS, PROPERTIES, WAVES_OF_32};

fn expected(bed: &Bed, placed: &[PlacedWave], unit: u8) -> Vec<Wave> {
    let agent = bed.agent(0);
    let detailed = placed.iter().filter(|wave| is_detailed(agent, unit, wave));
    let wave = |wave: &PlacedWave| (wave.start as i64, place(agent, wave), bed.placement.instructions(wave));
    relative(detailed.map(wave).collect())
}

/// Runs the program in `memory`, which a descriptor precedes.
fn run(bed: &Bed, memory: &Buffer, Random { grid, workgroup, .. }: &Random) {
    let signal = bed.application.signal(1).unwrap();
    let mut packet = AqlPacket([0; 16]);
    packet.0[0] = 1 << 16;
    packet.0[1] = u32::from(*workgroup) | 1 << 16;
    packet.0[2] = 1;
    packet.0[3..6].copy_from_slice(&[*grid, 1, 1]);
    (packet.0[8], packet.0[9]) = (memory.address() as u32, (memory.address() >> 32) as u32);
    packet.set_completion_signal(signal.handle().handle);
    packet.set_header(PacketHeader::new(PacketType::KERNEL_DISPATCH, true, Fence::System, Fence::System));
    let mut batch = Batch::new();
    batch.packet(packet);
    let queue = bed.application.queue(bed.gpu(0), 64).unwrap();
    queue.submit(&batch).unwrap().wait(PATIENCE).unwrap();
    assert_eq!(signal.wait_below(1, PATIENCE).unwrap(), 0);
}

/// Compares one program; returns how many instructions were compared.
fn check_program(
    bed: &Bed,
    traces: &Traces<wavescope_att_resources::DeviceTrace>,
    (target, code): (Target, &[u8]),
    memory: &mut Buffer,
    random: &Random,
) -> Result<usize, TestCaseError> {
    memory.bytes_mut().fill(0);
    let properties = if random.narrow { WAVES_OF_32 } else { 0 };
    memory.bytes_mut()[PROPERTIES..PROPERTIES + 2].copy_from_slice(&properties.to_le_bytes());
    memory.bytes_mut()[16..20].copy_from_slice(&(CODE as u32).to_le_bytes());
    memory.bytes_mut()[CODE..CODE + code.len()].copy_from_slice(code);
    let base = memory.address() + CODE as u64;
    let before = bed.placement.dispatches(0).len();
    traces.service.start().unwrap();
    run(bed, memory, random);
    traces.service.stop().unwrap();
    let chunk = traces.take().pop().unwrap();
    prop_assert!(!chunk.flags.lost && !chunk.flags.gpu_buffer_full, "{:?}", chunk.flags);
    let dispatches = bed.placement.dispatches(0).split_off(before);
    let ours = dispatches.iter().find(|dispatch| dispatch.kernel_object == memory.address()).unwrap();
    let placed = on_engine(bed.agent(0), &bed.placement.waves(0, ours.dispatch), 0);
    let stops: Vec<_> = placed.iter().filter_map(|wave| bed.placement.walk(wave).stopped).collect();
    prop_assert_eq!(stops, []);
    let expected = expected(bed, &placed, 0);
    let found = decode_waves(&chunk.data, target, base, code);
    prop_assert_eq!(&found, &expected);
    Ok(expected.iter().map(|wave| wave.2.len()).sum())
}

on_both_faces! {
    fn random_kernels_decode_to_what_was_walked(bed on TARGETS) {
        let name = bed.gpu(0).target();
        let target: Target = name.parse().unwrap();
        let pool = pool(name, target);
        let resources = bed.resources(0);
        let what = What { buffer_bytes: 64 << 20, ..What::of_context(1) };
        let traces = device_trace(bed, &resources, what).unwrap();
        let mut memory = bed.application.buffer(bed.gpu(0), 64 << 10).unwrap();
        let memory = std::cell::RefCell::new(&mut memory);
        let compared = std::cell::Cell::new(0);
        let config = Config { cases: PROGRAMS, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let result = runner.run(&randoms(40_000), |random| {
            let code = assemble(target, &pool, &random.pieces);
            let count = check_program(bed, &traces, (target, &code), &mut memory.borrow_mut(), &random)?;
            compared.set(compared.get() + count);
            Ok(())
        });
        result.unwrap();
        assert!(compared.get() > 1000, "only {} instructions were compared", compared.get());
    }
}
