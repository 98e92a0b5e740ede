//! Kind `counters`: each target's counter definitions against the catalogue that is compiled in, and the facts about
//! its blocks against the packet tables.
//!
//! The catalogue is generated from a copy of these files, so its half only finds a stale copy or a lossy generator. The
//! other half is independent: blocks, instances and dimensions come from the tables that the packets are built from.
//! `counters_per_instance` is left out: the definitions name 16 for MCVML2, the packet library allows 8, and the
//! library decides (kind `aqlprofile` holds it to that).

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use wavescope_aql_profile::{AgentShape, DimensionId, dimensions};
use wavescope_counting::Catalogue;

use super::{Kind, Outcome, Role, Source, read_text};

/// The kind `counters`.
pub(crate) struct Counters;

#[derive(Deserialize)]
struct Definitions {
    arch: String,
    counts: Counts,
    accumulate_event_ids: Option<Accumulate>,
    blocks: std::collections::BTreeMap<String, BlockFacts>,
    base_counters: Vec<Base>,
    derived_counters: Vec<Derived>,
}

#[derive(Deserialize)]
struct Counts {
    base: usize,
    derived: usize,
}

#[derive(Deserialize)]
struct Accumulate {
    low_res: u32,
    high_res: u32,
}

#[derive(Deserialize)]
struct BlockFacts {
    instances: u32,
    dimensions: Vec<String>,
}

#[derive(Deserialize)]
struct Base {
    name: String,
    block: String,
    event: u64,
    dimensions: Vec<String>,
}

#[derive(Deserialize)]
struct Derived {
    name: String,
    expression: String,
}

impl Kind for Counters {
    fn name(&self) -> &'static str {
        "counters"
    }

    fn role(&self, file: &Path) -> Role {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".json") || name.ends_with(".json.gz") { Role::Case } else { Role::Support }
    }

    fn check(&self, case: &Path) -> Result<Outcome> {
        let text = read_text(case)?;
        let definitions: Definitions =
            serde_json::from_str(&text).with_context(|| format!("{}: no definitions", case.display()))?;
        let target = definitions.arch.parse()?;
        let catalogue = Catalogue::of(target).with_context(|| format!("no catalogue for {target}"))?;
        let mut outcome = Outcome::default();
        check_catalogue(&definitions, catalogue, &mut outcome);
        check_blocks(&definitions, &mut outcome)?;
        Ok(outcome)
    }

    fn ci_sources(&self) -> Vec<Source> {
        vec![Source { shared: "fixtures/counters", copy: Some("crates/counting/definitions") }]
    }
}

fn check_catalogue(definitions: &Definitions, catalogue: &Catalogue, outcome: &mut Outcome) {
    let (base, derived) = (catalogue.base_counters(), catalogue.derived_counters());
    outcome.compare("base counters", &definitions.counts.base, &base.len());
    outcome.compare("derived counters", &definitions.counts.derived, &derived.len());
    let accumulate = definitions.accumulate_event_ids.as_ref().map(|ids| (ids.low_res, ids.high_res));
    outcome.compare("accumulate events", &accumulate, &catalogue.accumulate_events());
    for expected in &definitions.base_counters {
        let found = catalogue.base(&expected.name).map(|counter| (counter.block, counter.event));
        outcome.compare(&expected.name, &Some((expected.block.as_str(), expected.event)), &found);
    }
    for expected in &definitions.derived_counters {
        let found = catalogue.derived(&expected.name).map(|counter| counter.expression);
        outcome.compare(&expected.name, &Some(expected.expression.as_str()), &found);
    }
}

/// Blocks of the packet tables, for an agent with as many dies as the definitions speak of.
fn check_blocks(definitions: &Definitions, outcome: &mut Outcome) -> Result<()> {
    let has_dies = definitions.blocks.values().any(|block| block.dimensions.iter().any(|name| name == "XCC"));
    let xcc = if has_dies { 2 } else { 1 };
    // Enough units that no extent is capped: the facts are about blocks, not about one agent.
    let shape = AgentShape::new(&definitions.arch, xcc, 4 * xcc, 256 * xcc, 2);
    let chip = shape.chip()?;
    for (name, facts) in &definitions.blocks {
        let Some(block) = chip.target.block_named(name) else {
            outcome.differ(name, "no such block in the packet tables");
            continue;
        };
        outcome.compare(format!("{name} instances"), &facts.instances, &block.instances);
        let found = dimensions(&shape, block.id)?;
        let found: Vec<_> = found.as_slice().iter().map(|dimension| spelled(dimension.id)).collect();
        outcome.compare(format!("{name} dimensions"), &facts.dimensions, &found);
    }
    for counter in &definitions.base_counters {
        let block = definitions.blocks.get(&counter.block).map(|block| &block.dimensions);
        outcome.compare(format!("{} dimensions", counter.name), &Some(&counter.dimensions), &block);
    }
    Ok(())
}

/// A dimension as the definitions spell it.
fn spelled(id: DimensionId) -> String {
    match id {
        DimensionId::XCD => "XCC",
        DimensionId::SE => "SHADER_ENGINE",
        DimensionId::SA => "SHADER_ARRAY",
        other => other.name(),
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    fn check(text: &str) -> Outcome {
        let folder = tempfile::tempdir().unwrap();
        let case = folder.path().join("gfx942.json");
        std::fs::write(&case, text).unwrap();
        Counters.check(&case).unwrap()
    }

    #[test]
    fn one_changed_fact_of_each_sort_is_found() {
        let file = paths::root().join("crates/counting/definitions/gfx942.json");
        let text = std::fs::read_to_string(file).unwrap();
        let facts: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(check(&text).differences(), [""; 0]);
        let changes: [(&str, serde_json::Value); 5] = [
            ("/base_counters/0/event", 4711.into()),
            ("/derived_counters/0/expression", "1".into()),
            ("/blocks/SQ/dimensions/1", "WGP".into()),
            ("/blocks/TCC/instances", 17.into()),
            ("/accumulate_event_ids/high_res", 1.into()),
        ];
        for (pointer, value) in changes {
            let mut changed = facts.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            assert!(!check(&changed.to_string()).differences().is_empty(), "{pointer}");
        }
    }
}
