//! Libraries of this workspace that programs load, built by cargo when they are needed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;
use crate::origin::Origin;

/// What cargo calls the folder of this program's profile.
const PROFILE_FOLDER: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

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
    /// Where another checkout put its own beside this program, this checkout builds into a folder of its own from then on.
    ///
    /// # Errors
    /// [`Error::Libraries`], [`Error::Run`].
    pub fn up_to_date(self) -> Result<PathBuf, Error> {
        let workspace = workspace();
        match output_folder() {
            Some(output) => self.up_to_date_in(&workspace, &output),
            None => self.build(&workspace, None),
        }
    }

    fn up_to_date_in(self, workspace: &Path, output: &Path) -> Result<PathBuf, Error> {
        let own = output.join(own_folder(workspace));
        if !own.is_dir() {
            let shared = output.join(self.place());
            match Origin::of(&shared, workspace, output) {
                Origin::Fresh => return Ok(shared),
                Origin::Stale => return self.build(workspace, None),
                // Cargo would pass it off as ours.
                Origin::Foreign => {}
            }
        }
        let library = own.join(PROFILE_FOLDER).join(self.place());
        match Origin::of(&library, workspace, &own) {
            Origin::Fresh => Ok(library),
            Origin::Stale | Origin::Foreign => self.build(workspace, Some(&own)),
        }
    }

    /// Path below cargo's folder.
    fn place(self) -> PathBuf {
        match self {
            Self::Of { name, .. } => PathBuf::from(format!("lib{name}.so")),
            Self::Example { name, .. } => PathBuf::from(format!("examples/lib{name}.so")),
        }
    }

    /// Has cargo build it, in a certain target folder or wherever cargo builds.
    fn build(self, workspace: &Path, target: Option<&Path>) -> Result<PathBuf, Error> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["build", "--quiet", "--message-format", "json"])
            .current_dir(workspace)
            .stderr(Stdio::inherit());
        match self {
            Self::Of { package, .. } => command.args(["--package", package]),
            Self::Example { package, name } => command.args(["--package", package, "--example", name]),
        };
        if let Some(target) = target {
            command.arg("--target-dir").arg(target);
        }
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

/// The checkout whose tests run. Cargo says at run time which it is; what it said at compile time may be of another checkout
/// with the same target folder, see [`Origin`].
fn workspace() -> PathBuf {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let running = package.and_then(|package| Some(package.parent()?.parent()?.to_owned()));
    let is_ours = |workspace: &PathBuf| workspace.join("crates/on-rocr/Cargo.toml").is_file();
    let found = running.filter(is_ours).unwrap_or_else(|| here.into());
    found.canonicalize().unwrap_or(found)
}

/// Name of the target folder that only the checkout in `workspace` uses.
fn own_folder(workspace: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    workspace.hash(&mut hasher);
    format!("on-rocr-{:016x}", hasher.finish())
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

    /// A checkout of one package whose library says where it was made.
    fn checkout(folder: &Path) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let manifest = "[package]\nname = \"shared\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n";
        let source =
            format!("#[unsafe(no_mangle)]\npub static ORIGIN: [u8; 16] = *b\"made in {name:>8}\";\n");
        std::fs::create_dir_all(folder.join("src")).unwrap();
        std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        std::fs::write(folder.join("src/lib.rs"), source).unwrap();
    }

    fn is_made_in(library: &Path, name: &str) -> bool {
        let mark = format!("made in {name:>8}");
        let bytes = std::fs::read(library).unwrap();
        bytes.windows(mark.len()).any(|window| window == mark.as_bytes())
    }

    /// Both checkouts are older than the library, so cargo takes the first one's for the second's.
    #[test]
    fn checkouts_that_share_a_target_folder_get_their_own_libraries() {
        let folder = tempfile::tempdir().unwrap();
        let [here, there, target] = ["here", "there", "target"].map(|name| folder.path().join(name));
        checkout(&here);
        checkout(&there);
        let output = target.join(PROFILE_FOLDER);
        let library = Library::Of { package: "shared", name: "shared" };
        let first = library.build(&there, Some(&target)).unwrap();
        assert_eq!(first, output.join("libshared.so"));
        assert_eq!(library.up_to_date_in(&there, &output).unwrap(), first);
        let ours = library.up_to_date_in(&here, &output).unwrap();
        assert!(is_made_in(&ours, "here") && !is_made_in(&ours, "there"), "{}", ours.display());
        assert!(is_made_in(&first, "there"));
        // Now cargo lists our sources beside the other's library.
        library.build(&here, Some(&target)).unwrap();
        let again = library.up_to_date_in(&here, &output).unwrap();
        assert!(is_made_in(&again, "here"), "{}", again.display());
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
