//! `wavescope demo`: the whole way, on a GPU in software.

use std::io::Write;

use anyhow::Context;

use crate::args::DemoArgs;
use crate::demo::{Losses, Machine, print, run as measure, write};
use crate::output::write_json;

/// Runs the demonstration, prints it and writes it into the folder that was asked for.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make folder {}", folder.display()))?;
    }
    let placement = args.out.as_ref().map(|folder| folder.join("placement.jsonl"));
    let machine = Machine::start(&args.gpu, placement.as_deref())?;
    let results = measure(&machine, args.contexts)?;
    if args.json {
        write_json(&results)?;
    } else {
        print(&results, &mut std::io::stdout().lock())?;
    }
    if let Some(folder) = &args.out {
        write(&results, folder)?;
        // The files are there, whether anybody hears of it or not.
        let _ = writeln!(std::io::stderr(), "written to {}", folder.display());
    }
    if results.losses != Losses::default() || results.traces.iter().any(|trace| trace.lost) {
        anyhow::bail!("some measurements are missing: {:?}", results.losses);
    }
    Ok(())
}
