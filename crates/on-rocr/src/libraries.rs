//! The libraries that a machine needs of this workspace, built by cargo when they are needed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::Error;

/// Both libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Libraries {
    /// Preloaded; plays the kernel driver.
    pub(crate) driver: PathBuf,
    /// Loaded by the runtime; remembers its API table.
    pub(crate) tool: PathBuf,
}

/// Package and file name of each.
const DRIVER: (&str, &str) = ("wavescope-software-kfd", "libwavescope_software_kfd.so");
const TOOL: (&str, &str) = ("wavescope-on-rocr-tool", "libwavescope_on_rocr_tool.so");

impl Libraries {
    /// Builds what is not up to date.
    pub(crate) fn build() -> Result<Self, Error> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args([
                "build",
                "--quiet",
                "--message-format",
                "json",
                "--package",
                DRIVER.0,
                "--package",
                TOOL.0,
            ])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .stderr(Stdio::inherit());
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        let output = command.output().map_err(|source| Error::Run { program: "cargo".into(), source })?;
        if !output.status.success() {
            return Err(Error::Libraries(format!("cargo build: {}", output.status)));
        }
        let messages = String::from_utf8_lossy(&output.stdout);
        let library = |(_, name): (&str, &str)| {
            let found = messages.lines().find_map(|message| file_of(message, name));
            found.ok_or_else(|| Error::Libraries(format!("cargo build made no {name}")))
        };
        Ok(Self { driver: library(DRIVER)?, tool: library(TOOL)? })
    }
}

/// The file of this name in one message of cargo.
fn file_of(message: &str, name: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let is_named = |file: &&str| file.rsplit('/').next() == Some(name);
    let files = message["filenames"].as_array()?;
    files.iter().filter_map(serde_json::Value::as_str).find(is_named).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_is_found_among_other_messages() {
        let artifact =
            r#"{"reason":"compiler-artifact","filenames":["/t/debug/libwavescope_software_kfd.so"]}"#;
        let found = file_of(artifact, DRIVER.1);
        assert_eq!(found, Some(PathBuf::from("/t/debug/libwavescope_software_kfd.so")));
        for other in ["", "{}", r#"{"filenames":["/t/libother.rlib"]}"#] {
            assert_eq!(file_of(other, DRIVER.1), None);
        }
        assert_eq!(file_of(artifact, TOOL.1), None);
    }
}
