//! What must hold for every placement, checked against intervals recomputed from the waves alone.

use std::collections::HashMap;

use wavescope_pm4::Target;

use super::*;
use crate::DeviceConfig;
use crate::kernel::{Geometry, Needs};

fn navi31() -> DeviceConfig {
    DeviceConfig {
        target: Target::Gfx1100,
        xcc: 1,
        se_per_xcc: 6,
        sa_per_se: 2,
        cu_per_sa: 8,
        compute_units: 96,
        simd_per_cu: 2,
        waves_per_simd: 16,
        wave_size: 32,
        ..DeviceConfig::mi300x()
    }
}

/// Programs that nobody can walk.
struct Unknown;

impl Lifetimes for Unknown {
    fn of_group(&mut self, _workgroup: u64, _waves: u32, _waves_of_simd: u32) -> (u32, Option<u64>) {
        (0, None)
    }
}

fn launch(dispatch: u64, start: u64, grid: u32, workgroup: u32, needs: Needs) -> Launch {
    let geometry = Geometry { grid: [grid, 1, 1], workgroup: [workgroup, 1, 1] };
    Launch { dispatch, geometry, needs, start }
}

/// The most of something that is held at once, from (start, end, amount).
fn peak(mut intervals: Vec<(u64, u64, u64)>) -> u64 {
    intervals.sort_unstable();
    let mut edges: Vec<(u64, i64)> = Vec::new();
    for (start, end, amount) in intervals {
        edges.push((start, amount as i64));
        edges.push((end, -(amount as i64)));
    }
    edges.sort_unstable(); // an end sorts before a start of the same cycle: it frees first
    let mut held = 0;
    edges.into_iter().fold(0, |most, (_, change)| {
        held += change;
        most.max(held as u64)
    })
}

fn assert_no_slot_twice(waves: &[Wave]) {
    let mut slots: HashMap<_, Vec<(u64, u64, u64)>> = HashMap::new();
    for wave in waves {
        slots.entry((wave.place, wave.simd, wave.slot)).or_default().push((wave.start, wave.end, 1));
    }
    for (slot, intervals) in slots {
        assert_eq!(peak(intervals), 1, "slot {slot:?} holds two waves");
    }
}

fn peaks<K: std::hash::Hash + Eq>(waves: &[Wave], key: impl Fn(&Wave) -> K, amount: u64) -> Vec<u64> {
    let mut groups: HashMap<K, Vec<(u64, u64, u64)>> = HashMap::new();
    for wave in waves {
        groups.entry(key(wave)).or_default().push((wave.start, wave.end, amount));
    }
    groups.into_values().map(peak).collect()
}

#[test]
fn a_slot_never_holds_two_waves_even_over_dispatches() {
    let mut placer = Placer::new(&DeviceConfig::mi300x(), 7);
    let needs = Needs { wave_size: 64, vgprs: 64, lds_bytes: 0 };
    let mut waves = Vec::new();
    for dispatch in 1..=4 {
        placer
            .place(&launch(dispatch, 1000 + dispatch * 10, 64 * 9000, 256, needs), &mut Unknown, &mut waves)
            .unwrap();
    }
    assert_eq!(waves.len(), 4 * 9000);
    assert_no_slot_twice(&waves);
    assert!(waves.iter().all(|wave| wave.simd < 4 && wave.slot < 8 && wave.start % GRAIN == 0));
}

// 512 registers of a gfx942 SIMD, 128 for each wave: four at once, whatever the slots would allow.
#[test]
fn registers_limit_the_waves_of_a_simd() {
    let mut placer = Placer::new(&DeviceConfig::mi300x(), 1);
    let needs = Needs { wave_size: 64, vgprs: 128, lds_bytes: 0 };
    let mut waves = Vec::new();
    placer.place(&launch(1, 0, 64 * 20_000, 64, needs), &mut Unknown, &mut waves).unwrap();
    let peaks = peaks(&waves, |wave| (wave.place, wave.simd), 128);
    assert_eq!(peaks.iter().max(), Some(&512));
}

