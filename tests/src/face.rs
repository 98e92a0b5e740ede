//! One test, both faces: the runtime in this process, and the real one above the software GPU in a process of its own.

use std::path::PathBuf;
use std::process::Command;

use wavescope_aql_profile::Choice;
use wavescope_hsa_intercept::Technique;
use wavescope_on_rocr::{Gpus, Machine, Profile, not_run};

use crate::Bed;

/// Targets that have kernels and a topology.
pub const TARGETS: [&str; 5] = ["gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1201"];

/// Names the machine in the process that runs on the real runtime.
const MACHINE: &str = "WAVESCOPE_TESTS_MACHINE";
/// Where the software GPU puts its placement log.
const PLACEMENT: &str = "WAVESCOPE_GPU_TRUTH";

/// How a test runs on the real runtime.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// How queues are intercepted.
    pub technique: Technique,
    /// Who makes the packets.
    pub programs: Choice,
}

/// What a process on the real runtime knows of its machine.
pub(crate) struct Inside {
    pub(crate) topology: PathBuf,
    pub(crate) placement: PathBuf,
    pub(crate) technique: Technique,
    pub(crate) programs: Choice,
}

/// Runs `check` on machines like `gfx942` or `gfx942-x2` of the in-process runtime.
pub fn in_process(machines: &[&str], technique: Technique, check: impl Fn(&Bed)) {
    for machine in machines {
        println!("{machine} in process");
        check(&Bed::in_process(machine, technique));
    }
}

/// Runs `check` on the real runtime, for each machine in a process of its own: this very program, told to run `test` of
/// `module` only. Where the runtime cannot be had it says `NOT RUN` and why.
pub fn on_rocr(module: &str, test: &str, machines: &[&str], way: Way, check: impl Fn(&Bed)) {
    // The test runner's names begin inside the crate.
    let inside = module.split_once("::").map_or(module, |(_, inside)| inside);
    let test = format!("{inside}::{test}");
    if let Some(machine) = std::env::var_os(MACHINE) {
        let gpus: Gpus = machine.to_string_lossy().parse().expect("a name of GPUs");
        let inside = Inside {
            topology: gpus.folder().expect("the folder that the process was started with"),
            placement: std::env::var_os(PLACEMENT).expect("a placement log").into(),
            technique: way.technique,
            programs: way.programs,
        };
        return check(&Bed::on_runtime(&inside));
    }
    for name in machines {
        let gpus: Gpus = name.parse().expect("a name of GPUs");
        match Machine::new(Profile::Libs, &gpus) {
            Ok(machine) => run(&machine, name, &test),
            Err(error) => return not_run(&error),
        }
    }
}

fn run(machine: &Machine, name: &str, test: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let mut command: Command = machine.command_with_table(program);
    command.args(["--exact", test, "--nocapture"]);
    command.env(MACHINE, name).env(PLACEMENT, folder.path().join("placement.jsonl"));
    let status = command.status().expect("the sysroot's loader runs");
    assert!(status.success(), "{test} failed on the real runtime with {name}: {status}");
}

/// Defines tests that hold on both faces, on each of the machines named.
///
/// `in_process` and `on_rocr` use queue fronts and our own packets; `.._with_runtime_queues` the runtime's intercept queues;
/// `on_rocr_with_native_packets` those of the installed packet library.
#[macro_export]
macro_rules! on_both_faces {
    ($($(#[$doc:meta])* fn $name:ident($bed:ident on $machines:expr) $body:block)*) => { $(
        $(#[$doc])*
        mod $name {
            use super::*;
            use wavescope_aql_profile::Choice::{Builtin, Native};
            use wavescope_hsa_intercept::Technique::{Doorbell, Runtime};

            fn check($bed: &wavescope_tests::Bed) $body

            #[test]
            fn in_process() {
                wavescope_tests::in_process(&$machines, Doorbell, check);
            }

            #[test]
            fn in_process_with_runtime_queues() {
                wavescope_tests::in_process(&$machines, Runtime, check);
            }

            #[test]
            fn on_rocr() {
                let way = wavescope_tests::Way { technique: Doorbell, programs: Builtin };
                wavescope_tests::on_rocr(module_path!(), "on_rocr", &$machines, way, check);
            }

            #[test]
            fn on_rocr_with_runtime_queues() {
                let way = wavescope_tests::Way { technique: Runtime, programs: Builtin };
                let test = "on_rocr_with_runtime_queues";
                wavescope_tests::on_rocr(module_path!(), test, &$machines, way, check);
            }

            #[test]
            fn on_rocr_with_native_packets() {
                let way = wavescope_tests::Way { technique: Doorbell, programs: Native };
                let test = "on_rocr_with_native_packets";
                wavescope_tests::on_rocr(module_path!(), test, &$machines, way, check);
            }
        }
    )* };
}
