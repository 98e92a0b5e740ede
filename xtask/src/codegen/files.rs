//! Which item goes into which file of `crates/hsa-sys/src/generated/`.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::emit;
use super::facts::Facts;
use super::model::Model;
use super::text::{FileText, banner, format_rust};

const FOLDER: &str = "crates/hsa-sys/src/generated";

/// Every file of types, with what its header line says.
const TYPE_FILES: &[(&str, &str)] = &[
    ("amd_enums", "Enumerations of the AMD extension (`hsa/hsa_ext_amd.h`)."),
    ("amd_types", "Types and callbacks of the AMD extension (`hsa/hsa_ext_amd.h`)."),
    (
        "api_tables",
        "The function tables handed to a tool, in slot order, and their versions (`hsa/hsa_api_trace.h`).",
    ),
    ("aqlprofile", "Types of aqlprofile v2 (`aqlprofile-sdk/aql_profile_v2.h`)."),
    (
        "aqlprofile_legacy",
        "Types of the first aqlprofile API, on which v2 builds (`hsa/hsa_ven_amd_aqlprofile.h`).",
    ),
    ("core_enums", "Enumerations of the HSA core (`hsa/hsa.h`)."),
    ("core_types", "Handles and small structs of the HSA core (`hsa/hsa.h`)."),
    ("kernel_code", "The old kernel descriptor and its bit-fields (`hsa/amd_hsa_kernel_code.h`)."),
    (
        "loader_extension",
        "The loader extension: code objects as they lie in memory (`hsa/hsa_ven_amd_loader.h`).",
    ),
    ("packets", "AQL packets, as the packet processor reads them."),
    ("queues", "Queues and signals, as the packet processor and the runtime share them."),
    ("scalars", "Names for plain numbers, and types that are only pointed to."),
    ("tool_events", "Events of the tools table (`hsa/hsa_amd_tool.h`)."),
];

/// Every file of function types.
const FUNCTION_FILES: &[(&str, &str)] = &[
    ("amd", "Functions of the AMD extension."),
    ("aqlprofile", "Functions of aqlprofile, v2 and the first API."),
    ("core", "Functions of the HSA core."),
    ("unknown", "Functions of the tables whose prototypes are not among the facts."),
];

/// Types whose layout hardware or firmware reads: asserted beside the type.
const ASSERTED: &[&str] = &["kernel_code", "packets", "queues"];

/// The file for a type of `header` called `name`.
fn file_of(name: &str, header: &str, is_enum: bool) -> &'static str {
    let is_packet = name.ends_with("_packet_t") || name.ends_with("_packet_header_t");
    let is_queue = ["hsa_queue_t", "hsa_signal_t", "scratch_last_used_index_xcc_t"].contains(&name);
    match header {
        _ if is_packet && !is_enum => "packets",
        _ if is_queue => "queues",
        "hsa/amd_hsa_queue.h" | "hsa/amd_hsa_signal.h" => "queues",
        "hsa/amd_hsa_kernel_code.h" => "kernel_code",
        "hsa/hsa_ven_amd_loader.h" => "loader_extension",
        "hsa/hsa_amd_tool.h" => "tool_events",
        "hsa/hsa_api_trace.h" => "api_tables",
        "hsa/hsa_ven_amd_aqlprofile.h" => "aqlprofile_legacy",
        "aqlprofile-sdk/aql_profile_v2.h" => "aqlprofile",
        "hsa/hsa.h" if is_enum => "core_enums",
        "hsa/hsa.h" => "core_types",
        _ if is_enum => "amd_enums",
        _ => "amd_types",
    }
}

fn function_file(name: &str, header: &str) -> &'static str {
    match header {
        "hsa/hsa.h" => "core",
        _ if name.contains("aqlprofile") => "aqlprofile",
        _ => "amd",
    }
}

type Texts = BTreeMap<&'static str, FileText>;

