//! `wavescope decode` and `tokens` on traces captured from real chips give the reference decoder's records, line by line.
//!
//! The captures belong to others and lie beside the repository; without them this prints why it did not run.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

mod common;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use common::wavescope;
use flate2::read::GzDecoder;
use serde_json::Value;

fn captures() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/sqtt");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("NOT RUN: no captured traces at ../shared/fixtures/sqtt");
    None
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Text of `name` in `set`, or of `name.gz`.
fn read(set: &Path, name: &str) -> String {
    if let Ok(text) = fs::read_to_string(set.join(name)) {
        return text;
    }
    let mut text = String::new();
    GzDecoder::new(File::open(set.join(format!("{name}.gz"))).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// The command line that decodes a set: its chunks in order, its code objects where they were loaded.
fn arguments(set: &Path, meta: &Value) -> Vec<String> {
    let mut arguments =
        ["decode", "--gfx", meta["target"].as_str().or(meta["arch"].as_str()).unwrap(), "--sqtt"]
            .map(str::to_owned)
            .to_vec();
    for chunk in meta["chunks"].as_array().unwrap() {
        arguments.push(set.join(chunk["file"].as_str().unwrap()).display().to_string());
    }
    for kernel in meta["kernels"].as_array().unwrap() {
        let file = set.join(kernel["code_object"].as_str().unwrap());
        arguments.push("--code-object".into());
        arguments.push(format!("{}@{}", file.display(), kernel["load_address"]));
    }
    arguments
}

fn sets(captures: &Path) -> Vec<PathBuf> {
    let mut sets = Vec::new();
    for chip in ["gfx950", "gfx1100", "gfx1200"] {
        let entries = fs::read_dir(captures.join(chip)).unwrap();
        sets.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
    }
    sets.sort();
    sets
}

#[test]
fn every_record_of_every_captured_set_equals_the_reference() {
    let Some(captures) = captures() else { return };
    let sets = sets(&captures);
    assert!(sets.len() >= 10, "{sets:?}");
    for set in sets {
        let meta: Value = serde_json::from_str(&fs::read_to_string(set.join("meta.json")).unwrap()).unwrap();
        let outcome = wavescope(arguments(&set, &meta));
        assert_eq!(outcome.code, Some(0), "{}: {}", set.display(), outcome.stderr);
        let (found, expected) = (lines(&outcome.stdout), lines(&read(&set, "golden.jsonl")));
        let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        assert_eq!(differs, None, "{}: first different line, from 0", set.display());
        assert_eq!(found.len(), expected.len(), "{}", set.display());
    }
}

#[test]
fn gemm_captures_have_all_their_occupancy_records() {
    let Some(captures) = captures() else { return };
    for chip in ["gfx950", "gfx1100", "gfx1200"] {
        let set = captures.join(chip).join("gemm_run_0");
        let meta: Value = serde_json::from_str(&fs::read_to_string(set.join("meta.json")).unwrap()).unwrap();
        let occupancy = |text: &str| {
            let records = lines(text).into_iter().filter(|record| record["rec"] == "occupancy");
            records.collect::<Vec<_>>()
        };
        let found = occupancy(&wavescope(arguments(&set, &meta)).stdout);
        assert_eq!(found.len(), 2048, "{chip}");
        assert_eq!(found, occupancy(&read(&set, "golden.jsonl")), "{chip}");
    }
}

#[test]
fn tokens_equal_the_dump_in_offset_kind_length_and_time() {
    let Some(captures) = captures() else { return };
    let set = captures.join("gfx1100/plus_run_0");
    let meta: Value = serde_json::from_str(&fs::read_to_string(set.join("meta.json")).unwrap()).unwrap();
    let chunks = meta["chunks"].as_array().unwrap().iter();
    let files = chunks.map(|chunk| set.join(chunk["file"].as_str().unwrap()).display().to_string());
    let outcome = wavescope(["tokens".to_owned()].into_iter().chain(files));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let columns = |line: &str| line.split('\t').take(4).map(str::to_owned).collect::<Vec<_>>();
    let found: Vec<_> = outcome.stdout.lines().map(columns).collect();
    let expected: Vec<_> = read(&set, "tokens.tsv").lines().map(columns).collect();
    assert_eq!(found, expected);
}
