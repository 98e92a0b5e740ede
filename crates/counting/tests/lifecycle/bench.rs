//! C programs with a tool that counts, on both faces.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
pub(crate) use wavescope_hsa_intercept::Technique;
use wavescope_on_rocr::{Gpus, Library, Machine, Profile, not_run};

/// Longer than any program takes.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// What ROCr says when it goes down, with a number.
const LEAK: &str = "Warning: Resource leak detected by SharedSignalPool, ";

const GPU: &str = "gfx942";
const RUNTIME: Library = Library::Of { package: "wavescope-software-hsa", name: "hsa_runtime64" };
const TOOL: Library = Library::Example { package: "wavescope-counting", name: "count_waves" };

/// A folder with libraries, and programs built against them.
pub(crate) struct Bench {
    folder: TempDir,
    /// The real runtime's; without, programs run on the one of this workspace.
    machine: Option<Machine>,
    pub(crate) technique: Technique,
    pub(crate) tool: PathBuf,
    pub(crate) code: PathBuf,
}

/// How a program ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) printed: String,
    /// Signals that the real runtime still knew, each time it went down.
    pub(crate) leaks: Vec<u64>,
    /// What the tool wrote in the program's own process.
    pub(crate) records: Records,
}

/// The tool's lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Records {
    /// Dispatch and waves, in the order of delivery.
    pub(crate) dispatches: Vec<(u64, u64)>,
    /// What it said when the runtime went down.
    pub(crate) ends: Vec<String>,
}

impl Bench {
    pub(crate) fn in_process(technique: Technique) -> Self {
        Self::new(None, technique)
    }

    /// Checks on the real runtime; where it cannot be had, says why not.
    pub(crate) fn on_rocr(technique: Technique, check: impl FnOnce(&Self)) {
        let gpus: Gpus = GPU.parse().unwrap();
        match Machine::new(Profile::Libs, &gpus) {
            Ok(machine) => check(&Self::new(Some(machine), technique)),
            Err(error) => not_run(&error),
        }
    }

    fn new(machine: Option<Machine>, technique: Technique) -> Self {
        let folder = TempDir::new().unwrap();
        let runtime = RUNTIME.up_to_date().unwrap();
        std::os::unix::fs::symlink(runtime, folder.path().join("libhsa-runtime64.so.1")).unwrap();
        let code = folder.path().join("vectors.co");
        std::fs::write(&code, wavescope_workload::kernels::vectors(GPU).unwrap()).unwrap();
        Self { folder, machine, technique, tool: TOOL.up_to_date().unwrap(), code }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Compiles `c/NAME.c` without any warning.
    pub(crate) fn build(&self, name: &str, options: &[&str]) -> PathBuf {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lifecycle/c");
        self.build_from(&sources, name, options)
    }

    fn build_from(&self, sources: &Path, name: &str, options: &[&str]) -> PathBuf {
        let output = self.path(name);
        let built = Command::new("cc")
            .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
            .arg(suite())
            .args(options)
            .arg(sources.join(format!("{name}.c")))
            .arg("-o")
            .arg(&output)
            .arg(self.path("libhsa-runtime64.so.1"))
            .output()
            .unwrap();
        assert!(built.status.success(), "{name}.c: {}", String::from_utf8_lossy(&built.stderr));
        output
    }

    /// A tool of a hundred lines of C that makes every queue one of the runtime's intercept queues, with a hook that passes
    /// everything on.
    pub(crate) fn pass_through_tool(&self) -> PathBuf {
        self.build_from(&suite(), "batches_tool", &["-shared", "-fPIC"])
    }

    pub(crate) fn library(&self, name: &str) -> PathBuf {
        self.build(name, &["-shared", "-fPIC"])
    }

    /// A program on this face with the tool.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = match &self.machine {
            Some(machine) => machine.command(program),
            None => {
                let mut command = Command::new(program);
                command.env("LD_LIBRARY_PATH", self.folder.path());
                command.env("WAVESCOPE_GPU_TOPOLOGY", GPU.parse::<Gpus>().unwrap().folder().unwrap());
                command
            }
        };
        command.env("HSA_TOOLS_LIB", &self.tool).env("WAVESCOPE_OUTPUT", self.path("waves"));
        let technique = match self.technique {
            Technique::Runtime => "runtime",
            Technique::Doorbell => "doorbell",
        };
        command.env(Technique::VARIABLE, technique);
        command
    }

    /// The application in a mode.
    pub(crate) fn application(&self, mode: &str, library: Option<&Path>) -> Command {
        let program = self.path("application");
        if !program.exists() {
            self.build("application", &["-pthread", "-ldl"]);
        }
        let mut command = self.command(&program);
        command.arg(mode).arg(&self.code).args(library);
        command
    }

    /// Runs it to its end, which must come soon.
    pub(crate) fn run(&self, command: Command) -> Ended {
        self.start(command).end(SOON)
    }

    pub(crate) fn start(&self, mut command: Command) -> Running<'_> {
        let log = self.path("output");
        let output = std::fs::File::create(&log).unwrap();
        let errors = output.try_clone().unwrap();
        let child = command.stdout(output).stderr(errors).stdin(Stdio::null()).spawn().unwrap();
        Running { bench: self, child, what: format!("{command:?}") }
    }

    /// What the tool wrote in process `id`.
    fn records(&self, id: u32) -> Records {
        let text = std::fs::read_to_string(self.path(&format!("waves.{id}"))).unwrap_or_default();
        let (mut dispatches, mut ends) = (Vec::new(), Vec::new());
        // A line that is being written ends later.
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let pair = line.strip_prefix("dispatch ").and_then(|rest| rest.strip_suffix(" waves"));
            match pair.and_then(|rest| rest.split_once(": ")) {
                Some((id, waves)) => dispatches.push((id.parse().unwrap(), waves.parse().unwrap())),
                None => ends.push(line.to_owned()),
            }
        }
        Records { dispatches, ends }
    }

    /// How many processes the tool wrote for.
    pub(crate) fn files(&self) -> usize {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("waves.")).count()
    }
}