#[test]
fn wave_slots_limit_light_kernels() {
    // Few WGPs: an engine launches a wave every four cycles and could not fill eight of them.
    let mut placer = Placer::new(&DeviceConfig { compute_units: 24, ..navi31() }, 1);
    let needs = Needs { wave_size: 32, vgprs: 96, lds_bytes: 0 };
    let mut waves = Vec::new();
    placer.place(&launch(1, 0, 32 * 4000, 32, needs), &mut Unknown, &mut waves).unwrap();
    let peaks = peaks(&waves, |wave| (wave.place, wave.simd), 1);
    assert_eq!(peaks.iter().max(), Some(&16));
    assert_no_slot_twice(&waves);
}

// 24 KiB for each group in 64 KiB: two groups of four waves at once.
#[test]
fn lds_limits_the_groups_of_a_compute_unit() {
    let mut placer = Placer::new(&DeviceConfig::mi300x(), 1);
    let needs = Needs { wave_size: 64, vgprs: 8, lds_bytes: 24 << 10 };
    let mut waves = Vec::new();
    placer.place(&launch(1, 0, 256 * 3000, 256, needs), &mut Unknown, &mut waves).unwrap();
    let mut groups: HashMap<u64, (u16, u64, u64)> = HashMap::new();
    for wave in &waves {
        let group = groups.entry(wave.workgroup).or_insert((wave.place, wave.start, wave.end));
        assert_eq!(group.0, wave.place, "a work-group stays on one compute unit");
        *group = (group.0, group.1.min(wave.start), group.2.max(wave.end));
    }
    let mut places: HashMap<u16, Vec<(u64, u64, u64)>> = HashMap::new();
    for (place, start, end) in groups.into_values() {
        places.entry(place).or_default().push((start, end, 1));
    }
    assert_eq!(places.into_values().map(peak).max(), Some(2));
}

#[test]
fn work_groups_go_round_the_xccs_and_use_every_compute_unit() {
    let mut placer = Placer::new(&DeviceConfig::mi300x(), 1);
    let needs = Needs { wave_size: 64, vgprs: 8, lds_bytes: 0 };
    let mut waves = Vec::new();
    placer.place(&launch(1, 0, 64 * 304 * 4, 64, needs), &mut Unknown, &mut waves).unwrap();
    let used: std::collections::HashSet<u16> = waves.iter().map(|wave| wave.place).collect();
    assert_eq!(used.len(), 304);
    for wave in &waves {
        assert_eq!(u64::from(placer.chip().position(wave.place).xcc), wave.workgroup % 8);
    }
}

#[test]
fn the_same_seed_places_alike_and_another_does_not() {
    let run = |seed| {
        let mut waves = Vec::new();
        let needs = Needs { wave_size: 64, vgprs: 64, lds_bytes: 1024 };
        Placer::new(&DeviceConfig::mi300x(), seed)
            .place(&launch(1, 0, 100_000, 100, needs), &mut Unknown, &mut waves)
            .unwrap();
        waves
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn a_group_that_never_fits_is_refused() {
    let mut placer = Placer::new(&DeviceConfig::mi300x(), 1);
    let mut waves = Vec::new();
    let too_much = Needs { wave_size: 64, vgprs: 8, lds_bytes: 65 << 10 };
    assert_eq!(placer.place(&launch(1, 0, 64, 64, too_much), &mut Unknown, &mut waves), None);
    let fat = Needs { wave_size: 64, vgprs: 512, lds_bytes: 0 };
    assert_eq!(placer.place(&launch(1, 0, 1024, 1024, fat), &mut Unknown, &mut waves), None);
    assert!(waves.is_empty());
}

// Partial groups at the edge have fewer waves, and the last wave fewer lanes.
#[test]
fn lanes_add_up_to_the_grid() {
    let mut placer = Placer::new(&navi31(), 1);
    let needs = Needs { wave_size: 32, vgprs: 24, lds_bytes: 0 };
    let mut waves = Vec::new();
    let placed = placer.place(&launch(1, 0, 1000, 96, needs), &mut Unknown, &mut waves).unwrap();
    assert_eq!(placed.workgroups, 11);
    assert_eq!(waves.iter().map(|wave| u64::from(wave.lanes)).sum::<u64>(), 1000);
    assert_eq!(placed.waves, 10 * 3 + 2); // the last group has 40 work-items
    assert_eq!(placed.end, waves.iter().map(|wave| wave.end).max().unwrap());
}
