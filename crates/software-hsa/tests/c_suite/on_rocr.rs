//! The same programs on ROCr itself, above the kernel driver's face of the software GPU: the expected texts are true.

use std::path::Path;
use std::process::Command;

use wavescope_on_rocr::{Gpus, Machine, Profile, not_run};

use crate::bench::{Bench, expected};

/// Runs `command` and returns what it printed.
fn output(mut command: Command) -> String {
    let ran = command.output().unwrap();
    let printed = String::from_utf8(ran.stdout).unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command:?}: {}\n{printed}{errors}", ran.status);
    printed
}

fn machine() -> Option<Machine> {
    let gpus: Gpus = "gfx942".parse().unwrap();
    Machine::new(Profile::Libs, &gpus).inspect_err(not_run).ok()
}

#[test]
fn programs_print_the_same_on_rocr() {
    let Some(machine) = machine() else { return };
    let bench = Bench::new();
    for name in ["queues", "barriers", "signals", "statuses", "restart"] {
        let program = bench.build(name, &[]);
        assert_eq!(output(machine.command(program)), expected(name), "{name}");
    }
    let code = bench.folder.path().join("vectors.co");
    std::fs::write(&code, wavescope_workload::kernels::vectors("gfx942").unwrap()).unwrap();
    let mut kernels = machine.command(bench.build("kernels", &[]));
    kernels.arg(code);
    assert_eq!(output(kernels), expected("kernels"));
}

#[test]
fn tool_sees_the_same_batches_on_rocr() {
    let Some(machine) = machine() else { return };
    let bench = Bench::new();
    let program = bench.build("intercepted", &[]);
    let tool = bench.build("batches_tool", &["-shared", "-fPIC"]);
    for extra in ["0", "3"] {
        let with_tool = |program: &Path| {
            let mut command = machine.command(program);
            command.env("HSA_TOOLS_LIB", &tool).env("BATCHES_TOOL_EXTRA", extra);
            command
        };
        assert_eq!(output(with_tool(&program)), expected(&format!("intercepted-{extra}")), "{extra}");
    }
}
