//! C types, parsed from the spelling in the facts and written again in Rust's.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

/// A C type as far as the facts use them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CType {
    /// A name: builtin, struct, enum, alias or callback.
    Named(String),
    /// A pointer to data.
    Pointer { to: Box<CType>, is_const: bool },
    /// An array with its length.
    Array { of: Box<CType>, length: usize },
    /// A pointer to a function.
    Function { returns: Box<CType>, params: Vec<CType> },
    /// A pointer to the function of this name (`decltype(f) *`).
    PointerTo(String),
}

impl CType {
    /// Parses the spelling that libclang prints, e.g. `const char **` or `hsa_status_t (*)(hsa_agent_t, void *)`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if let Some(name) = text.strip_prefix("decltype(").and_then(|rest| rest.strip_suffix(") *")) {
            return Ok(Self::PointerTo(name.to_owned()));
        }
        if let Some(at) = find_outside(text, "(*)") {
            return parse_function(&text[..at], &text[at + "(*)".len()..]);
        }
        if let Some(rest) = text.strip_suffix(']') {
            return parse_array(rest);
        }
        if let Some(pointee) = text.strip_suffix('*') {
            let pointee = pointee.trim();
            // `const T *` points to a constant; in `const T **` the const belongs one level further in.
            let is_const = pointee.starts_with("const ") && !pointee.ends_with('*');
            return Ok(Self::Pointer { to: Box::new(Self::parse(pointee)?), is_const });
        }
        let words = text
            .split_whitespace()
            .filter(|word| !["const", "volatile", "struct", "union", "enum"].contains(word));
        match words.collect::<Vec<_>>()[..] {
            [name] if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                Ok(Self::Named(name.to_owned()))
            }
            _ => bail!("C type `{text}` is not understood"),
        }
    }

    /// Whether it is a pointer of any kind (data or function).
    pub(crate) fn is_pointer(&self) -> bool {
        matches!(self, Self::Pointer { .. } | Self::Function { .. } | Self::PointerTo(_))
    }

    /// Whether it is one of C's fixed-width integers.
    pub(crate) fn is_integer(&self) -> bool {
        matches!(self, Self::Named(name) if name.ends_with("_t") && name.trim_start_matches('u').starts_with("int"))
    }

    /// The Rust spelling. Names that the file must import are added to `uses`.
    pub(crate) fn rust(&self, uses: &mut BTreeSet<String>) -> String {
        match self {
            Self::Named(name) => rust_name(name, uses),
            Self::Pointer { to, is_const } => {
                format!("*{} {}", if *is_const { "const" } else { "mut" }, to.rust(uses))
            }
            Self::Array { of, length } => format!("[{}; {length}]", of.rust(uses)),
            Self::Function { returns, params } => {
                let params: Vec<_> = params.iter().map(|param| param.rust(uses)).collect();
                format!(
                    "Option<unsafe extern \"C-unwind\" fn({}){}>",
                    params.join(", "),
                    returns.rust_return(uses)
                )
            }
            Self::PointerTo(function) => format!("Option<pfn::{function}>"),
        }
    }

    /// ` -> T`, or nothing for `void`.
    pub(crate) fn rust_return(&self, uses: &mut BTreeSet<String>) -> String {
        match self {
            Self::Named(name) if name == "void" => String::new(),
            other => format!(" -> {}", other.rust(uses)),
        }
    }
}

fn rust_name(name: &str, uses: &mut BTreeSet<String>) -> String {
    let builtin = match name {
        "bool" => "bool",
        "size_t" => "usize",
        "uint8_t" => "u8",
        "uint16_t" => "u16",
        "uint32_t" => "u32",
        "uint64_t" => "u64",
        "int32_t" => "i32",
        "int64_t" => "i64",
        "void" => "core::ffi::c_void",
        "char" => "core::ffi::c_char",
        "int" => "core::ffi::c_int",
        _ => {
            uses.insert(name.to_owned());
            name
        }
    };
    builtin.to_owned()
}

fn parse_array(before_bracket: &str) -> Result<CType> {
    // In `T[2][3]` the first length is the outermost array's.
    let Some(open) = before_bracket.find('[') else { bail!("array `{before_bracket}]` has no `[`") };
    let lengths =
        before_bracket[open + 1..].split("][").map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let element = CType::parse(&before_bracket[..open])?;
    Ok(lengths.into_iter().rev().fold(element, |of, length| CType::Array { of: Box::new(of), length }))
}

fn parse_function(returns: &str, params: &str) -> Result<CType> {
    let inside = params.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let Some(inside) = inside else { bail!("parameters `{params}` are not in parentheses") };
    let params = split_outside(inside).into_iter().filter(|param| *param != "void" && !param.is_empty());
    let params = params.map(CType::parse).collect::<Result<_>>()?;
    Ok(CType::Function { returns: Box::new(CType::parse(returns)?), params })
}

/// Where `needle` stands outside all parentheses.
fn find_outside(text: &str, needle: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        if depth == 0 && text[at..].starts_with(needle) {
            return Some(at);
        }
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Splits at commas outside all parentheses.
fn split_outside(text: &str) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(at) = find_outside(rest, ",") {
        parts.push(rest[..at].trim());
        rest = &rest[at + 1..];
    }
    parts.push(rest.trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(c: &str) -> String {
        CType::parse(c).unwrap().rust(&mut BTreeSet::new())
    }

    #[test]
    fn const_stays_at_its_level() {
        assert_eq!(rust("const char **"), "*mut *const core::ffi::c_char");
        assert_eq!(rust("const uint32_t *"), "*const u32");
        assert_eq!(rust("volatile hsa_signal_value_t **"), "*mut *mut hsa_signal_value_t");
    }

    #[test]
    fn first_array_length_is_outermost() {
        assert_eq!(rust("uint32_t[4][2]"), "[[u32; 2]; 4]");
    }

    #[test]
    fn callbacks_may_take_callbacks() {
        assert_eq!(
            rust("hsa_status_t (*)(hsa_executable_t, void (*)(hsa_agent_t, void *), void *)"),
            "Option<unsafe extern \"C-unwind\" fn(hsa_executable_t, \
             Option<unsafe extern \"C-unwind\" fn(hsa_agent_t, *mut core::ffi::c_void)>, \
             *mut core::ffi::c_void) -> hsa_status_t>"
        );
        assert_eq!(
            rust("void *(*)(size_t)"),
            "Option<unsafe extern \"C-unwind\" fn(usize) -> *mut core::ffi::c_void>"
        );
        assert_eq!(rust("uint32_t (*)()"), "Option<unsafe extern \"C-unwind\" fn() -> u32>");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        assert!(CType::parse("unsigned long long").is_err());
        assert!(CType::parse("int &").is_err());
    }
}
