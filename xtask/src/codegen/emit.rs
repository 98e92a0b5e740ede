//! Writes types: structs, unions, enumerations, aliases, callbacks, function types.

use std::fmt::Write;

use anyhow::Result;

use super::ctype::CType;
use super::facts::{Aggregate, Enumeration, Facts, Prototype};
use super::lower::{Accessor, AccessorKind, Lowered, Stored, lower};
use super::model::{Defined, Model};
use super::text::FileText;
use super::traits;

/// Writes a struct or union with its nested types, accessors, other names, and (if hardware reads it) assertions.
pub(crate) fn aggregate(
    model: &Model,
    file: &mut FileText,
    defined: &Defined<'_, Aggregate>,
    asserted: bool,
) -> Result<()> {
    let lowered = lower(defined.name, defined.fact)?;
    for (name, nested) in &lowered.nested {
        let doc = format!("Part of [`{}`] that has no name in `{}`.", defined.name, defined.fact.file);
        aggregate_body(model, file, name, nested, None, &doc)?;
    }
    let doc = format!("`{}` of `{}`: {} bytes.", defined.name, defined.fact.file, defined.fact.size);
    aggregate_body(model, file, defined.name, &lowered, over_align(model, &lowered, defined.fact)?, &doc)?;
    accessors(file, defined.name, &lowered.accessors)?;
    if asserted {
        assertions(file, defined.name, defined.fact.size, &lowered.stored)?;
    }
    other_names(file, defined.name, &defined.other_names)
}

fn aggregate_body(
    model: &Model,
    file: &mut FileText,
    name: &str,
    lowered: &Lowered,
    over_align: Option<usize>,
    doc: &str,
) -> Result<()> {
    let over = over_align.map(|align| format!(", align({align})")).unwrap_or_default();
    let keyword = if lowered.is_union { "union" } else { "struct" };
    writeln!(
        file.body,
        "/// {doc}\n#[repr(C{over})]\n#[derive({})]",
        traits::derives(model, lowered)?.join(", ")
    )?;
    writeln!(file.body, "pub {keyword} {name} {{")?;
    for stored in &lowered.stored {
        let rust_type = stored.c_type.rust(&mut file.uses);
        file.define_field(&stored.name);
        writeln!(file.body, "/// {}\npub {}: {rust_type},", field_doc(stored), stored.name)?;
    }
    writeln!(file.body, "}}\n")?;
    file.define_type(name);
    file.zeroed.push(name.to_owned());
    Ok(())
}

/// Bytes before the first slot of an API table: its version.
const SLOTS_BEGIN: usize = 16;

fn field_doc(stored: &Stored) -> String {
    match &stored.c_type {
        CType::PointerTo(function) => {
            let slot = (stored.offset - SLOTS_BEGIN) / size_of::<u64>();
            format!("Slot {slot}, at offset {}: `{function}`.", stored.offset)
        }
        _ => format!("`{}`, at offset {}.", stored.shown, stored.offset),
    }
}

/// The alignment to ask for where C's is stricter than the members'.
fn over_align(model: &Model, lowered: &Lowered, fact: &Aggregate) -> Result<Option<usize>> {
    let natural = traits::natural_align(model, lowered, &lowered.nested)?;
    Ok((fact.align > natural).then_some(fact.align))
}

fn accessors(file: &mut FileText, owner: &str, accessors: &[Accessor]) -> Result<()> {
    if accessors.is_empty() {
        return Ok(());
    }
    writeln!(file.body, "impl {owner} {{")?;
    for accessor in accessors {
        let name = &accessor.name;
        match &accessor.kind {
            AccessorKind::Halves { low, high } => writeln!(
                file.body,
                "/// `{low}` (low half) and `{high}` as one word, to be written at once.\n\
                 pub const fn {name}(&self) -> u32 {{ (self.{high} as u32) << 16 | self.{low} as u32 }}\n"
            )?,
            AccessorKind::Cast { field, from_pointer, c_type } => {
                let to = c_type.rust(&mut file.uses);
                let through = if *from_pointer || c_type.is_pointer() { " as usize" } else { "" };
                writeln!(
                    file.body,
                    "/// The bytes of `{field}`, seen as this.\n\
                     pub fn {name}(&self) -> {to} {{ self.{field}{through} as {to} }}\n"
                )?;
            }
            AccessorKind::Bits { field, shift, width } => writeln!(
                file.body,
                "/// Bits {shift}..={} of `{field}`.\n\
                 pub const fn {name}(&self) -> u32 {{ crate::bits::get(self.{field}, {shift}, {width}) }}\n\n\
                 /// Sets bits {shift}..={} of `{field}`; what does not fit is cut off.\n\
                 pub const fn set_{name}(&mut self, value: u32) {{\n\
                 self.{field} = crate::bits::set(self.{field}, {shift}, {width}, value);\n}}\n",
                shift + width - 1,
                shift + width - 1,
            )?,
        }
    }
    writeln!(file.body, "}}\n")?;
    Ok(())
}

