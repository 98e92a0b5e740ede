//! `cargo xtask bench [NAME]`: the criterion benches of every crate that has some.

use anyhow::{Result, bail};

use crate::callgrind;
use crate::process::{cargo, run as execute};
use crate::workspace::Workspace;

/// Options of `bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only bench targets whose name contains this
    name: Option<String>,
    /// Count instructions of the decoder per byte with callgrind, beside the public decoder's
    #[arg(long)]
    callgrind: bool,
    /// Further options of criterion, e.g. `-- --save-baseline before`
    #[arg(last = true)]
    options: Vec<String>,
}

/// Runs each bench target; none that matches is an error.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.callgrind {
        return callgrind::run();
    }
    let workspace = Workspace::load()?;
    let wanted = args.name.as_deref().unwrap_or("");
    let benches: Vec<_> = workspace
        .packages
        .iter()
        .flat_map(|package| package.benches.iter().map(move |bench| (package.name.as_str(), bench.as_str())))
        .filter(|(_, bench)| bench.contains(wanted))
        .collect();
    if benches.is_empty() {
        bail!("no bench target has `{wanted}` in its name");
    }
    for (package, bench) in benches {
        execute(cargo(["bench", "--package", package, "--bench", bench, "--"]).args(&args.options))?;
    }
    Ok(())
}
