//! Sizes of C types on x86-64 Linux, from their spelling and from the facts.

use serde_json::Value;

/// Looks sizes up.
pub(super) struct CSizes<'a> {
    facts: &'a Value,
}

impl<'a> CSizes<'a> {
    /// Sizes for the types of `facts`.
    pub(super) fn new(facts: &'a Value) -> Self {
        Self { facts }
    }

    /// The size of `c_type`, as written in the facts; `None` for a type that nothing declares.
    pub(super) fn of(&self, c_type: &str) -> Option<usize> {
        if c_type.ends_with('*') || c_type.contains("(*)") {
            return Some(size_of::<*const u8>());
        }
        let name =
            c_type.trim_start_matches("const ").trim_start_matches("volatile ").trim_start_matches("struct ");
        builtin(name).or_else(|| self.declared(name))
    }

    fn declared(&self, name: &str) -> Option<usize> {
        if !self.facts["callbacks"][name].is_null() {
            return Some(size_of::<fn()>());
        }
        let measured = |section: &str| self.facts[section][name]["size"].as_u64().map(|size| size as usize);
        let aliased = || self.facts["aliases"][name].as_str().and_then(|target| self.of(target));
        measured("structs").or_else(|| measured("enums")).or_else(aliased).or_else(|| of_hsa(name))
    }
}

fn builtin(name: &str) -> Option<usize> {
    Some(match name {
        "void" => 0,
        "bool" | "uint8_t" | "char" => 1,
        "uint16_t" => 2,
        "uint32_t" | "int32_t" | "int" => 4,
        "uint64_t" | "int64_t" | "size_t" => 8,
        _ => return None,
    })
}

/// Types of HSA that aqlprofile's facts use without declaring them: a 32-bit enumeration and a handle.
fn of_hsa(name: &str) -> Option<usize> {
    match name {
        "hsa_status_t" => Some(4),
        "hsa_agent_t" | "hsa_signal_t" => Some(8),
        _ => None,
    }
}
