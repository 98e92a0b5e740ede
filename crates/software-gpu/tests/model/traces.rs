//! Thread traces programmed by recorded command buffers, against the placement log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use wavescope_pm4::Generation;
use wavescope_software_gpu::{DeviceConfig, DeviceOptions, Fault, FaultPlan, StatusLie};

use crate::rig::sqtt::{Mark, Rdna, read_gfx9, read_rdna};
use crate::rig::stream::{Loaded, Recorded, load};
use crate::rig::{Clock, Rig, dispatch, overlapping, slow_clock, virtual_clock, within_time};

/// A traced program on a rig.
struct Traced {
    rig: Rig,
    recorded: Recorded,
    loaded: Loaded,
    engines: u64,
}

/// What the control buffer says of an engine.
struct Record {
    status: u32,
    counter: u32,
    pointer: u32,
}

impl Traced {
    fn new(target: &str, name: &str, faults: Vec<Fault>) -> Self {
        Self::with(target, name, faults, virtual_clock())
    }

    fn with(target: &str, name: &str, faults: Vec<Fault>, clock: Clock) -> Self {
        let recorded = Recorded::own(target, name);
        let config = recorded.config();
        let engines = u64::from(config.shader_engines());
        let options = DeviceOptions { faults: FaultPlan { faults }, ..DeviceOptions::default() };
        let rig = Rig::with(config, options, clock, 16 << 30);
        let loaded = recorded.load(&rig);
        Self { rig, recorded, loaded, engines }
    }

    /// Start, kernels (grid in waves of 64), stop.
    fn run(&self, kernels: &[u32]) {
        let signal = self.rig.signal(1);
        let kernel = self.rig.kernel(3);
        let mut queue = self.rig.queue(64);
        queue.submit(&[self.loaded.packet("start", 0)]);
        for &waves in kernels {
            queue.submit(&[dispatch(kernel, [waves * 64, 1, 1], [128, 1, 1], 0)]);
        }
        queue.submit(&[self.loaded.packet("stop", signal)]);
        self.rig.wait(signal, 0);
        assert!(self.rig.host.errors.lock().unwrap().is_empty());
    }

    /// The same with kernels that may overlap, rung for together.
    fn run_overlapping(&self, kernels: &[u32]) {
        let signal = self.rig.signal(1);
        let kernel = self.rig.kernel(3);
        let dispatch = |&waves| overlapping(dispatch(kernel, [waves * 64, 1, 1], [128, 1, 1], 0));
        let mut packets = vec![self.loaded.packet("start", 0)];
        packets.extend(kernels.iter().map(dispatch));
        packets.push(self.loaded.packet("stop", signal));
        self.rig.queue(64).submit_and(&packets, || self.rig.wait(signal, 0));
    }

    fn record(&self, engine: u64) -> Record {
        let at = |offset| self.rig.arena().load_u32(self.loaded.bases[0] + 32 * engine + offset);
        Record { status: at(0), counter: at(4), pointer: at(8) }
    }

    /// Address and size of an engine's part of the data buffer, from the formula of the public builder: equal parts
    /// for the engines of the mask, a page for each other one.
    fn part(&self, engine: u64) -> (u64, u64) {
        let enabled = |engine: u64| {
            crate::rig::stream::array(&self.recorded.json["enabled_se"]).contains(&engine.into())
        };
        let count = (0..64).filter(|&engine| enabled(engine)).count() as u64;
        let step = (self.loaded.sizes[1] - (64 - count) * 4096) / count / 4096 * 4096;
        let before: u64 = (0..engine).map(|engine| if enabled(engine) { step } else { 4096 }).sum();
        (self.loaded.bases[1] + before, if enabled(engine) { step } else { 4096 })
    }

    /// The engine's stream: as many bytes as the write pointer says. It counts pieces of 32 bytes; on gfx11 it is an
    /// address in such pieces.
    fn stream(&self, engine: u64) -> Vec<u32> {
        let (address, _) = self.part(engine);
        let pointer = u64::from(self.record(engine).pointer);
        let bytes = match self.rig.device.config().target.generation() {
            Generation::Gfx9 => (pointer & 0x3FFF_FFFF) * 32,
            Generation::Gfx10 | Generation::Gfx12 => (pointer & 0x1FFF_FFFF) * 32,
            Generation::Gfx11 => ((pointer & 0x1FFF_FFFF) * 32).wrapping_sub(address) & 0x1FFF_FFFF,
        };
        self.rig.arena().dwords(address, bytes / 4)
    }
}

