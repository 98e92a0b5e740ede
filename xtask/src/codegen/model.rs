//! What the facts mean when the files are taken together: which name defines a type and which are other names of it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use super::ctype::CType;
use super::facts::{Aggregate, Enumeration, Facts};

/// All facts, with names resolved.
pub(crate) struct Model {
    /// `hsa.json`, then `aqlprofile.json`.
    pub(crate) files: Vec<Facts>,
    /// Struct tag to the typedef that we define it under.
    typedef_of_tag: BTreeMap<String, String>,
}

/// A type with its other names.
pub(crate) struct Defined<'a, T> {
    pub(crate) name: &'a str,
    pub(crate) other_names: Vec<&'a str>,
    pub(crate) fact: &'a T,
}

impl Model {
    /// Resolves the names of `files`.
    pub(crate) fn new(files: Vec<Facts>) -> Self {
        let aliases = files.iter().flat_map(|facts| &facts.aliases);
        let tag = |(alias, target): (&String, &String)| {
            target.strip_prefix("struct ").map(|tag| (tag.to_owned(), alias.to_owned()))
        };
        let typedef_of_tag = aliases.filter_map(tag).collect();
        Self { files, typedef_of_tag }
    }

    /// Structs and unions of one file under their defining name (the typedef, not the tag), tables not included.
    pub(crate) fn aggregates<'a>(&'a self, facts: &'a Facts) -> Vec<Defined<'a, Aggregate>> {
        let is_other_name = |name: &str| {
            let defining = self.defining_name(facts, name);
            defining != name && self.is_same_type(name, defining)
        };
        let define = |(name, fact): (&'a String, &'a Aggregate)| Defined {
            name: name.as_str(),
            other_names: facts
                .structs
                .keys()
                .map(String::as_str)
                .filter(|other| is_other_name(other) && self.defining_name(facts, other) == name)
                .collect(),
            fact,
        };
        facts.structs.iter().filter(|(name, _)| !is_other_name(name)).map(define).collect()
    }

    /// Whether two names of a struct mean one type: `__ALIGNED__` on a typedef makes it differ from its tag.
    fn is_same_type(&self, one: &str, other: &str) -> bool {
        let layout = |name: &str| self.aggregate(name).map(|aggregate| (aggregate.size, aggregate.align));
        layout(one) == layout(other)
    }

