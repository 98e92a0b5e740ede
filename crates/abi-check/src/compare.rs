//! The comparison: facts against a registry, section by section, in both directions.

use serde_json::{Map, Value};

use crate::members::{MemberPlace, members};
use crate::registry::{Alias, Enumeration, Field, Function, Named, Place, Registry, Slot, Structure};
use crate::report::Report;

mod c_sizes;

use c_sizes::CSizes;

/// Sections of a facts file that hold no layout of the bound version, each with the reason.
const NO_LAYOUT: &[(&str, &str)] = &[
    ("meta", "says where the facts come from"),
    ("newer_table_changes", "prose on releases after the bound one"),
    ("variants", "prototypes of other releases"),
    ("delta_from_1_0_0", "layouts of an older release"),
];

/// Compares `facts` with `registry`.
pub fn compare(facts: &Value, registry: &Registry) -> Report {
    let mut report = Report::default();
    let Some(sections) = facts.as_object() else {
        report.unfounded("the whole file");
        return report;
    };
    let sizes = CSizes::new(facts);
    for (name, section) in sections {
        compare_section(&mut report, name, section, registry, &sizes);
    }
    missing_facts(&mut report, facts, registry);
    report
}

/// The registry that belongs to `facts`: the one that knows most of its structs, if more than half.
pub fn registry_for(facts: &Value) -> Option<&'static Registry> {
    let names: Vec<_> = facts["structs"].as_object()?.keys().collect();
    let known =
        |registry: &Registry| names.iter().filter(|name| named(registry.structs, name).is_some()).count();
    [&crate::HSA, &crate::AQLPROFILE].into_iter().find(|registry| known(registry) * 2 > names.len())
}

fn compare_section(
    report: &mut Report,
    name: &str,
    section: &Value,
    registry: &Registry,
    sizes: &CSizes<'_>,
) {
    let entries: &Map<String, Value> = match section.as_object() {
        _ if NO_LAYOUT.iter().any(|(known, _)| *known == name) => return,
        Some(entries) => entries,
        None => return report.unbound(name),
    };
    for (entry, fact) in entries {
        let place = format!("{name}.{entry}");
        if compare_entry(report, (name, entry), &place, fact, registry, sizes).is_none() {
            report.unbound(place);
        }
    }
}

/// `None` where nothing is compiled for the entry.
fn compare_entry(
    report: &mut Report,
    (section, entry): (&str, &str),
    place: &str,
    fact: &Value,
    registry: &Registry,
    sizes: &CSizes<'_>,
) -> Option<()> {
    match section {
        "structs" => structure(report, place, fact, named(registry.structs, entry)),
        "api_tables" => structure(report, place, fact, named(registry.tables, entry)),
        "api_table_slots" => {
            slots(report, place, fact, registry.slots.iter().find(|(table, _)| *table == entry))
        }
        "enums" => enumeration(report, place, fact, registry.enums.iter().find(|e| e.name == entry)),
        "functions" => function(report, place, fact, registry.functions, entry, sizes),
        "callbacks" => function(report, place, fact, registry.callbacks, entry, sizes),
        "aliases" => alias(report, place, fact, registry.aliases.iter().find(|a| a.name == entry), sizes),
        "table_versions" => version(report, place, fact, registry.versions.iter().find(|(v, _)| *v == entry)),
        _ => None,
    }
}

/// What is compiled but not (any more) among the facts.
fn missing_facts(report: &mut Report, facts: &Value, registry: &Registry) {
    let names =
        |structures: &'static [Structure]| structures.iter().flat_map(|s| s.names).map(|named| named.name);
    let sections: [(&str, Vec<&str>); 8] = [
        ("structs", names(registry.structs).collect()),
        ("api_tables", names(registry.tables).collect()),
        ("api_table_slots", registry.slots.iter().map(|(table, _)| *table).collect()),
        ("enums", registry.enums.iter().map(|e| e.name).collect()),
        ("functions", registry.functions.iter().map(|f| f.name).collect()),
        ("callbacks", registry.callbacks.iter().map(|f| f.name).collect()),
        ("aliases", registry.aliases.iter().map(|a| a.name).collect()),
        ("table_versions", registry.versions.iter().map(|(v, _)| *v).collect()),
    ];
    for (section, compiled) in sections {
        for name in compiled.into_iter().filter(|name| facts[section].get(name).is_none()) {
            report.unfounded(format_args!("{section}.{name}"));
        }
    }
}

fn named<'a>(structures: &'a [Structure], name: &str) -> Option<(&'a Named, &'a Structure)> {
    structures.iter().find_map(|structure| {
        structure.names.iter().find(|named| named.name == name).map(|named| (named, structure))
    })
}

