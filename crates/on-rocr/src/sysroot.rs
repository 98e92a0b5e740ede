//! ROCm's userland in a folder outside the repository.
//!
//! It wraps `../shared/scripts/rocm-sysroot`, which unpacks Debian's ROCm 7.2 packages and runs programs on them. The
//! folder is `$WAVESCOPE_SYSROOT_DIR`, else `wavescope/` in the user's cache folder, with one sub-folder for each
//! profile.

use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Error;

/// What a sysroot holds; each contains the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// ROCr, aqlprofile, comgr, rocprofiler-register, the HIP runtime, rocminfo, headers (350 MB).
    Libs,
    /// The same with g++ and make (640 MB).
    Min,
    /// The same with hipcc and clang for the GPU (960 MB).
    Hip,
}

impl Profile {
    /// Its name, as the script spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Libs => "libs",
            Self::Min => "min",
            Self::Hip => "hip",
        }
    }
}

/// An unpacked userland.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysroot {
    folder: PathBuf,
    profile: Profile,
}

/// A failed attempt is not repeated within this time: every test of a run would wait for it again.
const RETRY_AFTER: Duration = Duration::from_secs(60);

impl Sysroot {
    /// The sysroot of `profile`, unpacked first if it is not there. Waits for another process that is at it.
    ///
    /// # Errors
    /// [`Error::NoScript`], [`Error::NoCache`], [`Error::Sysroot`], [`Error::FailedBefore`], [`Error::File`].
    pub fn ensure(profile: Profile) -> Result<Self, Error> {
        let sysroot = Self::of(profile)?;
        if sysroot.is_complete() {
            return Ok(sysroot);
        }
        let _lock = sysroot.lock()?;
        if sysroot.is_complete() {
            return Ok(sysroot);
        }
        let failure = sysroot.beside("failed");
        if let Some(reason) = recent(&failure) {
            return Err(Error::FailedBefore(reason));
        }
        sysroot.build(&[]).inspect_err(|error| {
            // Only spares others the wait; without the note they try for themselves.
            let _ = std::fs::write(&failure, error.to_string());
        })?;
        Ok(sysroot)
    }

    /// Unpacks the sysroot of `profile` where it is missing or of other versions; `options` go to the script.
    ///
    /// # Errors
    /// As [`ensure`](Self::ensure).
    pub fn build_with(profile: Profile, options: &[&str]) -> Result<Self, Error> {
        let sysroot = Self::of(profile)?;
        let _lock = sysroot.lock()?;
        sysroot.build(options)?;
        Ok(sysroot)
    }

    /// Where the sysroot of `profile` lies or would lie.
    ///
    /// # Errors
    /// [`Error::NoCache`].
    pub fn of(profile: Profile) -> Result<Self, Error> {
        Ok(Self { folder: cache()?.join(format!("sysroot-{}", profile.name())), profile })
    }

    /// Deletes it.
    ///
    /// # Errors
    /// [`Error::NoScript`], [`Error::Sysroot`].
    pub fn remove(&self) -> Result<(), Error> {
        run(Command::new(script()?).arg("--remove").arg(&self.folder))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of its libraries.
    pub fn libraries(&self) -> PathBuf {
        self.folder.join("usr/lib/x86_64-linux-gnu")
    }

    /// Its dynamic loader, which runs host programs on its libraries.
    pub fn loader(&self) -> PathBuf {
        self.folder.join("usr/lib64/ld-linux-x86-64.so.2")
    }

    fn is_complete(&self) -> bool {
        let stamp = std::fs::read_to_string(self.folder.join(".rocm-sysroot"));
        stamp.is_ok_and(|stamp| stamp.lines().any(|line| line.starts_with("complete ")))
    }

    fn build(&self, options: &[&str]) -> Result<(), Error> {
        let mut command = Command::new(script()?);
        run(command.arg(format!("--{}", self.profile.name())).args(options).arg(&self.folder))
    }

    /// A file beside the folder.
    fn beside(&self, extension: &str) -> PathBuf {
        self.folder.with_extension(extension)
    }

    fn lock(&self) -> Result<File, Error> {
        let path = self.beside("lock");
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(Error::file(parent))?;
        }
        let file = File::create(&path).map_err(Error::file(&path))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => eprintln!("waiting for {}", path.display()),
            Err(TryLockError::Error(error)) => return Err(Error::file(&path)(error)),
        }
        file.lock().map_err(Error::file(&path))?;
        Ok(file)
    }
}

