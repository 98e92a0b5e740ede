//! Small programs, assembled by hand from the words of AMD's instruction-set documents.

use std::sync::Arc;

use wavescope_isa::Target;

use super::{
    Branch, Category, Crowd, End, Flow, Outcome, Outcomes, Path, Program, Recorded, Seeded, Stop, Timed, walk,
};

const ENTRY: u64 = 0x10_0000;
const S_NOP: u32 = 0xBF80_0000;
const S_ENDPGM: u32 = 0xBF81_0000;
/// s_cbranch_scc1, distance in dwords from the following instruction.
const fn cbranch(distance: i16) -> u32 {
    0xBF85_0000 | distance as u16 as u32
}

/// Memory with words at [`ENTRY`].
fn memory(words: &[u32]) -> impl Fn(u64, &mut [u8]) -> usize {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    move |address, into| {
        let at = address.checked_sub(ENTRY).map_or(bytes.len(), |at| at as usize);
        let from = bytes.get(at..).unwrap_or(&[]);
        let count = from.len().min(into.len());
        into[..count].copy_from_slice(&from[..count]);
        count
    }
}

fn run(words: &[u32], outcomes: &mut dyn Outcomes) -> Path {
    walk(&mut Program::new(Target::Gfx942), &memory(words), ENTRY, outcomes, 1000)
}

fn offsets(path: &Path) -> Vec<u64> {
    path.steps.iter().map(|step| step.pc - ENTRY).collect()
}

/// Fails when it is asked.
struct Nobody;

impl Outcomes for Nobody {
    fn outcome(&mut self, branch: &Branch) -> Outcome {
        panic!("asked about {branch:?}")
    }
}

#[test]
fn recorded_outcomes_decide_and_then_the_wave_stops() {
    let code = [S_NOP, cbranch(-2), S_ENDPGM];
    let path = run(&code, &mut Recorded::new([Outcome::Taken, Outcome::Falls]));
    assert_eq!(offsets(&path), [0, 4, 0, 4, 8]);
    assert_eq!(path.steps[1].flow, Flow::Jump);
    assert_eq!((path.end, path.asked), (End::Program, 2));
    let path = run(&code, &mut Recorded::new([Outcome::Taken]));
    assert_eq!(path.end, End::Stopped { pc: ENTRY + 4, stop: Stop::UnknownTarget });
}

#[test]
fn far_jump_through_getpc_needs_nobody() {
    // s_getpc_b64 s[4:5]; s_add_u32 s4, s4, 20; s_addc_u32 s5, s5, 0; s_setpc_b64 s[4:5]; s_nop; s_endpgm
    let code = [0xBE84_1C00, 0x8004_FF04, 20, 0x8205_8005, 0xBE80_1D04, S_NOP, S_ENDPGM];
    let path = run(&code, &mut Nobody);
    assert_eq!(offsets(&path), [0, 4, 12, 16, 24]);
    assert_eq!(path.steps[3].flow, Flow::Far);
    assert_eq!(path.end, End::Program);
}

#[test]
fn call_returns_through_its_register_pair() {
    // s_getpc_b64 s[4:5]; s_add_u32 s4, s4, 20; s_addc_u32 s5, s5, 0; s_swappc_b64 s[30:31], s[4:5]; s_endpgm
    // function: s_nop; s_setpc_b64 s[30:31]
    let code = [0xBE84_1C00, 0x8004_FF04, 20, 0x8205_8005, 0xBE9E_1E04, S_ENDPGM, S_NOP, 0xBE80_1D1E];
    let path = run(&code, &mut Nobody);
    assert_eq!(offsets(&path), [0, 4, 12, 16, 24, 28, 20]);
    assert_eq!(path.end, End::Program);
}

#[test]
fn return_from_a_spilled_address_goes_to_the_caller() {
    // s_call_b64 s[30:31], 1; s_endpgm; function: s_mul_i32 s30, s0, s1; s_setpc_b64 s[30:31]
    let code = [0xBA9E_0001, S_ENDPGM, 0x921E_0100, 0xBE80_1D1E];
    let path = run(&code, &mut Nobody);
    assert_eq!(offsets(&path), [0, 8, 12, 4]);
}

#[test]
fn address_from_a_table_beside_the_code_is_followed() {
    // s_getpc_b64 s[4:5]; s_load_dwordx2 s[6:7], s[4:5], 20; s_waitcnt; s_setpc_b64 s[6:7]; s_nop; s_endpgm; table
    let to = ENTRY + 24;
    let code = [
        0xBE84_1C00,
        0xC006_0182,
        24,
        0xBF8C_0000,
        0xBE80_1D06,
        S_NOP,
        S_ENDPGM,
        to as u32,
        (to >> 32) as u32,
    ];
    let path = run(&code, &mut Nobody);
    assert_eq!(offsets(&path), [0, 4, 12, 16, 24]);
    assert_eq!(path.end, End::Program);
}

#[test]
fn jump_to_an_unknown_register_stops_the_wave_by_name() {
    let path = run(&[S_NOP, 0xBE80_1D08, S_ENDPGM], &mut Seeded::new(1, ENTRY));
    assert_eq!(path.end, End::Stopped { pc: ENTRY + 4, stop: Stop::UnknownTarget });
    let mut to = Recorded::new([Outcome::To(ENTRY + 8)]);
    assert_eq!(offsets(&run(&[S_NOP, 0xBE80_1D08, S_ENDPGM], &mut to)), [0, 4, 8]);
}