    /// Follows tags and aliases to the name that the type is defined under.
    fn defining_name<'a>(&'a self, facts: &'a Facts, name: &'a str) -> &'a str {
        if let Some(typedef) = self.typedef_of_tag.get(name) {
            return typedef;
        }
        match facts.aliases.get(name) {
            Some(target) if !target.starts_with("struct ") => self.defining_name(facts, target),
            _ => name,
        }
    }

    /// Enumerations of one file; a tag and its typedef have the same enumerators and become one.
    pub(crate) fn enumerations<'a>(&self, facts: &'a Facts) -> Vec<Defined<'a, Enumeration>> {
        let mut defined: Vec<Defined<'a, Enumeration>> = Vec::new();
        // Typedefs first, so that they define and the tags are the other names.
        let mut names: Vec<_> = facts.enums.iter().collect();
        names.sort_by_key(|(name, _)| (!name.ends_with("_t"), *name));
        for (name, fact) in names {
            match defined.iter_mut().find(|known| known.fact == fact) {
                Some(known) => known.other_names.push(name),
                None => defined.push(Defined { name, other_names: Vec::new(), fact }),
            }
        }
        defined.sort_by_key(|enumeration| enumeration.name);
        defined
    }

    /// The API tables of one file.
    pub(crate) fn tables<'a>(&self, facts: &'a Facts) -> Vec<Defined<'a, Aggregate>> {
        let define =
            |(name, fact): (&'a String, &'a Aggregate)| Defined { name, other_names: Vec::new(), fact };
        facts.api_tables.iter().map(define).collect()
    }

    /// Enumerators that belong to the enumeration `name` although C declares them in one without a name: the AMD
    /// extension adds statuses to `hsa_status_t` that way.
    pub(crate) fn more_values_of(&self, name: &str) -> Vec<(String, i64)> {
        if name != "hsa_status_t" {
            return Vec::new();
        }
        let nameless = self.files.iter().flat_map(|facts| &facts.enums).filter(|(name, _)| is_nameless(name));
        let statuses =
            nameless.flat_map(|(_, fact)| &fact.values).filter(|(value, _)| value.starts_with("HSA_STATUS_"));
        statuses.map(|(value, number)| (value.clone(), *number)).collect()
    }

    /// Aliases that stand for a number or for another alias, not for a struct.
    pub(crate) fn scalar_aliases<'a>(&self, facts: &'a Facts) -> Vec<(&'a str, &'a str)> {
        let plain = |(alias, target): (&'a String, &'a String)| {
            let is_struct = target.starts_with("struct ") || facts.structs.contains_key(alias);
            (!is_struct).then_some((alias.as_str(), target.as_str()))
        };
        facts.aliases.iter().filter_map(plain).collect()
    }

    /// Whether `alias` names a struct whose members no fact gives.
    pub(crate) fn is_opaque_alias(&self, facts: &Facts, alias: &str) -> bool {
        let tag = facts.aliases.get(alias).and_then(|target| target.strip_prefix("struct "));
        tag.is_some_and(|tag| self.aggregate(tag).is_none() && self.aggregate(alias).is_none())
    }

    /// Names of structs of which the facts give no members: they can only be pointed to.
    pub(crate) fn opaque_names(&self) -> Result<BTreeSet<String>> {
        let mut used = BTreeSet::new();
        for facts in &self.files {
            for prototype in facts.functions.values().chain(facts.callbacks.values()) {
                CType::parse(&prototype.returns)?.rust(&mut used);
                for param in &prototype.params {
                    CType::parse(&param.c_type)?.rust(&mut used);
                }
            }
        }
        used.retain(|name| !self.declares(name));
        for facts in &self.files {
            used.extend(facts.aliases.keys().filter(|alias| self.is_opaque_alias(facts, alias)).cloned());
        }
        Ok(used)
    }

    fn declares(&self, name: &str) -> bool {
        self.files.iter().any(|facts| {
            facts.structs.contains_key(name)
                || facts.enums.contains_key(name)
                || facts.callbacks.contains_key(name)
                || facts.aliases.contains_key(name)
                || facts.api_tables.contains_key(name)
        })
    }

    /// Whether the facts give the prototype of `function`.
    pub(crate) fn knows_function(&self, function: &str) -> bool {
        self.files.iter().any(|facts| facts.functions.contains_key(function))
    }

    /// Whether `name` is a callback type.
    pub(crate) fn is_callback(&self, name: &str) -> bool {
        self.files.iter().any(|facts| facts.callbacks.contains_key(name))
    }

    /// The struct, union or table called `name`.
    pub(crate) fn aggregate(&self, name: &str) -> Option<&Aggregate> {
        self.files.iter().find_map(|facts| facts.structs.get(name).or_else(|| facts.api_tables.get(name)))
    }

    /// The alignment that C gives a member of type `c_type`.
    pub(crate) fn align_of(&self, c_type: &CType) -> Result<usize> {
        match c_type {
            CType::Array { of, .. } => self.align_of(of),
            CType::Named(name) => self.align_of_name(name),
            pointer => Ok(if pointer.is_pointer() { 8 } else { 1 }),
        }
    }

    fn align_of_name(&self, name: &str) -> Result<usize> {
        let builtin = match name {
            "bool" | "uint8_t" | "char" => 1,
            "uint16_t" => 2,
            "uint32_t" | "int32_t" | "int" => 4,
            "uint64_t" | "int64_t" | "size_t" => 8,
            _ => 0,
        };
        let declared = || self.files.iter().find_map(|facts| declared_align(facts, name));
        let alias = || self.files.iter().find_map(|facts| facts.aliases.get(name));
        match (builtin, declared()) {
            (0, Some(align)) => Ok(align),
            (0, None) => self
                .align_of(&CType::parse(alias().with_context(|| format!("`{name}` is nowhere declared"))?)?),
            (align, _) => Ok(align),
        }
    }
}

fn declared_align(facts: &Facts, name: &str) -> Option<usize> {
    let aggregate =
        facts.structs.get(name).or_else(|| facts.api_tables.get(name)).map(|aggregate| aggregate.align);
    let enumeration = || facts.enums.get(name).map(|enumeration| enumeration.size);
    let callback = || facts.callbacks.contains_key(name).then_some(8);
    aggregate.or_else(enumeration).or_else(callback)
}

/// Whether an enumeration has no name in C; the facts then call it after its first enumerator.
pub(crate) fn is_nameless(name: &str) -> bool {
    name.starts_with("anonymous:")
}
