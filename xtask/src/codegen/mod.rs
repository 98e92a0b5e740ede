//! `cargo xtask codegen [--check]`: writes the Rust files that are generated from the ABI facts.
//!
//! `crates/hsa-sys/abi/*.json` (measured by a C compiler) become `crates/hsa-sys/src/generated/` (types, tables,
//! function types) and `crates/abi-check/src/generated/` (the registry that asks our compiler for the same
//! figures). Both are committed; `--check` fails when they are not what would be written.
//!
//! The way: [`facts`] reads, [`model`] resolves names, [`lower`] turns a C aggregate into a Rust one, [`emit`] and
//! [`layout`] write, [`files`] decides which item goes where.

mod ctype;
mod emit;
mod facts;
mod files;
mod layout;
mod lower;
mod model;
mod registers;
mod text;
mod traits;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use self::facts::Facts;
use self::model::Model;
use crate::paths;

/// Options of `codegen`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail when a committed file is not what would be written
    #[arg(long)]
    check: bool,
}

/// Folders that hold nothing but generated files.
const GENERATED: &[&str] = &["crates/hsa-sys/src/generated", "crates/abi-check/src/generated"];

/// Writes the files, or checks them.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.check { check() } else { write() }
}

/// Fails, naming each, when a committed file is stale, missing or not generated at all.
pub(crate) fn check() -> Result<()> {
    let wanted = generate()?;
    let mut stale: Vec<_> = wanted
        .iter()
        .filter(|(path, text)| std::fs::read_to_string(path).ok().as_ref() != Some(*text))
        .map(|(path, _)| paths::display(path))
        .collect();
    stale.extend(
        present()?.iter().filter(|path| !wanted.contains_key(*path)).map(|path| paths::display(path)),
    );
    if !stale.is_empty() {
        bail!("not what `cargo xtask codegen` writes: {}", stale.join(", "));
    }
    println!("{} generated files are fresh", wanted.len());
    Ok(())
}

fn write() -> Result<()> {
    let wanted = generate()?;
    for path in present()?.iter().filter(|path| !wanted.contains_key(*path)) {
        std::fs::remove_file(path).with_context(|| format!("cannot remove {}", paths::display(path)))?;
    }
    for (path, text) in &wanted {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", paths::display(folder)))?;
        }
        std::fs::write(path, text).with_context(|| format!("cannot write {}", paths::display(path)))?;
        println!("wrote {}", paths::display(path));
    }
    Ok(())
}

/// Every generated file with its text.
fn generate() -> Result<BTreeMap<PathBuf, String>> {
    let facts = ["hsa.json", "aqlprofile.json"]
        .map(|name| Facts::load(&paths::root().join("crates/hsa-sys/abi").join(name)));
    let model = Model::new(facts.into_iter().collect::<Result<_>>()?);
    let mut all = files::bindings(&model)?;
    all.extend(layout::registries(&model)?);
    let mut all: BTreeMap<_, _> =
        all.into_iter().map(|(path, text)| (paths::root().join(path), text)).collect();
    all.extend(registers::files(paths::root())?);
    Ok(all)
}

/// The files in the generated folders now.
fn present() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in GENERATED {
        collect(&paths::root().join(folder), &mut files)?;
    }
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry.with_context(|| format!("cannot list {}", paths::display(folder)))?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn committed_files_are_what_would_be_written() {
        super::check().unwrap();
    }
}
