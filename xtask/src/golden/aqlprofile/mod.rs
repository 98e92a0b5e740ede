//! Kind `aqlprofile`: packets, commands, buffers and read-back of upstream's library against our own builder.
//!
//! Schema: the README beside the fixtures. A case is one JSON file; what it is about, its keys say.

mod agent;
mod api;
mod commands;
mod counters;
mod info;
mod markers;
mod memory;
mod queues;
mod tables;
mod trace;
mod value;

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use memory::Recorder;

use super::{Kind, Outcome, Role, Source, read_text};

/// The kind `aqlprofile`.
pub(crate) struct AqlProfile;

const SOURCE: Source =
    Source { shared: "fixtures/aqlprofile", copy: Some("crates/aql-profile/tests/fixtures") };

impl Kind for AqlProfile {
    fn name(&self) -> &'static str {
        "aqlprofile"
    }

    fn role(&self, file: &Path) -> Role {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if !name.ends_with(".json") && !name.ends_with(".json.gz") {
            return Role::Support;
        }
        match load(file) {
            Ok((_, None)) => Role::NotCovered("its keys are those of no known case".into()),
            // What cannot be read is a case that fails.
            Ok(_) | Err(_) => Role::Case,
        }
    }

    fn check(&self, case: &Path) -> Result<Outcome> {
        let (mut value, schema) = load(case)?;
        add_discovery(case, &mut value);
        let check = schema.context("its keys are those of no known case")?;
        let mut outcome = Outcome::default();
        check(&value, &mut outcome)?;
        Ok(outcome)
    }

    fn ci_sources(&self) -> Vec<Source> {
        vec![SOURCE]
    }
}

/// Files of a folder whose agent has IP discovery may leave its bases to the `info.json` beside them.
fn add_discovery(case: &Path, value: &mut Value) {
    let info = case.with_file_name("info.json");
    let bases = || {
        let info: Value = serde_json::from_str(&read_text(&info).ok()?).ok()?;
        info.get("ip_discovery").cloned()
    };
    if value.get("ip_discovery").is_none()
        && let (Some(bases), Some(keys)) = (bases(), value.as_object_mut())
    {
        keys.insert("ip_discovery".to_owned(), bases);
    }
}

type Check = fn(&Value, &mut Outcome) -> Result<()>;

fn load(file: &Path) -> Result<(Value, Option<Check>)> {
    let value =
        serde_json::from_str(&read_text(file)?).with_context(|| format!("{} is no JSON", file.display()))?;
    let schema = schema_of(&value);
    Ok((value, schema))
}

/// Which kind of case the keys make it.
fn schema_of(case: &Value) -> Option<Check> {
    let has = |key: &str| case.get(key).is_some();
    Some(match case.get("kind").and_then(Value::as_str) {
        Some("pmc") => counters::check,
        Some("att") => trace::check,
        None if has("markers") => markers::check,
        None if has("cmds") => queues::check,
        None if has("event_ids") && has("blocks") => info::check,
        None if has("gfx") && has("blocks") => tables::check,
        None if has("register_agent_info") => api::check,
        Some(_) | None => return None,
    })
}

/// Compares the status. The program, where it was made and the case records what it looks like.
fn accepted<P>(
    case: &Value,
    program: Result<P, wavescope_aql_profile::Error>,
    memory: &Recorder,
    outcome: &mut Outcome,
) -> Result<Option<P>> {
    let status = program.as_ref().map_or_else(|error| error.status().0, |_| 0);
    outcome.compare("status", &value::small(&case["status"])?, &status);
    let Ok(program) = program else {
        // Upstream allocates before it notices some of these; ours asks for nothing.
        outcome.compare("allocations on failure", &0, &memory.log().granted());
        return Ok(None);
    };
    Ok(case.get("aql").is_some().then_some(program))
}

#[cfg(test)]
mod tests;