/// Every file of the bindings: path below the workspace root, and text.
pub(crate) fn bindings(model: &Model) -> Result<Vec<(String, String)>> {
    let (mut types, mut functions) = (Texts::new(), Texts::new());
    for facts in &model.files {
        add_types(model, facts, &mut types)?;
        add_functions(facts, &mut functions)?;
    }
    add_opaque(model, &mut types)?;
    add_unknown_functions(model, &mut functions)?;
    let mut files = Vec::new();
    for (folder, list, texts) in
        [(FOLDER.to_owned(), TYPE_FILES, types), (format!("{FOLDER}/pfn"), FUNCTION_FILES, functions)]
    {
        for (name, text) in &texts {
            let about = list
                .iter()
                .find(|(known, _)| known == name)
                .with_context(|| format!("`{name}` has no header line"))?;
            files.push((format!("{folder}/{name}.rs"), text.finish(about.1)?));
        }
    }
    files.push((format!("{FOLDER}/mod.rs"), root_module()?));
    files.push((format!("{FOLDER}/pfn/mod.rs"), function_module()?));
    Ok(files)
}

fn add_types(model: &Model, facts: &Facts, texts: &mut Texts) -> Result<()> {
    for defined in model.aggregates(facts) {
        let file = file_of(defined.name, &defined.fact.file, false);
        emit::aggregate(model, texts.entry(file).or_default(), &defined, ASSERTED.contains(&file))?;
    }
    for defined in model.tables(facts) {
        let file = texts.entry("api_tables").or_default();
        file.uses.insert("pfn".to_owned());
        emit::aggregate(model, file, &defined, false)?;
    }
    for defined in model.enumerations(facts).iter().filter(|defined| !super::model::is_nameless(defined.name))
    {
        let file = texts.entry(file_of(defined.name, &defined.fact.file, true)).or_default();
        emit::enumeration(file, defined, &model.more_values_of(defined.name))?;
    }
    for (name, target) in model.scalar_aliases(facts) {
        emit::alias(texts.entry("scalars").or_default(), name, target)?;
    }
    for (name, prototype) in &facts.callbacks {
        emit::callback(texts.entry(file_of(name, &prototype.file, false)).or_default(), name, prototype)?;
    }
    emit::table_versions(texts.entry("api_tables").or_default(), facts)
}

fn add_functions(facts: &Facts, texts: &mut Texts) -> Result<()> {
    for (name, prototype) in &facts.functions {
        emit::function(texts.entry(function_file(name, &prototype.file)).or_default(), name, prototype)?;
    }
    Ok(())
}

fn add_opaque(model: &Model, texts: &mut Texts) -> Result<()> {
    for name in model.opaque_names()? {
        emit::opaque(texts.entry("scalars").or_default(), &name)?;
    }
    Ok(())
}

/// Slots whose type is `decltype(f) *` where no fact declares `f`.
fn add_unknown_functions(model: &Model, texts: &mut Texts) -> Result<()> {
    let slots =
        model.files.iter().flat_map(|facts| facts.api_tables.values()).flat_map(|table| &table.fields);
    let functions = slots.filter_map(|slot| slot.c_type.strip_prefix("decltype(")?.strip_suffix(") *"));
    for function in functions.filter(|function| !model.knows_function(function)) {
        emit::unknown_function(texts.entry("unknown").or_default(), function)?;
    }
    Ok(())
}

fn root_module() -> Result<String> {
    let mut text =
        banner("Everything generated from the ABI facts; see the modules for what comes from which header.");
    text += "pub mod pfn;\n\n";
    text += &TYPE_FILES.iter().map(|(name, _)| format!("mod {name};\n")).collect::<String>();
    text += "\n";
    text += &TYPE_FILES.iter().map(|(name, _)| format!("pub use {name}::*;\n")).collect::<String>();
    format_rust(&text)
}

fn function_module() -> Result<String> {
    let mut text = banner(
        "Function types under the names of the functions: `pfn::hsa_init` is the type of `hsa_init`. A table slot is\n\
         //! an `Option` of one.",
    );
    text += &FUNCTION_FILES.iter().map(|(name, _)| format!("mod {name};\n")).collect::<String>();
    text += "\n";
    text += &FUNCTION_FILES.iter().map(|(name, _)| format!("pub use {name}::*;\n")).collect::<String>();
    format_rust(&text)
}
