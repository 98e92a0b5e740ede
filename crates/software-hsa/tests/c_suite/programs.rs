//! The programs, one test each.

use std::process::Command;

use crate::bench::{Bench, expected};

fn prints_what_it_prints_on_rocr(name: &str) {
    let bench = Bench::new();
    let program = bench.build(name, &[]);
    assert_eq!(bench.run(&program, &[], &[]), expected(name));
}

#[test]
fn queues() {
    prints_what_it_prints_on_rocr("queues");
}

#[test]
fn barriers() {
    prints_what_it_prints_on_rocr("barriers");
}

#[test]
fn signals() {
    prints_what_it_prints_on_rocr("signals");
}

#[test]
fn statuses() {
    prints_what_it_prints_on_rocr("statuses");
}

#[test]
fn restart() {
    prints_what_it_prints_on_rocr("restart");
}

#[test]
fn kernels_of_every_target() {
    let bench = Bench::new();
    let program = bench.build("kernels", &[]);
    for target in wavescope_workload::kernels::targets() {
        let code = bench.folder.path().join("vectors.co");
        std::fs::write(&code, wavescope_workload::kernels::vectors(target).unwrap()).unwrap();
        let printed = bench.run(&program, &[&code], &[("WAVESCOPE_GPU", target)]);
        assert_eq!(printed, expected("kernels"), "{target}");
    }
}

#[test]
fn tool_sees_the_batches_that_it_sees_on_rocr() {
    let bench = Bench::new();
    let program = bench.build("intercepted", &[]);
    let tool = bench.build("batches_tool", &["-shared", "-fPIC"]);
    for extra in ["0", "3"] {
        let environment = [("HSA_TOOLS_LIB", tool.to_str().unwrap()), ("BATCHES_TOOL_EXTRA", extra)];
        let printed = bench.run(&program, &[], &environment);
        assert_eq!(printed, expected(&format!("intercepted-{extra}")), "{extra} packets behind each");
    }
}

#[test]
fn tool_that_does_not_load_is_counted_for_the_next_one() {
    let bench = Bench::new();
    let program = bench.build("intercepted", &[]);
    let tool = bench.build("batches_tool", &["-shared", "-fPIC"]);
    let tools = format!("/no/such/tool.so \"{}\"", tool.display());
    let printed = bench.run(&program, &[], &[("HSA_TOOLS_LIB", &tools)]);
    assert!(printed.starts_with("tool: runtime version 3, 1 failed tools\n"), "{printed}");
}

#[test]
fn unusable_machine_is_one_clear_line_and_a_failed_hsa_init() {
    let bench = Bench::new();
    let program = bench.build("restart", &[]);
    let ran = Command::new(&program)
        .env("LD_LIBRARY_PATH", bench.folder.path())
        .env("WAVESCOPE_GPU", "gfx000")
        .output()
        .unwrap();
    assert!(!ran.status.success());
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(error.contains("gfx000") && error.lines().count() == 1, "{error}");
}