/// Wave starts and ends of an engine in the log: (cycle, start, array, unit, SIMD, slot), in order of time.
fn logged(rig: &Rig, engine: u64, config: &DeviceConfig) -> Vec<(u64, Mark)> {
    let per_xcc = u64::from(config.se_per_xcc);
    let waves = rig.waves();
    let here = waves
        .iter()
        .filter(|wave| (u64::from(wave.xcc), u64::from(wave.se)) == (engine / per_xcc, engine % per_xcc));
    let mut marks: Vec<_> = here
        .flat_map(|wave| {
            let unit = if config.target.generation() == Generation::Gfx9 { wave.cu } else { wave.cu / 2 };
            let place = (wave.sa, unit, wave.simd, wave.slot);
            [(wave.start, Mark::Start { place, lanes: wave.lanes }), (wave.end, Mark::End { place })]
        })
        .collect();
    marks.sort_by_key(|mark| mark.0);
    marks
}

/// Moves times so that the first is 0.
fn relative(marks: Vec<(u64, Mark)>) -> Vec<(u64, Mark)> {
    let first = marks.first().map_or(0, |mark| mark.0);
    marks.into_iter().map(|(time, mark)| (time - first, mark)).collect()
}

fn by_time(mut marks: Vec<(u64, Mark)>) -> Vec<(u64, Mark)> {
    marks.sort();
    marks
}

fn waves_only(marks: &[(u64, Mark)]) -> Vec<(u64, Mark)> {
    marks.iter().filter(|(_, mark)| matches!(mark, Mark::Start { .. } | Mark::End { .. })).copied().collect()
}

#[test]
fn gfx942_waves_of_the_traced_engines_are_those_of_the_log() {
    let traced = Traced::new("gfx942", "att-default.json", vec![]);
    traced.run(&[1000, 64, 4000]);
    for engine in [0, 4] {
        let marks = read_gfx9(&traced.stream(engine));
        let log = logged(&traced.rig, engine, traced.rig.device.config());
        assert!(log.len() > 200, "{}", log.len());
        assert_eq!(by_time(relative(waves_only(&marks))), by_time(relative(log)), "engine {engine}");
        assert_eq!(traced.record(engine).status, 0);
    }
    for engine in (0..traced.engines).filter(|engine| ![0, 4].contains(engine)) {
        assert_eq!(traced.record(engine).pointer, 0, "engine {engine} is not in the mask");
    }
}

#[test]
fn gfx942_streams_carry_the_markers_and_the_dispatch() {
    let traced = Traced::new("gfx942", "att-se-mask-1.json", vec![]);
    traced.run(&[10]);
    let marks = read_gfx9(&traced.stream(0));
    let user: Vec<_> = marks
        .iter()
        .filter_map(|(_, mark)| {
            if let Mark::Register { register, data } = mark { Some((*register, *data)) } else { None }
        })
        .collect();
    // Marker words of the start buffer, then the clock markers of start and stop: opcode and three words each.
    assert_eq!(user[..3], [(0xC342, 0x434F_5200), (0xC342, 0x0008_0201), (0xC342, 100_000 << 12 | 6)]);
    assert_eq!(user.iter().filter(|entry| **entry == (0xC343, 5)).count(), 2);
    assert_eq!(user.len(), 3 + 2 * 4);
    let compute: Vec<_> =
        marks
            .iter()
            .filter_map(|(_, mark)| {
                if let Mark::Compute { register, data } = mark { Some((*register, *data)) } else { None }
            })
            .collect();
    let value = |number| compute.iter().find(|entry| entry.0 == number).map(|entry| entry.1);
    assert_eq!([value(7), value(8), value(9)], [Some(128), Some(1), Some(1)]);
    let first = marks.iter().position(|(_, mark)| matches!(mark, Mark::Start { .. })).unwrap();
    let initiator =
        marks.iter().position(|(_, mark)| matches!(mark, Mark::Compute { register: 0, .. })).unwrap();
    assert!(initiator < first, "registers come before the first wave");
}

#[test]
fn gfx942_code_object_markers_reach_every_traced_engine() {
    let traced = Traced::new("gfx942", "att-default.json", vec![]);
    let markers = Recorded::own("gfx942", "codeobj.json");
    let marker = &markers.json["markers"][0];
    let buffers = load(&traced.rig, &marker["allocs"], &serde_json::json!({ "marker": marker["ib"] }));
    let signal = traced.rig.signal(1);
    let mut queue = traced.rig.queue(16);
    queue.submit(&[
        traced.loaded.packet("start", 0),
        buffers.packet("marker", 0),
        traced.loaded.packet("stop", signal),
    ]);
    traced.rig.wait(signal, 0);
    for engine in [0, 4] {
        let marks = read_gfx9(&traced.stream(engine));
        let words: Vec<u32> = marks
            .iter()
            .filter_map(|(_, mark)| match mark {
                Mark::Register { register: 0xC342, data } => Some(*data),
                _ => None,
            })
            .collect();
        // Header and payload of address, size and tail, as the marker was asked for: address 0x7f0012345000.
        assert_eq!(words[3..7], [0x204, 0x1234_5000, 0x304, 0x7F00]);
        assert_eq!(words.len(), 3 + 10);
    }
}

