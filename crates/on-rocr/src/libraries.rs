//! The libraries that a machine needs of this workspace, built by cargo when they are needed.

use std::path::{Path, PathBuf};
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
    /// The libraries beside this program, or where one is missing or older than its sources, built anew.
    pub(crate) fn up_to_date() -> Result<Self, Error> {
        let folder = output_folder();
        let known = |(_, name): (&str, &str)| folder.as_ref().and_then(|folder| fresh(&folder.join(name)));
        match (known(DRIVER), known(TOOL)) {
            (Some(driver), Some(tool)) => Ok(Self { driver, tool }),
            _ => Self::build(),
        }
    }

    fn build() -> Result<Self, Error> {
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

/// Where cargo puts what it makes: this program's folder, or the one above for a test program.
fn output_folder() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    let above = folder.file_name().is_some_and(|name| name == "deps" || name == "examples");
    if above { folder.parent().map(Path::to_owned) } else { Some(folder.to_owned()) }
}

/// The library, if it is newer than all that it was made from: cargo lists the sources in a file beside it. Asking cargo
/// itself takes a second and waits for other builds.
fn fresh(library: &Path) -> Option<PathBuf> {
    let built = library.metadata().ok()?.modified().ok()?;
    let list = std::fs::read_to_string(library.with_extension("d")).ok()?;
    let (_, sources) = list.split_once(": ")?;
    let is_older = |path: &str| {
        let changed = Path::new(path).metadata().and_then(|metadata| metadata.modified());
        changed.is_ok_and(|changed| changed < built)
    };
    sources.split_ascii_whitespace().all(is_older).then(|| library.to_owned())
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
    fn library_is_fresh_until_one_of_its_sources_changes_or_goes() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        assert_eq!(fresh(&file("lib.so")), None);
        for name in ["a.rs", "b.rs", "lib.so"] {
            std::fs::write(file(name), "").unwrap();
        }
        let list = [file("lib.so"), file("a.rs"), file("b.rs")].map(|path| path.display().to_string());
        std::fs::write(file("lib.d"), format!("{}: {} {}\n", list[0], list[1], list[2])).unwrap();
        let touch = |name: &str, seconds: u64| {
            let time = std::time::SystemTime::now() - std::time::Duration::from_secs(seconds);
            std::fs::File::options().append(true).open(file(name)).unwrap().set_modified(time).unwrap();
        };
        ["a.rs", "b.rs"].iter().for_each(|name| touch(name, 20));
        touch("lib.so", 10);
        assert_eq!(fresh(&file("lib.so")), Some(file("lib.so")));
        touch("b.rs", 5);
        assert_eq!(fresh(&file("lib.so")), None);
        touch("b.rs", 20);
        std::fs::remove_file(file("a.rs")).unwrap();
        assert_eq!(fresh(&file("lib.so")), None);
    }

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
