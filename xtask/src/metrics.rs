//! `cargo xtask metrics`: the style figures of the workspace, by the script that the facts folder brings.

use std::process::Command;

use anyhow::Result;

use crate::paths;
use crate::process::run as execute;
use crate::steps::Done;

/// Options of `metrics`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Further options of the script, e.g. `-- --per-crate`
    #[arg(last = true)]
    options: Vec<String>,
}

/// Prints the figures, or why they cannot be had here.
pub(crate) fn run(args: &Args) -> Result<()> {
    if let Done::NotRun(reason) = measure(&args.options)? {
        println!("NOT RUN: {reason}");
    }
    Ok(())
}

/// Runs the script over the workspace with `options`.
pub(crate) fn measure(options: &[String]) -> Result<Done> {
    let script = paths::shared().map(|shared| shared.join("scripts/style_metrics.py"));
    let Some(script) = script.filter(|script| script.is_file()) else {
        return Ok(Done::NotRun("../shared/scripts/style_metrics.py is not there".into()));
    };
    execute(Command::new("python3").arg(script).arg(paths::root()).args(options))?;
    Ok(Done::Passed)
}
