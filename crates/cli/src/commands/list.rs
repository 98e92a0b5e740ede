//! `wavescope list`: what a machine has, and what Wavescope can do with it.

mod agents;

use crate::args::ListWhat;

/// Prints the list that was asked for.
pub(crate) fn run(what: &ListWhat) -> anyhow::Result<()> {
    match what {
        ListWhat::Agents { topology, json } => agents::run(topology, *json),
        ListWhat::Targets { .. } | ListWhat::Counters { .. } => anyhow::bail!("x"),
    }
}
