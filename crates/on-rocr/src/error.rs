//! Why a program cannot run on the real runtime.

use std::path::PathBuf;
use std::process::ExitStatus;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The script that unpacks ROCm's userland is not there.
    #[error("needs {script}, which is not there", script = .0.display())]
    NoScript(PathBuf),
    /// No place for the userland.
    #[error("no folder for the ROCm userland: set WAVESCOPE_SYSROOT_DIR, XDG_CACHE_HOME or HOME")]
    NoCache,
    /// The userland cannot be unpacked: packages are gone, no network, not root.
    #[error("the ROCm userland cannot be built ({status}): {reason}")]
    Sysroot {
        /// How the script ended.
        status: ExitStatus,
        /// The last thing that it said.
        reason: String,
    },
    /// An earlier attempt of the same test run failed.
    #[error("the ROCm userland could not be built a moment ago: {0}")]
    FailedBefore(String),
    /// The libraries of this workspace that a machine needs cannot be built.
    #[error("the software GPU's libraries cannot be built: {0}")]
    Libraries(String),
    /// The real runtime's table is not to be had in this process.
    #[error("no API table: {0}")]
    NoTable(String),
    /// A name of GPUs that means nothing.
    #[error("{name} is neither a topology folder nor a target with a number of GPUs like gfx942-x8")]
    UnknownGpus {
        /// The name.
        name: String,
    },
    /// A topology that cannot be multiplied.
    #[error("{path}: {what}", path = .path.display())]
    Topology {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A file or folder.
    #[error("{path}", path = .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A program that cannot be started.
    #[error("cannot run {program}")]
    Run {
        /// Its name.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The test failed on the real runtime.
    #[error("{test} failed on the real runtime: {status}")]
    Test {
        /// Name of the test.
        test: String,
        /// How its process ended.
        status: ExitStatus,
    },
}

impl Error {
    /// With all causes, in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }
}
