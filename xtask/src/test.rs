//! `cargo xtask test`: unit, integration and doc tests of the workspace.

use anyhow::Result;

use crate::process::{cargo, run as execute};

/// Options of `test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these packages (default: the whole workspace)
    #[arg(short, long = "package")]
    packages: Vec<String>,
}

/// Runs nextest, then the doc tests, which nextest does not know.
pub(crate) fn run(args: &Args) -> Result<()> {
    nextest(&args.packages)?;
    doc_tests(&args.packages)
}

/// Unit and integration tests of `packages`, or of the workspace when empty.
pub(crate) fn nextest(packages: &[String]) -> Result<()> {
    execute(cargo(["nextest", "run", "--no-fail-fast"]).args(selection(packages)))
}

/// Doc tests of `packages`, or of the workspace when empty.
pub(crate) fn doc_tests(packages: &[String]) -> Result<()> {
    execute(cargo(["test", "--doc", "--quiet"]).args(selection(packages)))
}

fn selection(packages: &[String]) -> Vec<&str> {
    if packages.is_empty() {
        return vec!["--workspace"];
    }
    packages.iter().flat_map(|package| ["--package", package]).collect()
}
