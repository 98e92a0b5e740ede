//! Programs of the ROCm userland itself, and of HIP.

use std::path::Path;
use std::process::Command;

use wavescope_on_rocr::{Gpus, Machine, Profile, not_run};

use crate::rig::TARGETS;

fn machine(profile: Profile, gpus: &str) -> Option<Machine> {
    let gpus: Gpus = gpus.parse().unwrap();
    Machine::new(profile, &gpus).inspect_err(not_run).ok()
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Values of a field of rocminfo's list, agent by agent.
fn field<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix("  ")?.strip_prefix(name)).map(str::trim).collect()
}

// Compute units as AMD's data sheets give them; the names are those of libdrm's `amdgpu.ids`.
#[test]
fn rocminfo_lists_each_target() {
    let wanted = [
        ("gfx942", "304", "AMD Instinct MI300X"),
        ("gfx90a", "104", "AMD Instinct MI210"),
        ("gfx950", "256", "AMD Instinct MI350X"),
        ("gfx1100", "96", "AMD Radeon RX 7900 XTX"),
        ("gfx1201", "64", "AMD Radeon AI PRO R9700"),
    ];
    for (target, compute_units, name) in wanted {
        let Some(machine) = machine(Profile::Libs, target) else { return };
        let text = output(&mut machine.command_in_root("rocminfo", &[]));
        let gpu = |values: Vec<&str>| values.get(1).copied().unwrap_or_default().to_owned();
        assert_eq!(gpu(field(&text, "Name:")), target);
        assert_eq!(gpu(field(&text, "Compute Unit:")), compute_units, "{target}");
        assert_eq!(gpu(field(&text, "Marketing Name:")), name);
    }
}

#[test]
fn rocminfo_lists_a_box_of_eight() {
    let Some(machine) = machine(Profile::Libs, "gfx942-x8") else { return };
    let text = output(&mut machine.command_in_root("rocminfo", &[]));
    assert_eq!(field(&text, "Name:")[1..], ["gfx942"; 8]);
    assert_eq!(field(&text, "Compute Unit:")[1..], ["304"; 8]);
    let mut places = field(&text, "BDFID:");
    places.dedup();
    assert_eq!(places.len(), 9, "{places:?}");
}

/// Compiles a HIP program of `tests/programs` for all targets; `None` if there is no compiler to be had.
fn hip_program(name: &str, folder: &Path) -> Option<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let binds = [(folder, "/mnt/out"), (source.as_path(), "/mnt/programs")];
    let mut compile = machine(Profile::Hip, TARGETS[0])?.command_in_root("hipcc", &binds);
    let (input, output_file) = (format!("/mnt/programs/{name}.hip"), format!("/mnt/out/{name}"));
    compile.args(["-O1", "-o", &output_file, &input]);
    // Without a target hipcc asks rocminfo for one.
    compile.args(TARGETS.map(|target| format!("--offload-arch={target}")));
    output(&mut compile);
    Some(())
}

#[test]
fn hip_vector_addition_runs_to_the_end_on_each_target() {
    let folder = tempfile::tempdir().unwrap();
    let Some(()) = hip_program("vector_add", folder.path()) else { return };
    for target in TARGETS {
        let Some(machine) = machine(Profile::Hip, target) else { return };
        let binds = [(folder.path(), "/mnt/out")];
        let text = output(&mut machine.command_in_root("/mnt/out/vector_add", &binds));
        let start = format!("{target:.6} done in time");
        assert!(text.starts_with(&start), "{target}: {text}");
    }
}

#[test]
fn hip_features_beyond_plain_memory_work_on_one_gpu_and_several() {
    let folder = tempfile::tempdir().unwrap();
    let Some(()) = hip_program("features", folder.path()) else { return };
    // Between two MI300X HIP picks an engine that ROCr refuses; in a box of eight the driver recommends one.
    for target in ["gfx942-x8", "gfx90a", "gfx950", "gfx1100-x2", "gfx1201"] {
        let Some(machine) = machine(Profile::Hip, target) else { return };
        let binds = [(folder.path(), "/mnt/out")];
        let text = output(&mut machine.command_in_root("/mnt/out/features", &binds));
        assert_eq!(text.matches(": works\n").count(), 6, "{target}: {text}");
    }
}