fn structure(
    report: &mut Report,
    place: &str,
    fact: &Value,
    compiled: Option<(&Named, &Structure)>,
) -> Option<()> {
    let (named, structure) = compiled?;
    report.figure(format_args!("{place}.size"), fact["size"].as_u64(), Some(named.size as u64));
    report.figure(format_args!("{place}.align"), fact["align"].as_u64(), Some(named.align as u64));
    let members = members(fact);
    for member in &members {
        let place = format!("{place}.fields.{}", member.path);
        match structure.fields.iter().find(|field| field.path == member.path) {
            Some(field) => report.figure(place, member.place, Some(compiled_place(field))),
            None => report.unbound(place),
        }
    }
    for field in
        structure.fields.iter().filter(|field| members.iter().all(|member| member.path != field.path))
    {
        report.unfounded(format_args!("{place}.fields.{}", field.path));
    }
    Some(())
}

fn compiled_place(field: &Field) -> MemberPlace {
    match field.place {
        Place::Bytes { offset, size } => MemberPlace::Bytes(offset, size),
        Place::Bits(probe) => MemberPlace::Bits(probe()),
    }
}

/// The version that each table begins with, in bytes; slots follow.
const SLOTS_BEGIN: usize = 16;

fn slots(
    report: &mut Report,
    place: &str,
    fact: &Value,
    compiled: Option<&(&str, &'static [Slot])>,
) -> Option<()> {
    let (_, slots) = compiled?;
    let facts = fact.as_array()?;
    report.figure(format_args!("{place}.count"), Some(facts.len()), Some(slots.len()));
    for (position, fact) in facts.iter().enumerate() {
        let name = fact["name"].as_str().unwrap_or_default();
        let place = format!("{place}.{name}");
        let Some(slot) = slots.iter().find(|slot| slot.name == name) else {
            report.unbound(place);
            continue;
        };
        let index = slot.offset.checked_sub(SLOTS_BEGIN).map(|bytes| (bytes / size_of::<fn()>()) as u64);
        report.figure(format_args!("{place}.offset"), fact["offset"].as_u64(), Some(slot.offset as u64));
        report.figure(format_args!("{place}.index"), fact["index"].as_u64(), index);
        report.figure(format_args!("{place}.position"), Some(position as u64), index);
        report.figure(format_args!("{place}.function"), fact["function"].as_str(), Some(slot.function));
    }
    Some(())
}

fn enumeration(report: &mut Report, place: &str, fact: &Value, compiled: Option<&Enumeration>) -> Option<()> {
    let compiled = compiled?;
    let is_signed = fact["underlying"].as_str().map(|underlying| !underlying.starts_with("unsigned"));
    report.figure(format_args!("{place}.size"), fact["size"].as_u64(), Some(compiled.size as u64));
    report.figure(format_args!("{place}.is_signed"), is_signed, Some(compiled.is_signed));
    let values = fact["values"].as_object()?;
    for (name, value) in values {
        let found = compiled.values.iter().find(|(known, _)| known == name).map(|(_, number)| *number);
        report.figure(format_args!("{place}.values.{name}"), value.as_i64(), found);
    }
    for (name, _) in compiled.values.iter().filter(|(name, _)| !values.contains_key(*name)) {
        report.unfounded(format_args!("{place}.values.{name}"));
    }
    Some(())
}

fn function(
    report: &mut Report,
    place: &str,
    fact: &Value,
    compiled: &[Function],
    name: &str,
    sizes: &CSizes<'_>,
) -> Option<()> {
    let shape = compiled.iter().find(|function| function.name == name)?.shape;
    let size = |declared: &Value| declared.as_str().and_then(|c_type| sizes.of(c_type));
    let params: Option<Vec<_>> =
        fact["params"].as_array()?.iter().map(|param| size(&param["type"])).collect();
    let compiled = shape.params.to_vec();
    report.figure(format_args!("{place}.returns"), size(&fact["returns"]), Some(shape.returns));
    report.figure(format_args!("{place}.params"), params, Some(compiled));
    Some(())
}

fn alias(
    report: &mut Report,
    place: &str,
    fact: &Value,
    compiled: Option<&Alias>,
    sizes: &CSizes<'_>,
) -> Option<()> {
    let target = fact.as_str()?;
    // A struct whose members are nowhere given is bound without any: it can only be pointed to.
    let opaque = || target.starts_with("struct ").then_some(0);
    report.figure(format_args!("{place}.size"), sizes.of(target).or_else(opaque), Some(compiled?.size));
    Some(())
}

fn version(report: &mut Report, place: &str, fact: &Value, compiled: Option<&(&str, u32)>) -> Option<()> {
    report.figure(place, fact.as_u64(), Some(u64::from(compiled?.1)));
    Some(())
}
