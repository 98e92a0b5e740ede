//! Turns `definitions/*.json` into the catalogue that is compiled in: one table per target.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, error, fs};

use serde::Deserialize;

#[derive(Deserialize)]
struct Definitions {
    arch: String,
    base_counters: Vec<Base>,
    derived_counters: Vec<Derived>,
    accumulate_event_ids: Option<Accumulate>,
}

#[derive(Deserialize)]
struct Base {
    name: String,
    block: String,
    event: u64,
}

#[derive(Deserialize)]
struct Derived {
    name: String,
    expression: String,
}

#[derive(Deserialize)]
struct Accumulate {
    low_res: u32,
    high_res: u32,
}

fn main() -> Result<(), Box<dyn error::Error>> {
    println!("cargo::rerun-if-changed=definitions");
    println!("cargo::rerun-if-changed=build.rs");
    // Meant for the example, which is a tool: it has threads and entries in the runtime's table: its code stays, whoever closes it.
    println!("cargo::rustc-link-arg=-Wl,-z,nodelete");
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("definitions");
    let mut files: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut code = String::new();
    let mut names = Vec::new();
    let mut first_id = 0;
    for file in &files {
        let definitions = read(file)?;
        first_id = table(&mut code, &definitions, first_id)?;
        names.push(definitions.arch.to_uppercase());
    }
    // A record id holds the counter's id in 16 bits.
    assert!(first_id <= 1 << 16, "{first_id} counters do not fit their id");
    writeln!(code, "pub(super) static ALL: &[&Catalogue] = &[&{}];", names.join(", &"))?;
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("tables.rs"), code)?;
    Ok(())
}

fn read(file: &Path) -> Result<Definitions, Box<dyn error::Error>> {
    let text = fs::read_to_string(file)?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()).into())
}

/// Writes one target's table; its counters have the ids from `first_id` on. Returns the next free id.
fn table(code: &mut String, definitions: &Definitions, first_id: usize) -> Result<usize, std::fmt::Error> {
    let Definitions { arch, base_counters, derived_counters, accumulate_event_ids } = definitions;
    let mut base: Vec<_> = base_counters.iter().collect();
    base.sort_by(|a, b| a.name.cmp(&b.name));
    writeln!(code, "static {}: Catalogue = Catalogue {{", arch.to_uppercase())?;
    writeln!(code, "    target: {arch:?}, first_id: {first_id},")?;
    let accumulate = accumulate_event_ids.as_ref().map(|ids| (ids.low_res, ids.high_res));
    writeln!(code, "    accumulate: {accumulate:?},")?;
    writeln!(code, "    base: &[")?;
    for Base { name, block, event } in &base {
        writeln!(code, "        BaseCounter {{ name: {name:?}, block: {block:?}, event: {event} }},")?;
    }
    writeln!(code, "    ],\n    derived: &[")?;
    for Derived { name, expression } in derived_counters {
        writeln!(code, "        DerivedCounter {{ name: {name:?}, expression: {expression:?} }},")?;
    }
    writeln!(code, "    ],\n}};")?;
    Ok(first_id + base.len() + derived_counters.len())
}
