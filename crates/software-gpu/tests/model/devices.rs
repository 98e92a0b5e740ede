//! Devices made from topologies; logs and plans in files.

use std::path::Path;
use std::sync::Arc;

use wavescope_core::Topology;
use wavescope_software_gpu::{
    ClockHost, DeviceConfig, DeviceOptions, Error, Fault, FaultPlan, Harvest, TruthFile, TruthSink,
};

use crate::rig::{Clock, Rig, dispatch, virtual_clock};

/// Compute units, XCCs, shader engines of all XCCs: public product figures.
const CHIPS: [(&str, u32, u8, u32); 5] = [
    ("gfx942", 304, 8, 32),
    ("gfx90a", 104, 1, 8),
    ("gfx950", 256, 8, 32),
    ("gfx1100", 96, 1, 6),
    ("gfx1201", 64, 1, 4),
];

#[test]
fn every_topology_makes_a_device_that_uses_all_its_compute_units() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/topology");
    if !root.is_dir() {
        println!("NOT RUN: {} is not there", root.display());
        return;
    }
    for (target, units, xccs, engines) in CHIPS {
        let topology = Topology::read(&root.join(target)).unwrap();
        let config = DeviceConfig::from_agent(&topology.agents()[0]).unwrap();
        assert_eq!(
            (config.compute_units, config.xcc, config.shader_engines()),
            (units, xccs, engines),
            "{target}"
        );
        let rig = Rig::new(config);
        let (mut queue, signal) = (rig.queue(16), rig.signal(1));
        queue.submit(&[dispatch(rig.kernel(3), [64 * 40 * units, 1, 1], [64, 1, 1], signal)]);
        rig.wait(signal, 0);
        let used: std::collections::BTreeSet<_> =
            rig.waves().iter().map(|wave| (wave.xcc, wave.se, wave.sa, wave.cu)).collect();
        assert_eq!(used.len(), units as usize, "{target}");
    }
}

#[test]
fn two_agents_of_one_topology_are_two_devices() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/topology/gfx942-x2");
    let Ok(topology) = Topology::read(&root) else {
        println!("NOT RUN: {} is not there", root.display());
        return;
    };
    let configs: Vec<_> =
        topology.agents().iter().map(|agent| DeviceConfig::from_agent(agent).unwrap()).collect();
    assert_eq!(configs.iter().map(|config| config.device).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn the_truth_log_is_in_the_file_before_the_dispatch_completes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truth.jsonl");
    let file: Arc<dyn TruthSink> = Arc::new(TruthFile::create(&path).unwrap());
    let options = DeviceOptions { truth: Some(file), ..DeviceOptions::default() };
    let rig = Rig::with(DeviceConfig::mi300x(), options, Clock::Real(ClockHost::new()), 1 << 30);
    let (mut queue, signal) = (rig.queue(16), rig.signal(1));
    queue.submit(&[dispatch(rig.kernel(3), [640, 1, 1], [64, 1, 1], signal)]);
    rig.wait(signal, 0);
    let lines: Vec<serde_json::Value> = std::fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((&lines[0]["kind"], &lines[0]["waves"]), (&"dispatch".into(), &10.into()));
    // Where there is no program, each walk says so by name.
    let walks = lines[1..].iter().take_while(|line| line["kind"] == "walk").count();
    assert!(walks > 0 && lines[1..=walks].iter().all(|line| line["stopped"][1] == "blank"));
    assert_eq!(lines.len(), 1 + walks + 10);
    let keys =
        ["kind", "device", "dispatch", "xcc", "se", "sa", "cu", "simd", "slot", "start", "end", "lanes"];
    assert!(
        lines[walks + 1..]
            .iter()
            .all(|line| keys.iter().all(|key| !line[key].is_null()) && line["kind"] == "wave")
    );
}

#[test]
fn a_plan_is_read_from_a_file_and_a_bad_one_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("faults.json");
    std::fs::write(&path, r#"[{"harvest": {"xcc": 0, "se": 1, "sa": 0, "cu": 3}}, {"fail_allocation": 2}]"#)
        .unwrap();
    let plan = FaultPlan::read(&path).unwrap();
    let harvest = Harvest { xcc: 0, se: 1, sa: 0, cu: 3 };
    assert_eq!(plan.faults, [Fault::Harvest(harvest), Fault::FailAllocation(2)]);
    std::fs::write(&path, r#"[{"explode": 1}]"#).unwrap();
    let Err(Error::FaultPlan { path: named, reason }) = FaultPlan::read(&path) else { panic!("accepted") };
    assert!(named.ends_with("faults.json") && reason.contains("explode"), "{named}: {reason}");
}

#[test]
fn a_harvested_unit_runs_nothing_and_the_others_keep_their_numbers() {
    let faults = vec![Fault::Harvest(Harvest { xcc: 0, se: 1, sa: 0, cu: 3 }), Fault::FailAllocation(2)];
    let options = DeviceOptions { faults: FaultPlan { faults }, ..DeviceOptions::default() };
    let rig = Rig::with(DeviceConfig::mi300x(), options, virtual_clock(), 1 << 30);
    let (mut queue, signal) = (rig.queue(16), rig.signal(1));
    queue.submit(&[dispatch(rig.kernel(3), [64 * 304 * 40, 1, 1], [64, 1, 1], signal)]);
    rig.wait(signal, 0);
    let waves = rig.waves();
    let units: std::collections::BTreeSet<u8> =
        waves.iter().filter(|wave| (wave.xcc, wave.se) == (0, 1)).map(|wave| wave.cu).collect();
    assert_eq!(units.into_iter().collect::<Vec<_>>(), [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    let allocations: Vec<bool> = (0..3).map(|_| rig.device.allocation_fails()).collect();
    assert_eq!(allocations, [false, true, false]);
}

#[test]
fn the_same_packets_on_a_virtual_clock_give_the_same_truth() {
    let run = |seed| {
        let options = DeviceOptions { seed, ..DeviceOptions::default() };
        let rig = Rig::with(DeviceConfig::mi300x(), options, virtual_clock(), 1 << 30);
        let (mut queue, signal, kernel) = (rig.queue(16), rig.signal(3), rig.kernel(3));
        for grid in [1000, 64_000, 77] {
            queue.submit(&[dispatch(kernel, [grid, 1, 1], [96, 1, 1], signal)]);
        }
        rig.wait(signal, 0);
        rig.waves()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
