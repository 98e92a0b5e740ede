//! The preloaded library that plays the kernel driver, built by cargo when it is needed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::Error;

const PACKAGE: &str = "wavescope-software-kfd";
const LIBRARY: &str = "libwavescope_software_kfd.so";

/// Builds the library, if it is not up to date, and returns its path. `WAVESCOPE_KFD_LIBRARY` names a ready one.
pub(crate) fn library() -> Result<PathBuf, Error> {
    if let Some(path) = std::env::var_os("WAVESCOPE_KFD_LIBRARY").filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet", "--message-format", "json", "--package", PACKAGE])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .stderr(Stdio::inherit());
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let output = command.output().map_err(|source| Error::Run { program: "cargo".into(), source })?;
    if !output.status.success() {
        return Err(Error::Driver(format!("cargo build: {}", output.status)));
    }
    let found = String::from_utf8_lossy(&output.stdout).lines().find_map(library_of);
    found.ok_or_else(|| Error::Driver(format!("cargo build made no {LIBRARY}")))
}

/// The library among the files of one message of cargo.
fn library_of(message: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let files = message["filenames"].as_array()?;
    let name = |file: &&str| file.rsplit('/').next() == Some(LIBRARY);
    files.iter().filter_map(serde_json::Value::as_str).find(name).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_is_found_among_other_messages() {
        let artifact =
            r#"{"reason":"compiler-artifact","filenames":["/t/debug/libwavescope_software_kfd.so"]}"#;
        assert_eq!(library_of(artifact), Some(PathBuf::from("/t/debug/libwavescope_software_kfd.so")));
        for other in ["", "{}", r#"{"filenames":["/t/libother.rlib"]}"#] {
            assert_eq!(library_of(other), None);
        }
    }
}
