//! Libraries of this workspace that programs load, built by cargo when they are needed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;

/// A library of this workspace, for programs to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// What a package makes.
    Of {
        /// Its name.
        package: &'static str,
        /// Name of the library, as in `libNAME.so`.
        name: &'static str,
    },
    /// An example of a package that is a library.
    Example {
        /// Name of the package.
        package: &'static str,
        /// Name of the example.
        name: &'static str,
    },
}

/// Preloaded; plays the kernel driver.
pub(crate) const DRIVER: Library =
    Library::Of { package: "wavescope-software-kfd", name: "wavescope_software_kfd" };
/// Loaded by the runtime; remembers its API table.
pub(crate) const TOOL: Library =
    Library::Of { package: "wavescope-on-rocr-tool", name: "wavescope_on_rocr_tool" };

impl Library {
    /// Where it is: beside this program, or where it is missing or older than its sources, built anew.
    ///
    /// # Errors
    /// [`Error::Libraries`], [`Error::Run`].
    pub fn up_to_date(self) -> Result<PathBuf, Error> {
        let known = output_folder().and_then(|folder| fresh(&folder.join(self.place()))).map(Ok);
        known.unwrap_or_else(|| self.build())
    }

    /// Path below cargo's folder.
    fn place(self) -> PathBuf {
        match self {
            Self::Of { name, .. } => PathBuf::from(format!("lib{name}.so")),
            Self::Example { name, .. } => PathBuf::from(format!("examples/lib{name}.so")),
        }
    }

    fn build(self) -> Result<PathBuf, Error> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["build", "--quiet", "--message-format", "json"])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .stderr(Stdio::inherit());
        match self {
            Self::Of { package, .. } => command.args(["--package", package]),
            Self::Example { package, name } => command.args(["--package", package, "--example", name]),
        };
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        let output = command.output().map_err(|source| Error::Run { program: "cargo".into(), source })?;
        if !output.status.success() {
            return Err(Error::Libraries(format!("cargo build: {}", output.status)));
        }
        let messages = String::from_utf8_lossy(&output.stdout);
        let place = self.place();
        let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let found = messages.lines().find_map(|message| file_of(message, name));
        found.ok_or_else(|| Error::Libraries(format!("cargo build made no {name}")))
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
        let found = file_of(artifact, "libwavescope_software_kfd.so");
        assert_eq!(found, Some(PathBuf::from("/t/debug/libwavescope_software_kfd.so")));
        for other in ["", "{}", r#"{"filenames":["/t/libother.rlib"]}"#] {
            assert_eq!(file_of(other, "libwavescope_software_kfd.so"), None);
        }
        assert_eq!(file_of(artifact, "libwavescope_on_rocr_tool.so"), None);
    }
}