#[test]
fn what_is_no_instruction_stops_the_wave_before_it() {
    let stop = |words: &[u32]| run(words, &mut Nobody).end;
    // The last seven bits of the scalar prefix space are no encoding of gfx9.
    assert_eq!(stop(&[S_NOP, 0xFFFF_FFFF]), End::Stopped { pc: ENTRY + 4, stop: Stop::Unsized });
    assert_eq!(stop(&[S_NOP]), End::Stopped { pc: ENTRY + 4, stop: Stop::Unmapped });
    assert_eq!(stop(&[S_NOP, 0, 0, 0, 0]), End::Stopped { pc: ENTRY + 4, stop: Stop::Blank });
    // s_branch to itself.
    assert_eq!(stop(&[0xBF82_FFFF]), End::Stopped { pc: ENTRY, stop: Stop::Limit });
}

#[test]
fn seeded_loops_end_and_differ_by_seed() {
    // Three nested loops around a forward branch, and a loop left by a forward branch.
    let code = [
        S_NOP,
        S_NOP,
        cbranch(1),
        S_NOP,
        cbranch(-4),
        cbranch(-6),
        cbranch(-7),
        cbranch(2),
        S_NOP,
        0xBF82_FFFD,
        S_ENDPGM,
    ];
    let paths: Vec<_> = (0..50).map(|seed| run(&code, &mut Seeded::new(seed, ENTRY))).collect();
    assert!(paths.iter().all(|path| path.end == End::Program));
    let longest = paths.iter().map(|path| path.steps.len()).max();
    let shortest = paths.iter().map(|path| path.steps.len()).min();
    assert!(shortest < longest);
    let again = run(&code, &mut Seeded::new(7, ENTRY));
    assert_eq!(again, paths[7]);
}

#[test]
fn load_address_does_not_change_the_seeded_way() {
    let code = [S_NOP, cbranch(1), S_NOP, cbranch(-4), S_ENDPGM];
    let there = memory(&code);
    let moved = move |address: u64, into: &mut [u8]| there(address - 0x5000, into);
    for seed in 0..20 {
        let mut program = Program::new(Target::Gfx942);
        let base = ENTRY + 0x5000;
        let far = walk(&mut program, &moved, base, &mut Seeded::new(seed, base), 1000);
        let near = run(&code, &mut Seeded::new(seed, ENTRY));
        let far: Vec<_> = far.steps.iter().map(|step| step.pc - base).collect();
        assert_eq!(far, offsets(&near), "seed {seed}");
    }
}

#[test]
fn barrier_of_gfx9_shows_twice() {
    let path = run(&[0xBF8A_0000, S_ENDPGM], &mut Nobody);
    let shown: Vec<_> = path.traced().map(|(pc, category)| (pc - ENTRY, category)).collect();
    assert_eq!(shown, [(0, Category::Message), (0, Category::Immediate), (4, Category::Message)]);
}

/// v_add_f32; global_load_dword; s_waitcnt vmcnt(0); s_barrier; v_add_f32; s_endpgm.
const LOAD_AND_MEET: [u32; 7] =
    [0x0200_0300, 0xDC50_8000, 0x027F_0000, 0xBF8C_0F70, 0xBF8A_0000, 0x0200_0300, S_ENDPGM];

fn timed(seed: u64, waves_of_group: u32) -> Timed {
    let path = Arc::new(run(&LOAD_AND_MEET, &mut Nobody));
    let crowd = Crowd { waves_of_simd: 4, waves_of_group, stagger: 4, seed };
    Timed::new(Target::Gfx942.generation(), path, &crowd)
}

#[test]
fn times_depend_on_the_seed_and_on_nothing_else() {
    let times = |seed| timed(seed, 4).times;
    assert_eq!(times(7), times(7));
    assert!((0..10).any(|seed| times(seed) != times(7)));
}

#[test]
fn nobody_passes_a_barrier_before_the_last_wave_has_come() {
    for (seed, waves) in (0..20).flat_map(|seed| [1, 2, 4, 16].map(|waves| (seed, waves))) {
        let timed = timed(seed, waves);
        let (barrier, after) = (timed.times[3], timed.times[4]);
        // Of waves that start 4 cycles apart, the first must wait for the last.
        let last = (waves - 1) * 4 + barrier.issue;
        assert!(
            after.issue > last && after.ready > last,
            "{waves} waves, seed {seed}: {barrier:?} {after:?}"
        );
    }
}

#[test]
fn wait_ends_when_the_load_is_back() {
    let loaded = |seed| {
        let times = timed(seed, 1).times;
        (times[1], times[2])
    };
    let latencies: Vec<u32> = (0..50).map(|seed| loaded(seed).1.issue - loaded(seed).0.issue).collect();
    // As the model's documentation has it: 640 cycles, up to a half more; in steps of 4.
    assert!(latencies.iter().all(|latency| (640..=964).contains(latency)), "{latencies:?}");
    assert!(latencies.iter().any(|latency| *latency != latencies[0]));
    // It stands ready all that time.
    assert!((0..50).all(|seed| loaded(seed).1.ready < loaded(seed).0.issue + 64));
}
