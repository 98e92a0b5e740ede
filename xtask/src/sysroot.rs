//! `cargo xtask sysroot`: the real ROCm userland, unmodified, in a folder outside the repository
//! ([`wavescope_on_rocr::Sysroot`]).

use anyhow::Result;
use clap::ValueEnum;
use wavescope_on_rocr::Sysroot;

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

impl From<Profile> for wavescope_on_rocr::Profile {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Libs => Self::Libs,
            Profile::Min => Self::Min,
            Profile::Hip => Self::Hip,
        }
    }
}

/// Builds or removes the sysroot and prints its path.
pub(crate) fn run(args: &Args) -> Result<()> {
    let profile = args.profile.into();
    if args.remove {
        Sysroot::of(profile)?.remove()?;
        return Ok(());
    }
    let options: &[&str] = if args.any_revision { &["--any-revision"] } else { &[] };
    let sysroot = Sysroot::build_with(profile, options)?;
    println!("{}", sysroot.folder().display());
    Ok(())
}
