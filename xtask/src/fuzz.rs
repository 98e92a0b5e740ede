//! `cargo xtask fuzz [--seconds N]`: the fuzz targets, seeded from the golden sets.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::paths;
use crate::process::run as execute;
use crate::steps::Done;

/// The targets of `fuzz/Cargo.toml`, each with whether chunks are its seeds.
const TARGETS: [(&str, Seeds); 3] =
    [("tokens", Seeds::Chunks), ("decode", Seeds::ChunksWithOptions), ("isa", Seeds::CodeObjects)];

/// What a target's corpus begins with.
#[derive(Clone, Copy)]
enum Seeds {
    Chunks,
    /// Three bytes of options in front: see `fuzz/README.md`.
    ChunksWithOptions,
    /// One byte that chooses the target in front.
    CodeObjects,
}

/// Seconds for each target in `ci --long`.
pub(crate) const CI_SECONDS: u32 = 30;

/// Bytes of the longest input.
const LONGEST: u32 = 8192;

/// Options of `fuzz`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long each target runs
    #[arg(long, default_value_t = CI_SECONDS)]
    seconds: u32,
}

/// Runs each target; says loudly why where that is not possible.
pub(crate) fn run(args: &Args) -> Result<()> {
    if let Done::NotRun(reason) = run_all(args.seconds)? {
        println!("NOT RUN: {reason}");
    }
    Ok(())
}

/// Runs each target for so many seconds.
///
/// # Errors
/// A target does not build, or found something.
pub(crate) fn run_all(seconds: u32) -> Result<Done> {
    if execute(&mut fuzz(["--version"])).is_err() {
        return Ok(Done::NotRun("cargo-fuzz or a nightly toolchain is not installed".into()));
    }
    for (target, seeds) in TARGETS {
        let corpus = paths::root().join("fuzz/corpus").join(target);
        seed(&corpus, seeds)?;
        let mut command = fuzz(["run", target]);
        command
            .arg("--")
            .arg(format!("-max_total_time={seconds}"))
            .args(["-timeout=30", "-rss_limit_mb=2048"])
            // Long inputs cost runs and find nothing that short ones do not.
            .arg(format!("-max_len={LONGEST}"));
        execute(&mut command)?;
    }
    Ok(Done::Passed)
}

/// `cargo +nightly fuzz ...`; the toolchain is named to rustup, whose `cargo` must be asked and not the one that
/// runs us.
fn fuzz<const N: usize>(args: [&str; N]) -> Command {
    let mut command = Command::new("cargo");
    command.env("RUSTUP_TOOLCHAIN", "nightly").arg("fuzz").args(args);
    command
}

/// Copies chunks or code objects into a corpus.
fn seed(corpus: &Path, seeds: Seeds) -> Result<()> {
    std::fs::create_dir_all(corpus).with_context(|| corpus.display().to_string())?;
    let shared = paths::shared().map(|shared| shared.join("fixtures/sqtt"));
    let root = shared.unwrap_or_else(|| paths::root().join("crates/att-decode/tests/data"));
    let (extension, front): (&str, &[u8]) = match seeds {
        Seeds::Chunks => ("sqtt", &[]),
        Seeds::ChunksWithOptions => ("sqtt", &[4, 0, 0]),
        Seeds::CodeObjects => ("co", &[30]),
    };
    for file in files_below(&root)? {
        if file.extension().is_some_and(|found| found == extension) {
            let bytes = std::fs::read(&file)?;
            let name = file.strip_prefix(&root)?.to_string_lossy().replace('/', "_");
            std::fs::write(corpus.join(name), [front, &bytes].concat())?;
        }
    }
    Ok(())
}

fn files_below(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    Ok(files)
}
