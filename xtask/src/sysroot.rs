//! `cargo xtask sysroot`: the real ROCm userland, unmodified, in a folder outside the repository.
//!
//! It wraps `../shared/scripts/rocm-sysroot`, which unpacks Debian's ROCm 7.2 packages and can run programs on
//! them. The folder is `$WAVESCOPE_SYSROOT_DIR`, else `wavescope/` in the user's cache folder, with one
//! sub-folder for each profile; `--remove` deletes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::{paths, process};

/// Options of `sysroot`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How much to unpack
    #[arg(long, value_enum, default_value_t = Profile::Libs)]
    profile: Profile,
    /// Take another revision of the same release where the pinned one is gone
    #[arg(long)]
    any_revision: bool,
    /// Delete the folder instead
    #[arg(long)]
    remove: bool,
}

/// What a sysroot holds; each contains the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// ROCr, aqlprofile, comgr, rocprofiler-register, the HIP runtime, rocminfo, headers (350 MB)
    Libs,
    /// The same with g++ and make (640 MB)
    Min,
    /// The same with hipcc and clang for the GPU (960 MB)
    Hip,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Self::Libs => "libs",
            Self::Min => "min",
            Self::Hip => "hip",
        }
    }
}

/// Builds or removes the sysroot and prints its path.
pub(crate) fn run(args: &Args) -> Result<()> {
    let folder = folder(args.profile)?;
    if args.remove {
        return process::run(Command::new(script()?).arg("--remove").arg(&folder));
    }
    build(args.profile, args.any_revision)?;
    println!("{}", folder.display());
    Ok(())
}

/// The sysroot of `profile`, built if it is not there yet.
///
/// # Errors
/// Says why there is none: the script is absent, or packages cannot be had. Tests print it after `NOT RUN`.
pub(crate) fn ensure(profile: Profile) -> Result<PathBuf> {
    build(profile, false)?;
    folder(profile)
}

/// The script that builds sysroots and runs programs on them.
pub(crate) fn script() -> Result<PathBuf> {
    let shared = paths::shared().context("needs ../shared/scripts/rocm-sysroot, and ../shared is not there")?;
    let script = shared.join("scripts/rocm-sysroot");
    if !script.is_file() {
        bail!("{} is not there", script.display());
    }
    Ok(script)
}

fn build(profile: Profile, any_revision: bool) -> Result<()> {
    let folder = folder(profile)?;
    let mut command = Command::new(script()?);
    command.arg(format!("--{}", profile.name()));
    if any_revision {
        command.arg("--any-revision");
    }
    process::run(command.arg(&folder))
}

fn folder(profile: Profile) -> Result<PathBuf> {
    let cache = cache(
        std::env::var_os("WAVESCOPE_SYSROOT_DIR").as_deref().map(Path::new),
        std::env::var_os("XDG_CACHE_HOME").as_deref().map(Path::new),
        std::env::var_os("HOME").as_deref().map(Path::new),
    )?;
    Ok(cache.join(format!("sysroot-{}", profile.name())))
}

fn cache(own: Option<&Path>, xdg: Option<&Path>, home: Option<&Path>) -> Result<PathBuf> {
    let set = |path: Option<&Path>| path.filter(|path| !path.as_os_str().is_empty()).map(Path::to_owned);
    set(own)
        .or_else(|| set(xdg).map(|cache| cache.join("wavescope")))
        .or_else(|| set(home).map(|home| home.join(".cache/wavescope")))
        .context("no folder for the sysroot: set WAVESCOPE_SYSROOT_DIR, XDG_CACHE_HOME or HOME")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_variable_wins_over_the_cache_folders_and_empty_ones_do_not_count() {
        let path = |text: &'static str| Some(Path::new(text));
        assert_eq!(cache(path("/a"), path("/b"), path("/c")).unwrap(), Path::new("/a"));
        assert_eq!(cache(path(""), path("/b"), path("/c")).unwrap(), Path::new("/b/wavescope"));
        assert_eq!(cache(None, None, path("/c")).unwrap(), Path::new("/c/.cache/wavescope"));
        assert!(cache(None, path(""), None).is_err());
    }
}
