//! `cargo xtask codegen [--check]`: writes the Rust files that are generated from the ABI facts.

use anyhow::{Result, bail};

/// Options of `codegen`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail when a committed file is not what would be written
    #[arg(long)]
    check: bool,
}

/// Generates, or checks.
pub(crate) fn run(args: &Args) -> Result<()> {
    let _ = args.check;
    bail!("nothing is generated yet")
}

/// As `codegen --check`.
pub(crate) fn check() -> Result<()> {
    run(&Args { check: true })
}
