//! `info.json`: blocks, instances, counters, dimensions of an agent.

use anyhow::{Context, Result};
use serde_json::Value;
use wavescope_aql_profile::{DimensionId, Dimensions, dimensions};
use wavescope_pm4::BlockId;

use super::agent::shape;
use super::value::{list, number, small, text};
use crate::golden::Outcome;

/// Checks the case.
pub(super) fn check(case: &Value, outcome: &mut Outcome) -> Result<()> {
    let agent = shape(&case["agent"], case.get("ip_discovery"))?;
    compare_event_ids(&case["event_ids"], outcome)?;
    let target = agent.chip()?.target;
    let blocks = list(&case["blocks"])?;
    outcome.compare("blocks.len", &blocks.len(), &target.blocks().len());
    for entry in blocks {
        let id = BlockId(small(&entry["id"])?);
        let block = target.block(id).with_context(|| format!("{id} is not in our table"))?;
        let place = block.name;
        outcome.compare(format_args!("{place}.enum"), &text(&entry["enum"])?, &id.api_name().unwrap_or("?"));
        outcome.compare(format_args!("{place}.name"), &text(&entry["name"])?, &block.name);
        let named = target.block_named(text(&entry["name"])?).map(|block| block.id);
        outcome.compare(format_args!("{place} by name"), &Some(id), &named);
        let valid = number(&entry["instances_valid"])?;
        outcome.compare(format_args!("{place}.instances_valid"), &valid, &block.instances.into());
        let counters = number(&entry["counters"])?;
        outcome.compare(format_args!("{place}.counters"), &counters, &block.counters.into());
        let found = dimensions(&agent, id)?;
        let queried = number(&entry["instance_count_query"])?;
        outcome.compare(format_args!("{place}.instance_count_query"), &queried, &found.instances().into());
        let expected = recorded_dimensions(&entry["dims"])?;
        outcome.compare(format_args!("{place}.dims"), &expected, &found_dimensions(&found));
    }
    Ok(())
}

/// Compares the list of dimension ids and names.
pub(super) fn compare_event_ids(recorded: &Value, outcome: &mut Outcome) -> Result<()> {
    let recorded = list(recorded)?;
    let recorded = recorded.iter().map(|entry| Ok((small(&entry[0])?, text(&entry[1])?.to_owned())));
    let ours: Vec<_> = DimensionId::ALL.iter().map(|id| (id.0, id.name().to_owned())).collect();
    outcome.compare("event_ids", &recorded.collect::<Result<Vec<_>>>()?, &ours);
    Ok(())
}

/// Id, name, extent.
type Row = (u32, String, u32);

/// Dimensions as they are written in a fixture.
pub(super) fn recorded_dimensions(value: &Value) -> Result<Vec<Row>> {
    let row = |entry: &Value| Ok((small(&entry[0])?, text(&entry[1])?.to_owned(), small(&entry[2])?));
    list(value)?.iter().map(row).collect()
}

/// Our dimensions in the same form.
pub(super) fn found_dimensions(found: &Dimensions) -> Vec<Row> {
    let row = |dimension: &wavescope_aql_profile::Dimension| {
        (dimension.id.0, dimension.id.name().to_owned(), dimension.extent)
    };
    found.as_slice().iter().map(row).collect()
}
