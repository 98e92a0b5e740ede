//! Runs the built `wavescope`.

use std::ffi::OsStr;
use std::process::Command;

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

#[expect(clippy::unwrap_used, reason = "a failing helper fails the test")]
/// Runs `wavescope` with `arguments` and waits for it.
pub(crate) fn wavescope<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_wavescope")).args(arguments).output().unwrap();
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
