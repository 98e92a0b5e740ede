//! Totals against hand-computed intervals.

use std::sync::Arc;

use wavescope_pm4::Target;

use super::instructions::Kind;
use super::requests::Request;
use super::*;
use crate::DeviceConfig;
use crate::place::{Chip, Wave};
use crate::walk::{Detail, End, Flow, Path, Step, Timed, Times, Unit, Wait, Work};

fn wave(place: u16, start: u64, end: u64, lanes: u8) -> Wave {
    Wave { workgroup: 0, start, end, place, simd: 0, slot: 0, lanes, size: 64, first: true, walk: 0 }
}

struct Bench {
    chip: Chip,
    gates: Gates,
    monitor: Monitor,
}

impl Bench {
    fn new() -> Self {
        let config = DeviceConfig::mi300x();
        let chip = Chip::new(&config);
        let monitor = Monitor::new(&config, &chip);
        let mut bench = Self { gates: Gates::new(&config, |_, _| u32::MAX), chip, monitor };
        bench.monitor.set_clock(0xFF, true);
        bench
    }

    fn sync(&mut self, now: u64) {
        self.monitor.sync(now, &self.chip, || self.gates.clone());
    }

    fn sample(&mut self) -> Totals {
        self.monitor.sample(0xFF);
        self.monitor.sampled(0).sequencers[0]
    }
}

// Places 0 and 1 lie in engine 0 of XCC 0. Waves [100,200) and [150,300) on one place, [250,400) on the other.
#[test]
fn overlapping_waves_are_busy_once_and_their_cycles_add_up() {
    let mut bench = Bench::new();
    bench.monitor.set_state(0xFF, 1);
    let waves = [wave(0, 100, 200, 64), wave(0, 150, 300, 40), wave(1, 250, 400, 10)];
    bench.monitor.launch(&waves, &[], (90, 400), true, true);
    bench.sync(1000);
    let totals = bench.sample();
    assert_eq!((totals.waves, totals.full, totals.items, totals.groups), (3, 1, 114, 3));
    assert_eq!(totals.below, [1, 1, 2, 2]);
    assert_eq!(totals.wave_cycles, 100 + 150 + 150);
    assert_eq!(totals.busy_cycles, 300);
    assert_eq!(totals.busy_unit_cycles, 200 + 150);
    let xcc = bench.monitor.sampled(0);
    assert_eq!((xcc.cycles, xcc.gui_active, xcc.spi_busy), (1000, 310, 300));
}

#[test]
fn the_same_totals_result_however_often_time_is_looked_at() {
    let waves = [wave(0, 100, 200, 64), wave(0, 150, 300, 40), wave(1, 250, 400, 10)];
    let run = |steps: &[u64]| {
        let mut bench = Bench::new();
        bench.monitor.set_state(0xFF, 1);
        bench.monitor.launch(&waves, &[], (90, 400), true, true);
        steps.iter().for_each(|&step| bench.sync(step));
        bench.sample()
    };
    assert_eq!(run(&[1000]), run(&[120, 160, 199, 260, 350, 999, 1000]));
}

#[test]
fn only_what_runs_while_counting_is_counted() {
    let mut bench = Bench::new();
    bench.monitor.launch(&[wave(0, 100, 200, 64), wave(0, 180, 400, 64)], &[], (100, 400), true, true);
    bench.sync(150);
    bench.monitor.set_state(0xFF, 1);
    bench.sync(300);
    bench.monitor.set_state(0xFF, 2);
    bench.sync(500);
    let totals = bench.sample();
    assert_eq!((totals.waves, totals.wave_cycles, totals.busy_cycles), (1, 50 + 120, 150));
    assert_eq!(bench.monitor.sampled(0).cycles, 150);
    bench.monitor.set_state(0xFF, 0);
    assert_eq!(bench.sample(), Totals::default());
}

