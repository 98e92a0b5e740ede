//! Reading JSON values, with errors that name what is wrong.

use anyhow::{Context, Result};
use serde_json::Value;

/// A number, or a string of hexadecimal digits after `0x`.
pub(super) fn number(value: &Value) -> Result<u64> {
    match value.as_str() {
        None => value.as_u64().with_context(|| format!("{value} is no number")),
        Some(text) => {
            let digits = text.strip_prefix("0x").with_context(|| format!("{text:?} is no number"))?;
            u64::from_str_radix(digits, 16).with_context(|| format!("{text:?} is no number"))
        }
    }
}

/// A number of at most 32 bits.
pub(super) fn small(value: &Value) -> Result<u32> {
    Ok(u32::try_from(number(value)?)?)
}

/// A list.
pub(super) fn list(value: &Value) -> Result<&[Value]> {
    Ok(value.as_array().with_context(|| format!("{value} is no list"))?)
}

/// A list of numbers.
pub(super) fn numbers(value: &Value) -> Result<Vec<u64>> {
    list(value)?.iter().map(number).collect()
}

/// A list of lists of numbers.
pub(super) fn rows(value: &Value) -> Result<Vec<Vec<u64>>> {
    list(value)?.iter().map(numbers).collect()
}

/// A string.
pub(super) fn text(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("{value} is no string"))
}

/// Dwords of eight hexadecimal digits each.
pub(super) fn dwords(value: &Value) -> Result<Vec<u32>> {
    Ok(wavescope_pm4::print::dwords_from_hex(text(value)?)?)
}
