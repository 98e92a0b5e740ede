//! `wavescope list counters`: the hardware and computed counters of a chip.

use std::io::Write;

use serde::Serialize;
use wavescope_core::GfxTarget;
use wavescope_counting::Catalogue;

use crate::input::{bad_input, blame_input};
use crate::output::{Table, write_json};

#[derive(Serialize)]
struct Row {
    name: &'static str,
    /// Block and event of a hardware counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<u64>,
    /// Expression of a computed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    expression: Option<&'static str>,
}

/// Prints one row a counter, hardware counters first.
pub(crate) fn run(gfx: &str, json: bool) -> anyhow::Result<()> {
    let target: GfxTarget = gfx.parse().map_err(blame_input)?;
    let catalogue = Catalogue::of(target).ok_or_else(|| {
        let known: Vec<_> = Catalogue::all().iter().map(|catalogue| catalogue.target()).collect();
        bad_input(format!("no counters are defined for {target}; there are some for {}", known.join(", ")))
    })?;
    let rows = rows(catalogue);
    if json {
        return write_json(&rows);
    }
    let mut table = Table::new(&["counter", "block", "event", "computed from"]);
    for row in rows {
        table.row([
            row.name.to_owned(),
            row.block.unwrap_or_default().to_owned(),
            row.event.map(|event| event.to_string()).unwrap_or_default(),
            row.expression.unwrap_or_default().to_owned(),
        ]);
    }
    let mut out = std::io::stdout().lock();
    table.write(&mut out)?;
    out.flush()?;
    Ok(())
}

fn rows(catalogue: &Catalogue) -> Vec<Row> {
    let base = catalogue.base_counters().iter().map(|counter| Row {
        name: counter.name,
        block: Some(counter.block),
        event: Some(counter.event),
        expression: None,
    });
    let derived = catalogue.derived_counters().iter().map(|counter| Row {
        name: counter.name,
        block: None,
        event: None,
        expression: Some(counter.expression),
    });
    base.chain(derived).collect()
}