#[test]
fn queues_that_take_no_part_are_seen_by_the_bus_manager_only() {
    let mut bench = Bench::new();
    bench.monitor.set_state(0xFF, 1);
    bench.monitor.launch(&[wave(0, 100, 200, 64)], &[], (100, 200), false, true);
    bench.sync(300);
    assert_eq!(bench.sample(), Totals::default());
    assert_eq!(bench.monitor.sampled(0).gui_active, 100);
}

#[test]
fn levels_show_the_resident_waves() {
    let mut bench = Bench::new();
    bench.monitor.set_state(0xFF, 1);
    bench.monitor.launch(&[wave(0, 100, 300, 64), wave(1, 100, 200, 64)], &[], (100, 300), true, true);
    for (now, resident) in [(50, 0), (150, 2), (250, 1), (350, 0)] {
        bench.sync(now);
        bench.monitor.sample(0xFF);
        assert_eq!(bench.monitor.sampled(0).value(Quantity::Level, 0, 0, None), resident, "at {now}");
    }
}

/// Ten scalar instructions, issued 10, 20, … 100 cycles after the start of a wave of 200.
fn ten_scalars() -> Arc<Timed> {
    let work = Work {
        unit: Unit::Salu,
        code: 1,
        cycles: 4,
        write: false,
        atomic: false,
        detail: Detail::None,
        wait: Wait::NONE,
    };
    let steps = (0..10).map(|index| Step { pc: index * 4, work, flow: Flow::Next });
    let path = Arc::new(Path { steps: steps.collect(), end: End::Program, asked: 0 });
    let times = (1..=10).map(|index| Times { ready: index * 10, issue: index * 10 }).collect();
    let counts = path.steps.iter().collect();
    Arc::new(Timed { path, path_number: 0, times, counts, cycles: 200 })
}

#[test]
fn instructions_count_from_the_first_select_that_asks_for_them() {
    const SALU: Quantity = Quantity::Instructions(Kind::Salu);
    let mut bench = Bench::new();
    let salu = |bench: &mut Bench| {
        bench.monitor.sample(0xFF);
        bench.monitor.sampled(0).value(SALU, 0, 0, None)
    };
    bench.monitor.set_state(0xFF, 1);
    bench.monitor.launch(&[wave(0, 100, 300, 64)], &[ten_scalars()], (100, 300), true, true);
    assert!(bench.monitor.is_new(SALU) && !bench.monitor.is_new(Quantity::Waves));
    bench.sync(145);
    bench.monitor.count_instructions(&bench.chip);
    // A sample of before the select is no sample of it.
    assert_eq!(bench.monitor.sampled(0).value(SALU, 0, 0, None), 0);
    assert!(!bench.monitor.is_new(SALU) && !bench.monitor.is_new(Quantity::Requests(Request::All)));
    bench.sync(175);
    assert_eq!(salu(&mut bench), 3, "those at 150, 160, 170");
    bench.sync(1000);
    assert_eq!((salu(&mut bench), bench.sample().waves), (6, 1));
    bench.monitor.set_state(0xFF, 0);
    assert_eq!(salu(&mut bench), 0);
}

/// The table of the crate's documentation, made from what is modelled.
fn modelled() -> String {
    use std::fmt::Write;

    let mut table = String::from("| target | block | event and what it counts |\n| --- | --- | --- |\n");
    for target in Target::ALL {
        for block in target.blocks() {
            let events = (0..=block.select.event_mask.min(0x3FF)).filter_map(|event| {
                let known = quantity(target, block, event).map(|quantity| format!("{event} {quantity:?}"));
                let sum = accumulate(target, event).filter(|_| block.name == "SQ");
                known.or_else(|| {
                    sum.map(|cycles| format!("{event} sum of the level before, each {cycles} cycles"))
                })
            });
            let events: Vec<String> = events.collect();
            // SQ_CS is SQ again.
            if !events.is_empty() && block.name != "SQ_CS" {
                writeln!(table, "| {target:?} | {} | {} |", block.name, events.join(", ")).unwrap();
            }
        }
    }
    table
}

#[test]
fn documentation_lists_what_is_modelled() {
    let text = include_str!("modelled.md");
    let found = modelled();
    assert!(text.ends_with(&found), "the table should be:\n{found}");
}