/// The script that unpacks sysroots and runs programs on them.
///
/// # Errors
/// [`Error::NoScript`].
pub(crate) fn script() -> Result<PathBuf, Error> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = workspace.join("../shared/scripts/rocm-sysroot");
    if script.is_file() {
        Ok(script)
    } else {
        Err(Error::NoScript(PathBuf::from("../shared/scripts/rocm-sysroot")))
    }
}

/// The project's folder among the user's caches.
pub(crate) fn cache() -> Result<PathBuf, Error> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    cache_of(variable("WAVESCOPE_SYSROOT_DIR"), variable("XDG_CACHE_HOME"), variable("HOME"))
}

fn cache_of(own: Option<PathBuf>, xdg: Option<PathBuf>, home: Option<PathBuf>) -> Result<PathBuf, Error> {
    let set = |path: Option<PathBuf>| path.filter(|path| !path.as_os_str().is_empty());
    set(own)
        .or_else(|| set(xdg).map(|cache| cache.join("wavescope")))
        .or_else(|| set(home).map(|home| home.join(".cache/wavescope")))
        .ok_or(Error::NoCache)
}

/// What a file says, if it was written a moment ago.
fn recent(path: &Path) -> Option<String> {
    let age = path.metadata().ok()?.modified().ok()?.elapsed().ok()?;
    (age < RETRY_AFTER).then(|| std::fs::read_to_string(path).ok()).flatten()
}

/// Runs the script, passing on what it says; its last line is the reason of a failure.
fn run(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let fault = |source| Error::Run { program, source };
    let spawned = command.stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(fault)?;
    let mut reason = String::from("it said nothing");
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            eprintln!("{line}");
            reason = line;
        }
    }
    let program = command.get_program().to_string_lossy().into_owned();
    let status = child.wait().map_err(|source| Error::Run { program, source })?;
    if status.success() { Ok(()) } else { Err(Error::Sysroot { status, reason }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_variable_wins_over_the_cache_folders_and_empty_ones_do_not_count() {
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(cache_of(path("/a"), path("/b"), path("/c")).unwrap(), Path::new("/a"));
        assert_eq!(cache_of(path(""), path("/b"), path("/c")).unwrap(), Path::new("/b/wavescope"));
        assert_eq!(cache_of(None, None, path("/c")).unwrap(), Path::new("/c/.cache/wavescope"));
        assert!(matches!(cache_of(None, path(""), None), Err(Error::NoCache)));
    }

    #[test]
    fn failure_carries_the_scripts_last_words() {
        let error =
            run(Command::new("sh").args(["-c", "echo first >&2; echo packages are gone >&2; exit 3"]));
        let Err(Error::Sysroot { status, reason }) = error else { panic!("{error:?}") };
        assert_eq!((status.code(), reason.as_str()), (Some(3), "packages are gone"));
    }

    #[test]
    fn note_of_a_failure_counts_for_a_while_only() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("note");
        assert_eq!(recent(&note), None);
        std::fs::write(&note, "why").unwrap();
        assert_eq!(recent(&note).as_deref(), Some("why"));
        let past = std::time::SystemTime::now() - 2 * RETRY_AFTER;
        File::options().append(true).open(&note).unwrap().set_modified(past).unwrap();
        assert_eq!(recent(&note), None);
    }
}
