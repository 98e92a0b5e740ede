//! What follows from the members of a type: its natural alignment and the traits that can be derived.

use anyhow::Result;

use super::ctype::CType;
use super::lower::{Lowered, lower};
use super::model::Model;

/// The alignment that the stored members give; `nested` are types that only the generated code names.
pub(crate) fn natural_align(model: &Model, lowered: &Lowered, nested: &[(String, Lowered)]) -> Result<usize> {
    let mut align = 1;
    for stored in &lowered.stored {
        let inner = match &stored.c_type {
            CType::Named(name) => nested.iter().find(|(known, _)| known == name),
            _ => None,
        };
        align = align.max(match inner {
            Some((_, inner)) => natural_align(model, inner, nested)?,
            None => model.align_of(&stored.c_type)?,
        });
    }
    Ok(align)
}

/// The traits to derive: a union can be compared and printed by nobody, a function pointer should not be compared.
pub(crate) fn derives(model: &Model, lowered: &Lowered) -> Result<Vec<&'static str>> {
    let mut derives = vec!["Clone", "Copy"];
    let holds = holdings(model, lowered)?;
    if !holds.union {
        derives.push("Debug");
        if !holds.function {
            derives.extend(["PartialEq", "Eq", "Hash"]);
        }
    }
    Ok(derives)
}

/// What a type holds by value, however deep.
#[derive(Default, Clone, Copy)]
struct Holdings {
    union: bool,
    function: bool,
}

impl Holdings {
    fn and(self, other: Self) -> Self {
        Self { union: self.union || other.union, function: self.function || other.function }
    }
}

fn holdings(model: &Model, lowered: &Lowered) -> Result<Holdings> {
    let mut holds = Holdings { union: lowered.is_union, function: false };
    for stored in &lowered.stored {
        holds = holds.and(of_type(model, &stored.c_type)?);
    }
    for (_, nested) in &lowered.nested {
        holds = holds.and(holdings(model, nested)?);
    }
    Ok(holds)
}

fn of_type(model: &Model, c_type: &CType) -> Result<Holdings> {
    match c_type {
        CType::Array { of, .. } => of_type(model, of),
        CType::Function { .. } | CType::PointerTo(_) => Ok(Holdings { union: false, function: true }),
        CType::Pointer { .. } => Ok(Holdings::default()),
        CType::Named(name) if model.is_callback(name) => Ok(Holdings { union: false, function: true }),
        CType::Named(name) => match model.aggregate(name) {
            Some(aggregate) => holdings(model, &lower(name, aggregate)?),
            None => Ok(Holdings::default()),
        },
    }
}
