//! `FORMATS.md` says what is printed: every key and column, no other.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing helper fails the test")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use common::wavescope;
use serde_json::Value;

type Keys = BTreeSet<String>;

/// Rows of the document's tables: the name in the first cell, the words in back quotes in the second.
fn documented() -> BTreeMap<String, Keys> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("FORMATS.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let (name, keys) = line.strip_prefix("| ")?.split_once(" | ")?;
        let quoted = keys.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some((name.replace('`', ""), quoted))
    });
    rows.collect()
}

fn keys(object: &Value) -> Keys {
    object.as_object().unwrap_or_else(|| panic!("{object} is no object")).keys().cloned().collect()
}

/// Keys of all rows of a JSON array.
fn keys_of_rows(rows: &Value) -> Keys {
    rows.as_array().unwrap().iter().flat_map(keys).collect()
}

fn printed(arguments: &[&str]) -> String {
    let outcome = wavescope(arguments);
    assert_eq!(outcome.code, Some(0), "{arguments:?}: {}", outcome.stderr);
    outcome.stdout
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(arguments)).unwrap()
}

#[test]
fn lists_have_the_documented_keys() {
    let documented = documented();
    assert_eq!(keys_of_rows(&json(&["list", "targets", "--json"])), documented["list targets"]);
    let counters = json(&["list", "counters", "--gfx", "gfx942", "--json"]);
    assert_eq!(keys_of_rows(&counters), documented["list counters"]);
    let topology = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/topology/gfx942");
    let agents = json(&["list", "agents", "--topology", topology.to_str().unwrap(), "--json"]);
    assert_eq!(keys_of_rows(&agents), documented["list agents"]);
}

#[test]
fn demonstration_has_the_documented_keys_columns_and_files() {
    let documented = documented();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let results = json(&["demo", "--json", "--out", out]);
    assert_eq!(keys(&results), documented["the document"]);
    let mut of_dispatches = documented["of dispatches"].clone();
    assert!(of_dispatches.remove("lost"), "only where there are no values");
    assert_eq!(keys_of_rows(&results["dispatches"]), of_dispatches);
    assert_eq!(keys_of_rows(&results["dispatches"][0]["counters"]), documented["of counters"]);
    assert_eq!(keys_of_rows(&results["traces"]), documented["of traces"]);
    assert_eq!(keys_of_rows(&results["code_objects"]), documented["of code_objects"]);
    let csv = fs::read_to_string(folder.path().join("counters.csv")).unwrap();
    let columns: Keys = csv.lines().next().unwrap().split(',').map(str::to_owned).collect();
    let counters = ["SQ_WAVES", "GRBM_COUNT", "GRBM_GUI_ACTIVE"].map(str::to_owned);
    let documented_columns: Keys = documented["counters.csv"].iter().cloned().chain(counters).collect();
    assert_eq!(columns, documented_columns);
    let files =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    for file in files {
        let pattern = match file
            .strip_prefix("dispatch")
            .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        {
            Some("_se0.sqtt") => "dispatch<N>_se<K>.sqtt",
            Some("_se0.jsonl") => "dispatch<N>_se<K>.jsonl",
            _ => &file,
        };
        let is_code = results["code_objects"].as_array().unwrap().iter().any(|code| code["file"] == *file);
        assert!(is_code || documented.contains_key(pattern), "{file}");
    }
}

/// Adds the keys of each record to those of its kind.
fn collect(lines: &str, seen: &mut BTreeMap<String, Keys>) {
    for line in lines.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let mut keys = keys(&record);
        keys.remove("rec");
        let kind = record["rec"].as_str().unwrap().to_owned();
        assert_eq!(*seen.entry(kind.clone()).or_insert(keys.clone()), keys, "all of {kind} alike");
    }
}

#[test]
fn records_and_tokens_have_the_documented_keys() {
    let documented = documented();
    let mut seen = BTreeMap::new();
    for gpu in ["gfx942", "gfx1100", "gfx1201"] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().to_str().unwrap();
        printed(&["demo", "--gpu", gpu, "--out", out]);
        let traces = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        for trace in traces.filter(|path| path.extension().is_some_and(|extension| extension == "sqtt")) {
            let trace = trace.to_str().unwrap();
            collect(&printed(&["decode", "--gfx", gpu, "--sqtt", trace]), &mut seen);
            let token: Value =
                serde_json::from_str(printed(&["tokens", "--json", trace]).lines().next().unwrap()).unwrap();
            assert_eq!(keys(&token), documented["tokens --json"]);
        }
    }
    assert!(seen.len() >= 8, "{:?}", seen.keys());
    for (kind, keys) in seen {
        assert_eq!(Some(&keys), documented.get(&kind), "{kind}");
    }
}
