//! Random kernels on random grids: what a trace decodes to is what the log says the waves walked.

#![cfg(test)]

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use wavescope_att_decode::{Decoder, Options, Pc, ProgramLine, Record};
use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};
use wavescope_isa::{CodeObject, InstructionClass as Class, Instructions, Target, decode};
use wavescope_tests::{
    Bed, PATIENCE, PlacedWave, TARGETS, Traces, What, device_trace, is_detailed, on_both_faces, on_engine,
    place,
};
use wavescope_workload::{Batch, Buffer, kernels};

/// Programs for each machine.
const PROGRAMS: u32 = 20;
/// Bytes of the descriptor and of what lies before the code.
const CODE: usize = 256;

/// One piece of a program.
#[derive(Clone, Copy, Debug)]
enum Piece {
    /// An instruction of the pool.
    Plain(u16),
    /// A conditional branch to a piece.
    Conditional(u16),
    /// `s_branch` forwards, over so many pieces.
    Jump(u16),
    /// The same through registers.
    Far(u16),
    /// A call of the function behind the program.
    Call,
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = prop_oneof![
        12 => any::<u16>().prop_map(Piece::Plain),
        1 => any::<u16>().prop_map(Piece::Jump),
        1 => any::<u16>().prop_map(Piece::Far),
        1 => Just(Piece::Call),
    ];
    let branches = proptest::collection::vec((any::<u16>(), any::<u16>()), 0..=3);
    (proptest::collection::vec(piece, 1..40), branches).prop_map(|(mut pieces, branches)| {
        for (place, target) in branches {
            pieces.insert(usize::from(place) % pieces.len(), Piece::Conditional(target));
        }
        pieces
    })
}

/// Words that the generations encode differently: `s_branch`, `s_cbranch_scc0`, `s_endpgm`, and the opcodes of
/// `s_getpc_b64`, `s_setpc_b64` and `s_swappc_b64` (AMD's instruction-set documents, SOPP and SOP1).
struct Words {
    branch: u32,
    conditional: u32,
    end: u32,
    get_pc: u32,
}

fn words(target: Target) -> Words {
    match target.gfxip() {
        9 => Words { branch: 0xBF82_0000, conditional: 0xBF84_0000, end: 0xBF81_0000, get_pc: 0x1C },
        _ => Words { branch: 0xBFA0_0000, conditional: 0xBFA1_0000, end: 0xBFB0_0000, get_pc: 0x47 },
    }
}

/// Instructions that go on to the next one, taken from compiled kernels.
fn pool(name: &str, target: Target) -> Vec<Vec<u8>> {
    let mut pool = Vec::new();
    for file in [kernels::vectors(name).unwrap(), kernels::tiles(name).unwrap()] {
        for code in CodeObject::parse(file).unwrap().code() {
            for (offset, found) in Instructions::new(target, code.bytes) {
                let Ok(found) = found else { continue };
                let plain = found.branch_offset().is_none() && !found.is_indirect() && !found.ends_program();
                let known = !matches!(found.class(), Class::Branch | Class::Barrier9 | Class::Unknown);
                let name = found.mnemonic();
                let waits = name.contains("barrier") || name.contains("code_end") || name.contains("getpc");
                if plain && known && !waits {
                    pool.push(code.bytes[offset..offset + found.size()].to_vec());
                }
            }
        }
    }
    pool.sort();
    pool.dedup();
    assert!(pool.len() > 50, "{}", pool.len());
    pool
}

/// Puts a program together; its function follows the end.
fn assemble(target: Target, pool: &[Vec<u8>], pieces: &[Piece]) -> Vec<u8> {
    let words = words(target);
    let size = |piece: &Piece| match piece {
        Piece::Plain(index) => pool[usize::from(*index) % pool.len()].len(),
        Piece::Conditional(_) | Piece::Jump(_) => 4,
        Piece::Far(_) | Piece::Call => 20,
    };
    let mut starts = vec![0];
    pieces.iter().for_each(|piece| starts.push(starts.last().unwrap() + size(piece)));
    let function = starts[pieces.len()] + 4;
    let mut code: Vec<u8> = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let forwards = |distance: u16| starts[index + 1 + usize::from(distance) % (pieces.len() - index)];
        let here = code.len();
        match *piece {
            Piece::Plain(instruction) => code.extend(&pool[usize::from(instruction) % pool.len()]),
            Piece::Conditional(to) => {
                let to = starts[usize::from(to) % (pieces.len() + 1)];
                push(&mut code, words.conditional | distance(here, to));
            }
            Piece::Jump(over) => push(&mut code, words.branch | distance(here, forwards(over))),
            Piece::Far(over) => through_registers(&mut code, &words, forwards(over), 1),
            Piece::Call => through_registers(&mut code, &words, function, 2),
        }
    }
    push(&mut code, words.end);
    // v_nop; s_setpc_b64 s[30:31].
    push(&mut code, 0x7E00_0000);
    push(&mut code, 0xBE80_001E | (words.get_pc + 1) << 8);
    code
}

