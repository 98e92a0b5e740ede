//! The demonstration is judged by the launch geometry and by the placement log, which the software GPU writes before
//! any counter or trace code runs.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing helper fails the test")]

mod common;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use common::wavescope;
use serde_json::Value;

fn json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Waves of a launch: every work-group, the partial ones at the edges too, rounds up to whole waves.
fn waves(grid: &Value, workgroup: &Value, wave_size: u64) -> u64 {
    let side = |list: &Value, axis: usize| number(&list[axis]);
    // Sizes of the groups along an axis: whole ones and perhaps a partial one.
    let sizes = |axis: usize| {
        let (grid, group) = (side(grid, axis), side(workgroup, axis));
        (0..grid.div_ceil(group)).map(move |index| group.min(grid - index * group))
    };
    let mut waves = 0;
    for z in sizes(2) {
        for y in sizes(1) {
            for x in sizes(0) {
                waves += (x * y * z).div_ceil(wave_size);
            }
        }
    }
    waves
}

struct Demo {
    results: Value,
    folder: tempfile::TempDir,
}

impl Demo {
    fn run(gpu: &str, contexts: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().to_str().unwrap();
        let outcome = wavescope(["demo", "--gpu", gpu, "--contexts", contexts, "--json", "--out", out]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        Self { results: serde_json::from_str(&outcome.stdout).unwrap(), folder }
    }

    fn list(&self, name: &str) -> &[Value] {
        self.results[name].as_array().unwrap()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }
}

#[test]
fn sq_waves_of_each_dispatch_equal_the_launch_geometry() {
    let demo = Demo::run("gfx942", "2");
    let mut shapes = std::collections::HashSet::new();
    for dispatch in demo.list("dispatches") {
        let (grid, workgroup) = (&dispatch["grid"], &dispatch["workgroup"]);
        shapes.insert(format!("{grid} {workgroup}"));
        let counters = dispatch["counters"].as_array().unwrap();
        let counter = |name: &str| counters.iter().find(|counter| counter["name"] == name).unwrap();
        assert_eq!(
            counter("SQ_WAVES")["value"].as_f64(),
            Some(waves(grid, workgroup, 64) as f64),
            "{dispatch}"
        );
        let (busy, all) = (&counter("GRBM_GUI_ACTIVE")["value"], &counter("GRBM_COUNT")["value"]);
        assert!(busy.as_f64() > Some(0.0) && busy.as_f64() <= all.as_f64(), "{busy} of {all}");
        assert!(number(&dispatch["end_ns"]) > number(&dispatch["start_ns"]));
    }
    assert!(shapes.len() >= 6, "{shapes:?}");
}

/// A wave of the placement log that the trace must show: its place and its times in device cycles.
struct Placed {
    simd: u64,
    slot: u64,
    cu: u64,
    start: u64,
    end: u64,
}

/// Waves of each dispatch that ran on shader engine 0 of XCC 0, by dispatch of the device.
fn placed_on_engine_0(log: &[Value]) -> HashMap<u64, Vec<Placed>> {
    let mut placed: HashMap<u64, Vec<Placed>> = HashMap::new();
    let waves = log.iter().filter(|line| line["kind"] == "wave" && line["xcc"] == 0 && line["se"] == 0);
    for wave in waves {
        let field = |name: &str| number(&wave[name]);
        placed.entry(field("dispatch")).or_default().push(Placed {
            simd: field("simd"),
            slot: field("slot"),
            cu: field("cu"),
            start: field("start"),
            end: field("end"),
        });
    }
    placed
}

#[test]
fn decoded_waves_equal_the_placement_log_in_number_place_and_order() {
    let demo = Demo::run("gfx942", "4");
    let placed = placed_on_engine_0(&json_lines(&demo.path("placement.jsonl")));
    // Counted in the order of their enqueueing, which on serialized queues is the order in which they ran.
    let dispatches = demo.list("dispatches");
    let mut compared = 0;
    for trace in demo.list("traces") {
        let place = dispatches.iter().position(|dispatch| dispatch["dispatch"] == trace["dispatch"]).unwrap();
        let device_dispatch = device_dispatch(&demo, dispatches, place);
        let mut expected: Vec<&Placed> =
            placed.get(&device_dispatch).map_or(Vec::new(), |waves| waves.iter().collect());
        expected.sort_by_key(|wave| wave.start);
        let name = format!("dispatch{}_se0.jsonl", trace["dispatch"]);
        let records = json_lines(&demo.path(&name));
        let starts: Vec<&Value> =
            records.iter().filter(|record| record["rec"] == "occupancy" && record["start"] == 1).collect();
        let ends =
            records.iter().filter(|record| record["rec"] == "occupancy" && record["start"] == 0).count();
        assert_eq!((starts.len(), ends), (expected.len(), expected.len()), "{trace}");
        // In stream order: starts of one cycle may be in any order among themselves, so each cycle is a group; the order
        // of the groups, and their places, must be the log's. Trace time runs in steps of 4 clocks on gfx9, which may
        // put neighbouring cycles into one group: the log is grouped by the stream's steps.
        let found: Vec<_> = starts
            .iter()
            .map(|start| {
                let field = |name: &str| number(&start[name]);
                (field("time"), (field("cu"), field("simd"), field("wave_id")))
            })
            .collect();
        assert!(found.is_sorted_by_key(|wave| wave.0), "{trace}: time runs backwards");
        let wanted: Vec<_> =
            expected.iter().map(|wave| (wave.start, (wave.cu, wave.simd, wave.slot))).collect();
        let found_base = found.first().map_or(0, |first| first.0);
        let wanted_base = wanted.first().map_or(0, |first| first.0);
        let mut rest = wanted.as_slice();
        for group in found.chunk_by(|a, b| a.0 == b.0) {
            let (logged, behind) = rest.split_at(group.len());
            let sorted = |waves: &[(u64, (u64, u64, u64))]| {
                let mut places: Vec<_> = waves.iter().map(|wave| wave.1).collect();
                places.sort_unstable();
                places
            };
            assert_eq!(sorted(group), sorted(logged), "{trace}: at {}", group[0].0);
            rest = behind;
        }
        for (found, wanted) in found.iter().zip(&wanted) {
            let (since, logged) = (found.0 - found_base, wanted.0 - wanted_base);
            assert!(since.abs_diff(logged) <= 8, "{trace}: {found:?} {wanted:?}");
        }
        let detailed = records.iter().filter(|record| record["rec"] == "wave").count();
        assert_eq!(detailed, expected.iter().filter(|wave| wave.cu == 0).count(), "{trace}");
        assert!(expected.iter().all(|wave| wave.end > wave.start));
        compared += expected.len();
    }
    assert!(compared >= 20, "only {compared} waves were compared");
}

/// The device's own number of a counted dispatch: its place in the log among dispatches of the same kernel and shape.
fn device_dispatch(demo: &Demo, dispatches: &[Value], place: usize) -> u64 {
    let wanted = &dispatches[place];
    let same =
        |dispatch: &Value| dispatch["grid"] == wanted["grid"] && dispatch["workgroup"] == wanted["workgroup"];
    let rank = dispatches[..place].iter().filter(|dispatch| same(dispatch)).count();
    let log = json_lines(&demo.path("placement.jsonl"));
    let mut of_it = log.iter().filter(|line| line["kind"] == "dispatch" && same(line));
    number(&of_it.nth(rank).unwrap()["dispatch"])
}

#[test]
fn contexts_with_different_buffer_sizes_share_one_queue_and_one_slot() {
    let demo = Demo::run("gfx942", "5");
    let shared = &demo.results["shared"];
    assert_eq!((number(&shared["contexts"]), number(&shared["submission_queues"])), (5, 1));
    assert_eq!(number(&shared["output_slots"]), 1);
    // The larger of the two sizes in turns, 2 MiB, and the room behind it.
    assert_eq!(number(&shared["output_bytes"]), (2 << 20) + 0x2000);
    assert_eq!(demo.list("traces").len(), 10);
}

#[test]
fn two_traced_dispatches_of_one_context_deliver_different_data() {
    let demo = Demo::run("gfx942", "1");
    let data: Vec<_> = demo
        .list("traces")
        .iter()
        .map(|trace| fs::read(demo.path(&format!("dispatch{}_se0.sqtt", trace["dispatch"]))).unwrap())
        .collect();
    assert_eq!(data.len(), 2);
    assert!(data.iter().all(|data| data.len() > 8));
    assert_ne!(data[0], data[1]);
}

#[test]
fn written_traces_decode_to_the_written_records() {
    let demo = Demo::run("gfx942", "1");
    for trace in demo.list("traces") {
        let stem = demo.path(&format!("dispatch{}_se0", trace["dispatch"]));
        let mut arguments = vec!["decode".into(), "--gfx".into(), "gfx942".into(), "--sqtt".into()];
        arguments.push(stem.with_extension("sqtt").display().to_string());
        for object in demo.list("code_objects") {
            let file = demo.path(object["file"].as_str().unwrap());
            arguments.push("--code-object".into());
            arguments.push(format!("{}@{}", file.display(), object["load_address"]));
        }
        let outcome = wavescope(arguments);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert_eq!(outcome.stdout, fs::read_to_string(stem.with_extension("jsonl")).unwrap());
    }
}

#[test]
fn csv_has_a_row_a_dispatch_and_a_column_a_counter() {
    let demo = Demo::run("gfx942", "1");
    let mut csv = csv::Reader::from_path(demo.path("counters.csv")).unwrap();
    let header = csv.headers().unwrap().clone();
    let column = header.iter().position(|name| name == "SQ_WAVES").unwrap();
    let rows: Vec<_> = csv.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), demo.list("dispatches").len());
    for (row, dispatch) in rows.iter().zip(demo.list("dispatches")) {
        let waves = waves(&dispatch["grid"], &dispatch["workgroup"], 64);
        assert_eq!(row[column].parse::<u64>().unwrap(), waves);
    }
}