#[test]
fn a_full_buffer_shows_as_the_hardware_shows_it() {
    let traced = Traced::new("gfx942", "att-se-mask-1.json", vec![Fault::TraceBytes(4096)]);
    traced.run(&[100_000]);
    let record = traced.record(0);
    assert_eq!(record.status >> 31, 1, "FULL");
    assert_eq!(record.pointer & 0x3FFF_FFFF, 4096 / 32);
    assert!(record.counter > 0);
    assert_eq!(traced.rig.arena().dwords(traced.part(0).0 + 4096, 64), [0; 64], "nothing behind the end");
}

#[test]
fn a_status_lies_where_the_plan_says_so() {
    let lie = StatusLie { xcc: 0, se: 0, set: 1 << 28, clear: 0 };
    let traced = Traced::new("gfx942", "att-se-mask-1.json", vec![Fault::LieStatus(lie)]);
    traced.run(&[10]);
    assert_eq!(traced.record(0).status, 1 << 28);
}

/// Runs a program twice: the second trace has the waves of its own run only.
fn runs_twice(target: &str, waves_of: impl Fn(&[u32]) -> Vec<(u64, Mark)>) {
    let traced = Traced::new(target, "att-se-mask-1.json", vec![]);
    traced.run(&[100]);
    let first = waves_only(&waves_of(&traced.stream(0)));
    traced.run(&[300]);
    let second = waves_only(&waves_of(&traced.stream(0)));
    let log = logged(&traced.rig, 0, traced.rig.device.config());
    assert_eq!(first.len() + second.len(), log.len(), "{target}");
    assert_eq!(by_time(relative(second)), by_time(relative(log[first.len()..].to_vec())), "{target}");
}

#[test]
fn two_runs_of_one_program_deliver_different_data_of_their_own() {
    runs_twice("gfx942", read_gfx9);
    for (target, version) in RDNA {
        runs_twice(target, |stream| read_rdna(version, stream));
    }
}

const RDNA: [(&str, Rdna); 3] =
    [("gfx1030", Rdna::Gfx10), ("gfx1100", Rdna::Gfx11), ("gfx1201", Rdna::Gfx12)];

#[test]
fn waves_of_gfx10_and_later_are_those_of_the_log() {
    for (target, version) in RDNA {
        let traced = Traced::new(target, "att-se-mask-1.json", vec![]);
        traced.run(&[1000, 3, 700]);
        let marks = read_rdna(version, &traced.stream(0));
        let log = logged(&traced.rig, 0, traced.rig.device.config());
        assert!(log.len() > 200, "{target}: {}", log.len());
        assert_eq!(by_time(relative(waves_only(&marks))), by_time(relative(log)), "{target}");
        assert_eq!(traced.record(0).status, 0, "{target}");
        for engine in 1..traced.engines {
            let waves = waves_only(&read_rdna(version, &traced.stream(engine)));
            assert_eq!(waves, [], "{target}: engine {engine} is not in the mask");
        }
    }
}

/// Whether a wave of the second dispatch is in the stream before one of the first is over: the marks of dispatches are
/// counted by what `is_dispatch` knows.
fn second_begins_beside_the_first(marks: &[(u64, Mark)], is_dispatch: fn(&Mark) -> bool) -> bool {
    let second = marks.iter().enumerate().filter(|(_, (_, mark))| is_dispatch(mark)).nth(1);
    let (index, _) = second.expect("two dispatches are in the stream");
    let resident = marks[..index].iter().fold(0, |resident, (_, mark)| match mark {
        Mark::Start { .. } => resident + 1,
        Mark::End { .. } => resident - 1,
        _ => resident,
    });
    resident > 0
}

