//! `wavescope list targets`: the chips, and what can be done on each.

use serde::Serialize;
use wavescope_aql_profile::AgentShape;
use wavescope_core::GfxTarget;
use wavescope_counting::Catalogue;
use wavescope_isa::Target;
use wavescope_workload::kernels;

use crate::output::{Table, write_json};

#[derive(Serialize)]
struct Row {
    target: &'static str,
    /// Captured traces are decoded to records.
    decode: bool,
    /// Packet programs for counters and traces are built.
    program: bool,
    /// Hardware and computed counters are defined.
    counters: usize,
    /// The demo runs on a software GPU of this kind.
    demo: bool,
}

/// Prints one row a target.
pub(crate) fn run(json: bool) -> anyhow::Result<()> {
    let rows: Vec<Row> = Target::ALL.iter().map(|&target| row(target)).collect();
    if json {
        return write_json(&rows);
    }
    let yes = |can: bool| if can { "yes" } else { "" }.to_owned();
    let mut table = Table::new(&["target", "decode", "program", "counters", "demo"]);
    for row in rows {
        let counters = if row.counters == 0 { String::new() } else { row.counters.to_string() };
        table.row([row.target.to_owned(), yes(row.decode), yes(row.program), counters, yes(row.demo)]);
    }
    table.write(&mut std::io::stdout().lock())?;
    Ok(())
}

fn row(target: Target) -> Row {
    let catalogue = target.name().parse::<GfxTarget>().ok().and_then(Catalogue::of);
    let counters = catalogue.map_or(0, |c| c.base_counters().len() + c.derived_counters().len());
    Row {
        target: target.name(),
        // Every target that the instruction tables know writes one of the trace formats that are decoded.
        decode: true,
        program: AgentShape::new(target.name(), 1, 1, 1, 1).chip().is_ok(),
        counters,
        demo: kernels::targets().any(|known| known == target.name()),
    }
}