fn assertions(file: &mut FileText, name: &str, size: usize, stored: &[Stored]) -> Result<()> {
    writeln!(file.body, "const _: () = {{\nassert!(size_of::<{name}>() == {size});")?;
    for field in stored {
        writeln!(file.body, "assert!(core::mem::offset_of!({name}, {}) == {});", field.name, field.offset)?;
    }
    writeln!(file.body, "}};\n")?;
    Ok(())
}

fn other_names(file: &mut FileText, name: &str, other_names: &[&str]) -> Result<()> {
    for other in other_names {
        writeln!(file.body, "/// Another name of [`{name}`] in C.\npub type {other} = {name};\n")?;
        file.define_type(other);
    }
    Ok(())
}

/// Writes an enumeration as a number with named values; `more` are enumerators that C declares elsewhere.
pub(crate) fn enumeration(
    file: &mut FileText,
    defined: &Defined<'_, Enumeration>,
    more: &[(String, i64)],
) -> Result<()> {
    let repr = representation(defined.fact);
    writeln!(file.body, "c_enum! {{\n    /// `{}` of `{}`.", defined.name, defined.fact.file)?;
    writeln!(file.body, "    {}: {repr} {{", defined.name)?;
    let mut values: Vec<_> = defined.fact.values.iter().map(|(name, value)| (name.clone(), *value)).collect();
    values.extend_from_slice(more);
    values.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    for (name, value) in values {
        let value = if value < 256 { value.to_string() } else { format!("{value:#x}") };
        writeln!(file.body, "        {name} = {value},")?;
        file.define_constant(&name);
    }
    writeln!(file.body, "    }}\n}}\n")?;
    file.define_type(defined.name);
    other_names(file, defined.name, &defined.other_names)
}

fn representation(fact: &Enumeration) -> &'static str {
    if fact.underlying == "int" { "i32" } else { "u32" }
}

/// Writes `pub type alias = target`.
pub(crate) fn alias(file: &mut FileText, alias: &str, target: &str) -> Result<()> {
    let rust = CType::parse(target)?.rust(&mut file.uses);
    writeln!(file.body, "/// `{alias}`, which is `{target}` in C.\npub type {alias} = {rust};\n")?;
    file.define_type(alias);
    Ok(())
}

/// Writes a type that is only ever pointed to.
pub(crate) fn opaque(file: &mut FileText, name: &str) -> Result<()> {
    writeln!(
        file.body,
        "/// `{name}`, of which nothing is known here: only pointers to it are passed on.\n#[repr(C)]\n#[derive(Debug)]\n\
         pub struct {name} {{ _private: [u8; 0] }}\n"
    )?;
    file.define_type(name);
    Ok(())
}

/// Writes a callback type: a pointer that may be null.
pub(crate) fn callback(file: &mut FileText, name: &str, prototype: &Prototype) -> Result<()> {
    let function = function_type(file, prototype)?;
    writeln!(
        file.body,
        "/// Callback type `{name}` of `{}`.\npub type {name} = Option<{function}>;\n",
        prototype.file
    )?;
    file.define_type(name);
    Ok(())
}

/// Writes the type of a function, under the function's name.
pub(crate) fn function(file: &mut FileText, name: &str, prototype: &Prototype) -> Result<()> {
    let function = function_type(file, prototype)?;
    writeln!(file.body, "/// Type of `{name}` of `{}`.\npub type {name} = {function};\n", prototype.file)?;
    file.define_type(name);
    Ok(())
}

/// Writes the type of a slot whose prototype no fact gives.
pub(crate) fn unknown_function(file: &mut FileText, name: &str) -> Result<()> {
    writeln!(
        file.body,
        "/// Type of `{name}`, whose prototype is not among the facts: it can be copied and compared with null, not called.\n\
         pub type {name} = unsafe extern \"C-unwind\" fn();\n"
    )?;
    file.define_type(name);
    Ok(())
}

fn function_type(file: &mut FileText, prototype: &Prototype) -> Result<String> {
    let mut params = Vec::new();
    for (index, param) in prototype.params.iter().enumerate() {
        let name = if param.name.is_empty() {
            format!("argument_{index}")
        } else {
            super::lower::rust_field(&param.name)
        };
        params.push(format!("{name}: {}", CType::parse(&param.c_type)?.rust(&mut file.uses)));
    }
    let returns = CType::parse(&prototype.returns)?.rust_return(&mut file.uses);
    Ok(format!("unsafe extern \"C-unwind\" fn({}){returns}", params.join(", ")))
}

/// Writes the versions of the API tables.
pub(crate) fn table_versions(file: &mut FileText, facts: &Facts) -> Result<()> {
    for (name, value) in &facts.table_versions {
        writeln!(
            file.body,
            "/// `{name}` of `hsa/hsa_api_trace_version.h`.\npub const {name}: u32 = {value};"
        )?;
        file.define_constant(name);
    }
    Ok(())
}