/// C programs of the software runtime, and what they have in common.
fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../software-hsa/tests/c")
}

/// A program under way.
pub(crate) struct Running<'a> {
    bench: &'a Bench,
    child: Child,
    what: String,
}

impl Running<'_> {
    /// What it printed so far, without the runtime's remark on signals that it still knows at its end: some are its own.
    pub(crate) fn printed(&self) -> String {
        let text = std::fs::read_to_string(self.bench.path("output")).unwrap();
        text.split_inclusive('\n').filter(|line| !line.starts_with(LEAK)).collect()
    }

    fn leaks(&self) -> Vec<u64> {
        let text = std::fs::read_to_string(self.bench.path("output")).unwrap();
        let counts = text.lines().filter_map(|line| line.strip_prefix(LEAK));
        counts.map(|rest| rest.split_once(' ').unwrap().0.parse().unwrap()).collect()
    }

    /// Waits until the tool has written `count` dispatches.
    pub(crate) fn wait_for(&self, count: usize) {
        let start = Instant::now();
        while self.bench.records(self.child.id()).dispatches.len() < count {
            assert!(start.elapsed() < SOON, "{}: too few dispatches\n{}", self.what, self.printed());
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    pub(crate) fn end(mut self, within: Duration) -> Ended {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break Some(status);
            }
            if start.elapsed() > within {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                break None;
            }
            std::thread::park_timeout(Duration::from_millis(2));
        };
        let printed = self.printed();
        let status = status.unwrap_or_else(|| panic!("{} hangs after:\n{printed}", self.what));
        let leaks = self.leaks();
        Ended { status, printed, leaks, records: self.bench.records(self.child.id()) }
    }
}

impl Ended {
    /// It left by itself, with this exit status.
    pub(crate) fn left_with(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{}\n{}", self.status, self.printed);
        self
    }

    /// Dispatches of 1, 2, ... `count` waves were counted, and right.
    pub(crate) fn counted(self, count: u64) -> Self {
        let mut dispatches = self.records.dispatches.clone();
        dispatches.sort_unstable();
        let expected: Vec<_> = (1..=count).map(|number| (number, number)).collect();
        assert_eq!(dispatches, expected, "{}", self.printed);
        self
    }

    /// The tool went down once, having seen as many.
    pub(crate) fn went_down_after(self, count: u64) -> Self {
        assert_eq!(self.records.ends, [format!("end: {count} seen, {count} counted")], "{}", self.printed);
        self
    }
}