#[test]
fn kernels_that_overlap_are_traced_side_by_side() {
    let run = |target| {
        let traced = Traced::with(target, "att-se-mask-1.json", vec![], slow_clock());
        traced.run_overlapping(&[1000, 3, 700]);
        let log = logged(&traced.rig, 0, traced.rig.device.config());
        (traced.stream(0), by_time(relative(log)))
    };
    let (stream, log) = run("gfx942");
    let marks = read_gfx9(&stream);
    assert_eq!(by_time(relative(waves_only(&marks))), log, "gfx942");
    assert!(second_begins_beside_the_first(&marks, |mark| matches!(mark, Mark::Compute { register: 0, .. })));
    for (target, version) in RDNA {
        let (stream, log) = run(target);
        let marks = read_rdna(version, &stream);
        assert_eq!(by_time(relative(waves_only(&marks))), log, "{target}");
        let is_dispatch = |mark: &Mark| matches!(mark, Mark::Dispatch { .. });
        assert!(second_begins_beside_the_first(&marks, is_dispatch), "{target}");
    }
}

// The second kernel is launched long before it begins. What it may not do is move the trace on to its beginning: another
// queue stops the trace before that.
#[test]
fn a_kernel_in_the_future_does_not_take_the_trace_there() {
    const STEP: u64 = 10;
    let clock = Clock::Slow(AtomicU64::new(1000), STEP);
    let traced = Traced::with("gfx942", "att-se-mask-1.json", vec![], clock);
    let rig = &traced.rig;
    let (mut queue, kernel, stopped) = (rig.queue(16), rig.kernel(3), rig.signal(1));
    let long = overlapping(dispatch(kernel, [64 * 304 * 32 * 8, 1, 1], [64, 1, 1], 0));
    let small = overlapping(dispatch(kernel, [64, 1, 1], [64, 1, 1], 0));
    // Giving its place back is what the second kernel does after its launch; there the queue is held.
    rig.host.stalled.store(queue.config.ring + 2 * 64, Ordering::SeqCst);
    rig.host.stall.store(true, Ordering::SeqCst);
    queue.submit(&[traced.loaded.packet("start", 0), long, small]);
    let launched = || rig.waves().iter().any(|wave| wave.dispatch == 2);
    assert!(within_time(Duration::from_secs(60), launched));
    let stop = traced.loaded.packet("stop", stopped);
    rig.queue(16).submit_and(&[stop], || rig.wait(stopped, 0));
    rig.host.stall.store(false, Ordering::SeqCst);
    // The packet's start, and one look at the clock later.
    let end = (rig.times(stopped).0 + STEP) * rig.device.config().cycles_per_tick();
    let mut log = logged(rig, 0, rig.device.config());
    let second = rig.waves().iter().filter(|wave| wave.dispatch == 2).map(|wave| wave.start).min();
    assert!(second > Some(end), "{second:?} {end}");
    log.retain(|(cycle, _)| *cycle <= end);
    let marks = waves_only(&read_gfx9(&traced.stream(0)));
    assert_eq!(by_time(relative(marks)), by_time(relative(log)));
}

#[test]
fn gfx10_and_later_carry_the_markers_and_the_dispatch() {
    for (target, version) in RDNA {
        let traced = Traced::new(target, "att-se-mask-1.json", vec![]);
        traced.run(&[10]);
        let marks = read_rdna(version, &traced.stream(0));
        let words: Vec<_> = marks
            .iter()
            .filter_map(|(_, mark)| {
                if let Mark::Register { register, data } = mark { Some((*register, *data)) } else { None }
            })
            .collect();
        assert_eq!(
            words,
            [(0xC342, 0x434F_5200), (0xC342, 0x0008_0201), (0xC342, 100_000 << 12 | 6)],
            "{target}"
        );
        let value = |number| {
            marks.iter().find_map(|(_, mark)| match mark {
                Mark::Compute { register, data } if *register == number => Some(*data),
                _ => None,
            })
        };
        assert_eq!([value(7), value(8), value(9)], [Some(128), Some(1), Some(1)], "{target}");
        let first = marks.iter().position(|(_, mark)| matches!(mark, Mark::Start { .. })).unwrap();
        let dispatch = marks.iter().position(|(_, mark)| matches!(mark, Mark::Dispatch { .. })).unwrap();
        assert!(dispatch < first, "{target}: the dispatch comes before its first wave");
    }
}

#[test]
fn a_full_buffer_of_gfx10_and_later_shows_by_its_size_only() {
    for (target, _) in RDNA {
        let traced = Traced::new(target, "att-se-mask-1.json", vec![Fault::TraceBytes(4096)]);
        traced.run(&[20_000]);
        assert_eq!(traced.stream(0).len(), 4096 / 4, "{target}");
        let record = traced.record(0);
        assert_eq!(record.status, 0, "{target}");
        assert!(record.counter > 0, "{target}: dropped tokens are counted");
    }
}
