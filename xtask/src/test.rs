//! `cargo xtask test`: unit, integration and doc tests of the workspace.

use anyhow::{Result, anyhow};

use crate::junit;
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

/// Unit and integration tests of `packages`, or of the workspace when empty. The error tells which tests failed, and how.
pub(crate) fn nextest(packages: &[String]) -> Result<()> {
    junit::forget()?;
    let outcome = execute(cargo(["nextest", "run", "--no-fail-fast"]).args(selection(packages)));
    outcome.map_err(|error| match junit::failures() {
        Ok(Some(tests)) if !tests.is_empty() => anyhow!("{error:#}\n{}", tests.trim_end()),
        Ok(_) => error,
        Err(unread) => error.context(unread),
    })
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