fn push(code: &mut Vec<u8>, word: u32) {
    code.extend(word.to_le_bytes());
}

/// Dwords from behind a branch to where it goes.
fn distance(here: usize, to: usize) -> u32 {
    u32::from(((to as i64 - here as i64 - 4) / 4) as u16)
}

/// `s_getpc_b64 s[40:41]`, the distance added, `s_setpc_b64 s[40:41]` (1) or `s_swappc_b64 s[30:31], s[40:41]` (2).
fn through_registers(code: &mut Vec<u8>, words: &Words, to: usize, how: u32) {
    let behind = code.len() + 4;
    push(code, 0xBE80_0000 | 40 << 16 | words.get_pc << 8);
    push(code, 0x8000_FF00 | 40 << 16 | 40);
    push(code, (to as i64 - behind as i64) as u32);
    // The upper half: the carry, and for a distance back its sign; distances here are forwards.
    push(code, 0x8200_8000 | 41 << 16 | 41);
    push(code, 0xBE80_0000 | if how == 2 { 30 << 16 } else { 0 } | (words.get_pc + how) << 8 | 40);
}

/// A decoded wave or what the log has of it: begin, place, (PC, category).
type Wave = (i64, (u8, u8, u8), Vec<(u64, u8)>);

fn decode_waves(data: &[u8], target: Target, base: u64, code: &[u8]) -> Vec<Wave> {
    let source = |pc: Pc, _: u32| {
        let offset = usize::try_from(pc.address.checked_sub(base)?).ok()?;
        decode(target, code.get(offset..)?).ok().map(ProgramLine::from_instruction)
    };
    let mut waves = Vec::new();
    let mut decoder = Decoder::new(source, Options::default());
    let outcome = decoder.decode(data, &mut |record: Record<'_>| match record {
        Record::Wave(wave) => {
            let list = wave.instructions.iter().map(|found| (found.pc.address, found.category() as u8));
            waves.push((wave.begin_time, (wave.cu, wave.simd, wave.wave_id), list.collect()));
        }
        Record::Info(info) => panic!("the decoder says {info:?}"),
        Record::Loss(loss) => panic!("{loss:?}"),
        _ => {}
    });
    outcome.unwrap();
    relative(waves)
}

fn relative(mut waves: Vec<Wave>) -> Vec<Wave> {
    waves.sort();
    let first = waves.first().map_or(0, |wave| wave.0);
    waves.iter_mut().for_each(|wave| wave.0 -= first);
    waves
}

fn expected(bed: &Bed, placed: &[PlacedWave], unit: u8) -> Vec<Wave> {
    let agent = bed.agent(0);
    let detailed = placed.iter().filter(|wave| is_detailed(agent, unit, wave));
    let wave = |wave: &PlacedWave| (wave.start as i64, place(agent, wave), bed.placement.instructions(wave));
    relative(detailed.map(wave).collect())
}

/// Runs the program in `memory`, which a descriptor precedes.
fn run(bed: &Bed, memory: &Buffer, grid: u32, workgroup: u16) {
    let signal = bed.application.signal(1).unwrap();
    let mut packet = AqlPacket([0; 16]);
    packet.0[0] = 1 << 16;
    packet.0[1] = u32::from(workgroup) | 1 << 16;
    packet.0[2] = 1;
    packet.0[3..6].copy_from_slice(&[grid, 1, 1]);
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
    (grid, workgroup): (u32, u16),
) -> Result<usize, TestCaseError> {
    memory.bytes_mut()[CODE..].fill(0);
    memory.bytes_mut()[16..20].copy_from_slice(&(CODE as u32).to_le_bytes());
    memory.bytes_mut()[CODE..CODE + code.len()].copy_from_slice(code);
    let base = memory.address() + CODE as u64;
    let before = bed.placement.dispatches(0).len();
    traces.service.start().unwrap();
    run(bed, memory, grid, workgroup);
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
        let grids = (20_000_u32..90_000, 1_u16..=4).prop_map(|(grid, waves)| (grid, waves * 64));
        let result = runner.run(&(pieces(), grids), |(pieces, grid)| {
            let code = assemble(target, &pool, &pieces);
            let count = check_program(bed, &traces, (target, &code), &mut memory.borrow_mut(), grid)?;
            compared.set(compared.get() + count);
            Ok(())
        });
        result.unwrap();
        assert!(compared.get() > 1000, "only {} instructions were compared", compared.get());
    }
}
