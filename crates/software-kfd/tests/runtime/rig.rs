//! What the tests stand on.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hsa_sys::HsaApiTable;
use wavescope_on_rocr::{Gpus, Machine, Place, Profile, not_run, rerun, rerun_with, runtime_table};
use wavescope_workload::{Application, Gpu, Kernel, Module, kernels};

/// Targets that have kernels and a topology.
pub(crate) const TARGETS: [&str; 5] = ["gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1201"];

/// Longer than anything here takes, so that a hang fails.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// Runs a test body on the real runtime, once for each machine. `module` and `name` say which test this is.
pub(crate) fn on_runtime(machines: &[&str], module: &str, name: &str, body: impl FnOnce(&Rig)) {
    let test = test_name(module, name);
    for machine in machines {
        match rerun(&test, Profile::Libs, &machine.parse().unwrap()).unwrap() {
            Place::Outside => {}
            Place::OnRuntime => return body(&Rig::new()),
        }
    }
}

/// As [`on_runtime`] on one machine, with a variable of the environment. True in the test runner's process after the
/// body has passed on the real runtime.
pub(crate) fn on_runtime_with(
    machine: &str,
    (variable, value): (&str, &Path),
    module: &str,
    name: &str,
    body: impl FnOnce(&Rig),
) -> bool {
    let gpus: Gpus = machine.parse().unwrap();
    if let Err(error) = Machine::new(Profile::Libs, &gpus) {
        not_run(&error);
        return false;
    }
    let prepare = |command: &mut Command| {
        command.env(variable, value);
    };
    let place = rerun_with(&test_name(module, name), Profile::Libs, &gpus, prepare).unwrap();
    if place == Place::OnRuntime {
        body(&Rig::new());
    }
    place == Place::Outside
}

/// As [`on_runtime`], on a machine with one GPU whose node properties are changed.
pub(crate) fn on_changed_gpu(
    target: &str,
    change: impl Fn(&str) -> String,
    module: &str,
    name: &str,
    body: impl FnOnce(&Rig),
) {
    let folder = tempfile::tempdir().unwrap();
    let preset = target.parse::<Gpus>().unwrap().folder().unwrap();
    copy_folder(&preset, folder.path());
    let properties = folder.path().join("nodes/1/properties");
    let text = std::fs::read_to_string(&properties).unwrap();
    let changed: String = text.lines().map(|line| change(line) + "\n").collect();
    assert_ne!(text, changed);
    std::fs::write(properties, changed).unwrap();
    let machine = Gpus::Folder(folder.path().to_owned());
    if rerun(&test_name(module, name), Profile::Libs, &machine).unwrap() == Place::OnRuntime {
        body(&Rig::new());
    }
}

/// The test runner's names begin inside the crate.
fn test_name(module: &str, name: &str) -> String {
    let inside = module.split_once("::").map_or(module, |(_, inside)| inside);
    format!("{inside}::{name}")
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_folder(&from, &to);
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}

/// An application on the real runtime.
pub(crate) struct Rig {
    pub(crate) application: Application,
    pub(crate) table: *const HsaApiTable,
}

impl Rig {
    fn new() -> Self {
        let table = runtime_table().unwrap();
        // SAFETY: the runtime's own table, which `runtime_table` keeps alive to the end of the process; the tests
        // replace no entry.
        let application = unsafe { Application::open(table) }.unwrap();
        Self { application, table }
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        &self.application.gpus()[0]
    }

    /// Kernels of the workload on a GPU.
    pub(crate) fn vectors(&self, gpu: &Gpu) -> Module {
        self.application.load(gpu, kernels::vectors(gpu.target()).unwrap()).unwrap()
    }

    /// The cheapest kernel, with the module that it lives in.
    pub(crate) fn empty(&self) -> (Module, Kernel) {
        let module = self.vectors(self.gpu());
        let kernel = module.kernel("empty").unwrap();
        (module, kernel)
    }
}

/// Calls an entry of the table and expects success.
macro_rules! hsa {
    ($rig:expr, $part:ident.$entry:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: the table lives to the end of the process.
        let part = unsafe { (*$rig.table).$part };
        // SAFETY: parts live as long as the table.
        let function = unsafe { (*part).$entry }.unwrap();
        // SAFETY: the entry has the type of the function of its name; the test passes what it demands.
        let status = unsafe { function($($argument),*) };
        assert_eq!(status, hsa_sys::HSA_STATUS_SUCCESS, stringify!($entry));
    }};
}
pub(crate) use hsa;
