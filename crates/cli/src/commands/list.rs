//! `wavescope list`: what a machine has, and what Wavescope can do with it.

mod agents;
mod counters;
mod targets;

use crate::args::ListWhat;

/// Prints the list that was asked for.
pub(crate) fn run(what: &ListWhat) -> anyhow::Result<()> {
    match what {
        ListWhat::Agents { topology, json } => agents::run(topology, *json),
        ListWhat::Counters { gfx, json } => counters::run(gfx, *json),
        ListWhat::Targets { json } => targets::run(*json),
    }
}
