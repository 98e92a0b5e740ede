//! The library under its real name, and C programs built and run against it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longer than any program takes.
const SOON: Duration = Duration::from_secs(60);

/// A folder with the library under its real name, and programs built against it.
pub(crate) struct Bench {
    pub(crate) folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        std::os::unix::fs::symlink(library(), folder.path().join("libhsa-runtime64.so.1")).unwrap();
        Self { folder }
    }

    /// Compiles `tests/c/NAME.c`, as C11 without any warning.
    pub(crate) fn build(&self, name: &str, extra: &[&str]) -> PathBuf {
        let source = sources().join(format!("{name}.c"));
        let output = self.folder.path().join(name);
        let built = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"])
            .args(extra)
            .arg(&source)
            .arg("-o")
            .arg(&output)
            .arg(self.folder.path().join("libhsa-runtime64.so.1"))
            .output()
            .unwrap();
        assert!(built.status.success(), "{name}.c: {}", String::from_utf8_lossy(&built.stderr));
        output
    }

    /// Runs a program on the library and returns what it printed.
    pub(crate) fn run(&self, program: &Path, arguments: &[&Path], environment: &[(&str, &str)]) -> String {
        let mut command = Command::new(program);
        command.env_remove("HSA_TOOLS_LIB").env("LD_LIBRARY_PATH", self.folder.path());
        let log = self.folder.path().join("output");
        let output = std::fs::File::create(&log).unwrap();
        let mut child =
            command.args(arguments).envs(environment.iter().copied()).stdout(output).spawn().unwrap();
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if start.elapsed() > SOON {
                child.kill().unwrap();
                break None;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        };
        let text = std::fs::read_to_string(log).unwrap();
        let status = status.unwrap_or_else(|| panic!("{} hangs after:\n{text}", program.display()));
        assert!(status.success(), "{}: {status}\n{text}", program.display());
        text
    }
}

/// The cdylib: cargo puts it beside the test program.
fn library() -> PathBuf {
    let library = std::env::current_exe().unwrap().with_file_name("libhsa_runtime64.so");
    assert!(library.exists(), "{} was not built", library.display());
    library
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c")
}

/// What a program must print.
pub(crate) fn expected(name: &str) -> String {
    std::fs::read_to_string(sources().join(format!("{name}.expected"))).unwrap()
}
