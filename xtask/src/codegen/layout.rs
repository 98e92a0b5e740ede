//! Writes the registry of compiled layouts, `crates/abi-check/src/generated/`: for each fact one expression whose
//! value our own compiler gives, so that the comparison does not trust this generator's arithmetic.

use std::fmt::Write;

use anyhow::Result;

use super::facts::Facts;
use super::lower::{Place, PlaceKind, lower};
use super::model::{Defined, Model, is_nameless};
use super::text::{banner, format_rust};

const FOLDER: &str = "crates/abi-check/src/generated";

/// The registry of each facts file: path below the workspace root, and text.
pub(crate) fn registries(model: &Model) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    let mut module = banner("Registries of compiled layouts, one for each file of ABI facts.");
    for (name, facts) in ["hsa", "aqlprofile"].iter().zip(&model.files) {
        files.push((format!("{FOLDER}/{name}.rs"), registry(model, facts, name)?));
        writeln!(module, "pub(crate) mod {name};")?;
    }
    files.push((format!("{FOLDER}/mod.rs"), format_rust(&module)?));
    Ok(files)
}

fn registry(model: &Model, facts: &Facts, name: &str) -> Result<String> {
    let mut text = banner(&format!("Compiled layouts for the facts in `{name}.json`."));
    text += "use hsa_sys::*;\n\nuse crate::functions::*;\nuse crate::registry::*;\n\n";
    writeln!(
        text,
        "/// What our compiler made of everything in `{name}.json`.\npub(crate) const REGISTRY: Registry = Registry {{"
    )?;
    writeln!(text, "structs: &[")?;
    for defined in model.aggregates(facts) {
        structure(&mut text, &defined)?;
    }
    writeln!(text, "],\ntables: &[")?;
    for defined in model.tables(facts) {
        structure(&mut text, &defined)?;
    }
    writeln!(text, "],\nslots: &[")?;
    for (table, slots) in &facts.api_table_slots {
        let slots = slots.iter().map(|slot| {
            format!(
                "slot!({table}, {}, \"{}\", {}),\n",
                slot.name,
                slot.function,
                slot_type(facts, table, &slot.name)
            )
        });
        writeln!(text, "(\"{table}\", &[{}]),", slots.collect::<String>())?;
    }
    writeln!(text, "],\nenums: &[")?;
    enumerations(&mut text, model, facts)?;
    writeln!(text, "],\nfunctions: &[")?;
    for function in facts.functions.keys() {
        writeln!(text, "function!({function}, pfn::{function}),")?;
    }
    writeln!(text, "],\ncallbacks: &[")?;
    for callback in facts.callbacks.keys() {
        writeln!(text, "function!({callback}, {callback}),")?;
    }
    writeln!(text, "],\naliases: &[")?;
    for alias in facts.aliases.keys() {
        writeln!(text, "alias!({alias}),")?;
    }
    writeln!(text, "],\nversions: &[")?;
    for version in facts.table_versions.keys() {
        writeln!(text, "(\"{version}\", {version}),")?;
    }
    writeln!(text, "],\n}};")?;
    format_rust(&text)
}

/// The type that a slot must have: the function's own, or the callback's.
fn slot_type(facts: &Facts, table: &str, slot: &str) -> String {
    let field =
        facts.api_tables.get(table).and_then(|table| table.fields.iter().find(|field| field.name == slot));
    let c_type = field.map(|field| field.c_type.as_str()).unwrap_or_default();
    match c_type.strip_prefix("decltype(").and_then(|rest| rest.strip_suffix(") *")) {
        Some(function) => format!("Option<pfn::{function}>"),
        None => c_type.to_owned(),
    }
}

fn structure(text: &mut String, defined: &Defined<'_, super::facts::Aggregate>) -> Result<()> {
    let lowered = lower(defined.name, defined.fact)?;
    let name = defined.name;
    let fields: Vec<_> =
        lowered.places.iter().map(|place| format!("    {},\n", place_of(name, place))).collect();
    let names: Vec<_> = std::iter::once(name).chain(defined.other_names.iter().copied()).collect();
    writeln!(text, "structure!([{}], [\n{}]),", names.join(", "), fields.concat())?;
    Ok(())
}

fn place_of(owner: &str, place: &Place) -> String {
    let path = &place.path;
    match &place.kind {
        PlaceKind::Field { expression, in_union: false } => {
            format!("field!({owner}, \"{path}\", {expression})")
        }
        PlaceKind::Field { expression, in_union: true } => {
            format!("union_field!({owner}, \"{path}\", {expression})")
        }
        PlaceKind::Span { first, last } => format!("span!({owner}, \"{path}\", {first}, {last})"),
        PlaceKind::View { field, getter } => format!("view!({owner}, \"{path}\", {field}, {getter})"),
        PlaceKind::Bits { field, getter } => {
            format!("bits!({owner}, \"{path}\", {field}, {getter}, set_{getter})")
        }
    }
}

fn enumerations(text: &mut String, model: &Model, facts: &Facts) -> Result<()> {
    for defined in model.enumerations(facts) {
        // Enumerators without an enumeration of their own are values of hsa_status_t.
        let rust = if is_nameless(defined.name) { "hsa_status_t" } else { defined.name };
        let values = defined.fact.values.keys().cloned().collect::<Vec<_>>().join(", ");
        for shown in std::iter::once(&defined.name).chain(&defined.other_names) {
            let rust = if is_nameless(shown) { rust } else { shown };
            writeln!(text, "enumeration!(\"{shown}\", {rust}, [{values}]),")?;
        }
    }
    Ok(())
}
