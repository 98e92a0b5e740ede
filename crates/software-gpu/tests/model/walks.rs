//! What kernels do when the device runs them: the log of their walks.

use std::sync::Arc;

use wavescope_software_gpu::walk::{Branch, GroupOutcomes, Outcome, Outcomes, Recorded, Stop};
use wavescope_software_gpu::{DeviceConfig, DeviceOptions, PathTruth, Truth, WalkTruth};

use crate::rig::{Rig, dispatch, virtual_clock};

const S_NOP: u32 = 0xBF80_0000;
const S_ENDPGM: u32 = 0xBF81_0000;
/// s_cbranch_scc1 to the instruction before it.
const LOOP: u32 = 0xBF85_FFFE;

/// Runs `code` in `groups` work-groups of one wave; returns the rig and the kernel's entry.
fn run(options: DeviceOptions, code: &[u32], groups: u32) -> (Rig, u64) {
    let rig = Rig::with(DeviceConfig::mi300x(), options, virtual_clock(), 1 << 30);
    let kernel = rig.kernel(3);
    rig.arena().store_dwords(kernel + 0x100, code);
    launch(&rig, kernel, groups);
    (rig, kernel + 0x100)
}

fn launch(rig: &Rig, kernel: u64, groups: u32) {
    let (mut queue, signal) = (rig.queue(16), rig.signal(1));
    queue.submit(&[dispatch(kernel, [groups * 64, 1, 1], [64, 1, 1], signal)]);
    rig.wait(signal, 0);
    assert!(rig.host.errors.lock().unwrap().is_empty());
}

fn walks(rig: &Rig) -> Vec<WalkTruth> {
    let notes = rig.notes.0.lock().unwrap();
    notes
        .iter()
        .filter_map(|truth| if let Truth::Walk(walk) = truth { Some(walk.clone()) } else { None })
        .collect()
}

fn paths(rig: &Rig) -> Vec<PathTruth> {
    let notes = rig.notes.0.lock().unwrap();
    notes
        .iter()
        .filter_map(|truth| if let Truth::Path(path) = truth { Some(path.clone()) } else { None })
        .collect()
}

#[test]
fn wave_at_something_unsized_stops_by_name_and_the_dispatch_completes() {
    let (rig, entry) = run(DeviceOptions::default(), &[S_NOP, 0xFFFF_FFFF], 100);
    let walks = walks(&rig);
    assert!(!walks.is_empty());
    for walk in walks {
        assert_eq!(walk.stopped, Some((entry + 4, Stop::Unsized)));
        assert_eq!(walk.instructions.all(), 1);
    }
}

#[test]
fn code_that_was_replaced_in_place_is_walked_anew() {
    let (rig, entry) = run(DeviceOptions::default(), &[S_NOP, S_NOP, S_ENDPGM], 100);
    launch(&rig, entry - 0x100, 100);
    let before = paths(&rig).len();
    assert!(walks(&rig).iter().all(|walk| walk.instructions.all() == 3 && walk.stopped.is_none()));
    rig.arena().store_u32(entry + 4, S_ENDPGM);
    launch(&rig, entry - 0x100, 100);
    let paths = paths(&rig);
    assert!(paths.len() > before, "the same code is walked once");
    assert!(paths[before..].iter().all(|path| path.instructions.steps.len() == 2));
}

/// Every group loops as often as its number says.
struct ByNumber;

impl GroupOutcomes for ByNumber {
    fn of_group(&self, _entry: u64, workgroup: u64) -> Box<dyn Outcomes> {
        let trips = std::iter::repeat_n(Outcome::Taken, workgroup as usize);
        Box::new(Recorded::new(trips.chain([Outcome::Falls]).collect::<Vec<_>>()))
    }
}

#[test]
fn outcomes_handed_in_decide_for_each_group() {
    let options = DeviceOptions { outcomes: Some(Arc::new(ByNumber)), ..DeviceOptions::default() };
    let (rig, _) = run(options, &[S_NOP, LOOP, S_ENDPGM], 20);
    let (walks, waves) = (walks(&rig), rig.waves());
    assert_eq!((walks.len(), waves.len()), (20, 20));
    for wave in waves {
        let taken = walks[wave.walk as usize].instructions.taken;
        assert_eq!(taken, wave.workgroup, "{wave:?}");
    }
}

/// Must not be asked.
struct Nobody;

impl GroupOutcomes for Nobody {
    fn of_group(&self, _entry: u64, _workgroup: u64) -> Box<dyn Outcomes> {
        Box::new(Self)
    }
}

impl Outcomes for Nobody {
    fn outcome(&mut self, branch: &Branch) -> Outcome {
        panic!("asked about {branch:?}")
    }
}

#[test]
fn straight_code_asks_nobody_and_longer_code_takes_longer() {
    let life = |instructions: usize| {
        let options = DeviceOptions { outcomes: Some(Arc::new(Nobody)), ..DeviceOptions::default() };
        let mut code = vec![S_NOP; instructions];
        code.push(S_ENDPGM);
        let (rig, _) = run(options, &code, 1);
        let wave = rig.waves()[0];
        wave.end - wave.start
    };
    // Four cycles of a gfx9 SIMD for each.
    assert_eq!(life(200) - life(100), 400);
}

#[test]
fn same_seed_walks_alike_and_another_does_not() {
    let counts = |seed| {
        let options = DeviceOptions { seed, ..DeviceOptions::default() };
        let (rig, _) = run(options, &[S_NOP, LOOP, S_NOP, LOOP, S_ENDPGM], 64);
        let walks = walks(&rig);
        rig.waves().iter().map(|wave| walks[wave.walk as usize].instructions.all()).collect::<Vec<_>>()
    };
    assert_eq!(counts(1), counts(1));
    assert_ne!(counts(1), counts(2));
}
