//! Kind `abi`: sizes, offsets, values and slots of the C types against what our compiler laid out.
//!
//! A case is one facts file (`*.json`) whose types a crate of ours binds; `wavescope-abi-check` compares. Facts of a C
//! API that no crate implements, and its list of exported symbols, are not covered.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;
use wavescope_abi_check::{Registry, compare, registry_for};

use super::{Kind, Outcome, Role, Source, read_text};
use crate::paths;

/// The facts files that are bound, with their copies in the repository.
const BOUND: &[Source] = &[
    Source { shared: "fixtures/abi/hsa.json", copy: Some("crates/hsa-sys/abi/hsa.json") },
    Source { shared: "fixtures/abi/aqlprofile.json", copy: Some("crates/hsa-sys/abi/aqlprofile.json") },
];

/// The kind `abi`.
pub(crate) struct Abi;

impl Kind for Abi {
    fn name(&self) -> &'static str {
        "abi"
    }

    fn role(&self, file: &Path) -> Role {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with("symbols.txt") {
            return Role::NotCovered("no crate exports the C API".into());
        }
        if !name.ends_with(".json") && !name.ends_with(".json.gz") {
            return Role::Support;
        }
        match load(file) {
            Ok((_, None)) => Role::NotCovered("no crate binds these types".into()),
            // What cannot be read is a case that fails.
            Ok(_) | Err(_) => Role::Case,
        }
    }

    fn check(&self, case: &Path) -> Result<Outcome> {
        let (facts, registry) = load(case)?;
        let report = compare(&facts, registry.context("no crate binds these types")?);
        let mut outcome = Outcome::default();
        outcome.equal(report.comparisons - report.differences.len());
        for difference in &report.differences {
            outcome.compare(&difference.place, &difference.expected, &difference.compiled);
        }
        Ok(outcome)
    }

    fn ci_sources(&self) -> Vec<Source> {
        BOUND.to_vec()
    }

    /// Refreshes the copies that the bindings are generated from.
    fn bless(&self) -> Result<Vec<PathBuf>> {
        let shared = paths::shared().context("../shared is not there")?;
        let mut written = Vec::new();
        for source in BOUND {
            let Some(copy) = source.copy else { continue };
            let copy = paths::root().join(copy);
            std::fs::write(&copy, read_text(&shared.join(source.shared))?)
                .with_context(|| format!("cannot write {}", paths::display(&copy)))?;
            written.push(copy);
        }
        Ok(written)
    }
}

fn load(file: &Path) -> Result<(Value, Option<&'static Registry>)> {
    let facts =
        serde_json::from_str(&read_text(file)?).with_context(|| format!("{} is no JSON", file.display()))?;
    let registry = registry_for(&facts);
    Ok((facts, registry))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::golden::tally;

    fn facts(name: &str) -> Value {
        load(&paths::root().join("crates/hsa-sys/abi").join(name)).unwrap().0
    }

    fn closing_line(files: &[(&str, &Value)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (name, facts) in files {
            std::fs::write(folder.path().join(name), facts.to_string()).unwrap();
        }
        tally(&Abi, folder.path()).unwrap().to_string()
    }

    #[test]
    fn bound_facts_pass_under_any_name() {
        let (hsa, aqlprofile) = (facts("hsa.json"), facts("aqlprofile.json"));
        assert_eq!(closing_line(&[("a.json", &hsa), ("b.json", &aqlprofile)]), "2 passed, 0 failed");
    }

    #[test]
    fn a_mutated_copy_fails() {
        let mut facts = facts("hsa.json");
        facts["structs"]["hsa_queue_t"]["fields"][3]["offset"] = json!(20);
        assert_eq!(closing_line(&[("hsa.json", &facts)]), "0 passed, 1 failed");
    }

    #[test]
    fn facts_and_symbols_of_an_unbound_api_fail_as_not_covered() {
        let foreign = json!({ "structs": { "rocprofiler_agent_id_t": { "size": 8 } } });
        assert_eq!(
            closing_line(&[("sdk.json", &foreign), ("exported-symbols.txt", &json!("x"))]),
            "0 passed, 2 failed"
        );
    }

    #[test]
    fn a_broken_file_is_a_failed_case() {
        assert_eq!(closing_line(&[("empty.json", &json!(7))]), "0 passed, 1 failed");
    }
}