#[test]
fn hottest_instructions_lie_in_the_traced_kernel_on_every_target() {
    for gpu in ["gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1201"] {
        let demo = Demo::run(gpu, "1");
        let detailed = demo.list("traces").iter().filter(|trace| number(&trace["detailed_waves"]) > 0);
        let mut places = 0;
        for trace in detailed {
            assert!(number(&trace["instructions"]) >= number(&trace["detailed_waves"]), "{gpu}: {trace}");
            for hot in trace["hottest"].as_array().unwrap() {
                assert_eq!(hot["kernel"], trace["kernel"], "{gpu}");
                let mnemonic = hot["mnemonic"].as_str().unwrap();
                assert!(mnemonic.contains('_'), "{gpu}: {mnemonic}");
                places += 1;
            }
        }
        assert!(places > 0, "{gpu}: nothing ran on the unit in detail");
    }
}

/// A trace of several megabytes is decoded in pieces: a short one, over and over.
#[test]
fn every_wave_of_a_long_trace_is_decoded() {
    let demo = Demo::run("gfx942", "1");
    let trace = &demo.list("traces")[0];
    let short = fs::read(demo.path(&format!("dispatch{}_se0.sqtt", trace["dispatch"]))).unwrap();
    // The first 8 bytes are the header in front of the data.
    let (header, data) = short.split_at(8);
    let times = (5 << 20) / data.len() + 1;
    let path = demo.path("long.sqtt");
    fs::write(&path, [header, &data.repeat(times)].concat()).unwrap();
    let outcome = wavescope(["decode", "--gfx", "gfx942", "--sqtt", path.to_str().unwrap()]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let waves = outcome.stdout.lines().filter(|line| line.starts_with(r#"{"rec":"wave""#)).count();
    assert_eq!(waves as u64, times as u64 * number(&trace["detailed_waves"]));
}
