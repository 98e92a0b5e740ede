//! The ABI facts as they stand in the JSON files: C declarations with measured sizes and offsets.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// One facts file.
#[derive(Debug, Deserialize)]
pub(crate) struct Facts {
    pub(crate) structs: BTreeMap<String, Aggregate>,
    pub(crate) enums: BTreeMap<String, Enumeration>,
    pub(crate) functions: BTreeMap<String, Prototype>,
    pub(crate) callbacks: BTreeMap<String, Prototype>,
    /// Alias to the C type that it stands for.
    pub(crate) aliases: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) api_tables: BTreeMap<String, Aggregate>,
    #[serde(default)]
    pub(crate) api_table_slots: BTreeMap<String, Vec<Slot>>,
    #[serde(default)]
    pub(crate) table_versions: BTreeMap<String, u32>,
}

/// A struct or union.
#[derive(Debug, Deserialize)]
pub(crate) struct Aggregate {
    pub(crate) kind: AggregateKind,
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) fields: Vec<Field>,
    /// The header that declares it.
    pub(crate) file: String,
}

/// Which of the two an [`Aggregate`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AggregateKind {
    Struct,
    Union,
}

/// A member. Offsets count from the start of the outermost aggregate.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Field {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) c_type: String,
    /// Bytes; absent for a bit-field.
    pub(crate) offset: Option<usize>,
    /// Bits; present for a bit-field only.
    pub(crate) bit_offset: Option<usize>,
    pub(crate) bit_width: Option<usize>,
    /// Members of a nested struct or union without a tag.
    #[serde(default)]
    pub(crate) fields: Vec<Field>,
}

impl Field {
    /// Whether the member itself has no name (its members belong to the enclosing aggregate).
    pub(crate) fn is_anonymous(&self) -> bool {
        self.name.starts_with("<anon")
    }

    /// Whether it is a bit-field.
    pub(crate) fn is_bits(&self) -> bool {
        self.bit_width.is_some()
    }

    /// Whether it is a nested union without a tag.
    pub(crate) fn is_union(&self) -> bool {
        !self.fields.is_empty() && self.c_type.starts_with("union")
    }

    /// Byte offset; of a bit-field, that of the byte it begins in.
    pub(crate) fn byte_offset(&self) -> usize {
        self.offset.unwrap_or_else(|| self.bit_offset.unwrap_or(0) / 8)
    }
}

/// A C enumeration.
#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct Enumeration {
    pub(crate) size: usize,
    pub(crate) underlying: String,
    pub(crate) values: BTreeMap<String, i64>,
    pub(crate) file: String,
}

/// A function or the function that a callback type points to.
#[derive(Debug, Deserialize)]
pub(crate) struct Prototype {
    pub(crate) returns: String,
    pub(crate) params: Vec<Param>,
    pub(crate) file: String,
}

/// One parameter.
#[derive(Debug, Deserialize)]
pub(crate) struct Param {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) c_type: String,
}

/// One slot of an API table.
#[derive(Debug, Deserialize)]
pub(crate) struct Slot {
    pub(crate) name: String,
    pub(crate) function: String,
}

impl Facts {
    /// Reads one facts file.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is not in the schema of ABI facts", path.display()))
    }
}
