//! From a C aggregate to a Rust one: which fields it stores, which members are only views of them.
//!
//! Three things of C have no direct counterpart:
//! - *Bit-fields* become getters and setters on the 32-bit word that holds them.
//! - An *anonymous union of numbers and pointers* stores its first member; the others are getters that see the same
//!   bytes. So `packet.header` stays one plain field.
//! - An *anonymous union of structs* becomes a Rust union of its own, in a field `anon_union`.
//!
//! [`Lowered::places`] remembers where each C member went, for the layout registry.

use anyhow::{Context, Result, bail};

use super::ctype::CType;
use super::facts::{Aggregate, AggregateKind, Field};

/// The Rust side of one C aggregate.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    pub(crate) is_union: bool,
    pub(crate) stored: Vec<Stored>,
    pub(crate) accessors: Vec<Accessor>,
    /// Aggregates without a tag that needed a name of their own; they come before the outer one.
    pub(crate) nested: Vec<(String, Lowered)>,
    pub(crate) places: Vec<Place>,
}

/// A field of the Rust type.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) c_type: CType,
    /// The C declaration, for the documentation.
    pub(crate) shown: String,
    pub(crate) offset: usize,
}

/// A member that is read (and, if bits, written) through methods.
#[derive(Debug)]
pub(crate) struct Accessor {
    pub(crate) name: String,
    pub(crate) kind: AccessorKind,
}

/// How an [`Accessor`] sees the stored bytes.
#[derive(Debug)]
pub(crate) enum AccessorKind {
    /// The bytes of one field, as another type.
    Cast { field: String, from_pointer: bool, c_type: CType },
    /// Two adjacent 16-bit fields as one word, the first in the low half.
    Halves { low: String, high: String },
    /// `width` bits from `shift` on.
    Bits { field: String, shift: usize, width: usize },
}

/// Where a C member lies in the Rust type.
#[derive(Debug)]
pub(crate) struct Place {
    /// The C path; a group without a name is `<anon>[k]`, counted within the outermost aggregate.
    pub(crate) path: String,
    pub(crate) kind: PlaceKind,
}

/// How the compiler is asked for a [`Place`].
#[derive(Debug)]
pub(crate) enum PlaceKind {
    /// A field, possibly of a union on the way.
    Field { expression: String, in_union: bool },
    /// Everything from one field to another.
    Span { first: String, last: String },
    /// A getter whose bytes begin at a field.
    View { field: String, getter: String },
    /// Bits behind a getter and a setter.
    Bits { field: String, getter: String },
}

/// Lowers `aggregate`, which is defined as `name`.
pub(crate) fn lower(name: &str, aggregate: &Aggregate) -> Result<Lowered> {
    let mut lowering = Lowering { owner: name, out: Lowered::default(), anonymous: 0 };
    let holds_bits = aggregate.fields.iter().any(|field| field.fields.iter().any(Field::is_bits));
    match aggregate.kind {
        AggregateKind::Struct => lowering.members(&aggregate.fields),
        // A union of one number and of bit-fields in it is that number.
        AggregateKind::Union if holds_bits => lowering.views(&aggregate.fields),
        AggregateKind::Union => {
            lowering.out.is_union = true;
            lowering.union_members(&aggregate.fields)
        }
    }
    .with_context(|| format!("in `{name}`"))?;
    Ok(lowering.out)
}

struct Lowering<'a> {
    owner: &'a str,
    out: Lowered,
    anonymous: usize,
}

impl Lowering<'_> {
    fn members(&mut self, fields: &[Field]) -> Result<()> {
        for field in fields {
            if field.is_bits() {
                self.loose_bits(field)?;
            } else if field.is_union() && field.fields.iter().all(is_number_like) {
                let path = self.next_anonymous();
                let first = self.out.stored.len();
                self.views(&field.fields)?;
                self.span(path, first);
            } else if field.is_union() {
                self.inner_union(field)?;
            } else if field.fields.is_empty() {
                self.store(field, &field.name)?;
            } else {
                bail!("a struct without a tag stands directly in a struct: {}", field.name);
            }
        }
        Ok(())
    }

    /// Stores a plain member; its place is known by `path`.
    fn store(&mut self, field: &Field, path: &str) -> Result<()> {
        let stored = stored(field)?;
        self.place(path, PlaceKind::Field { expression: stored.name.clone(), in_union: self.out.is_union });
        self.out.stored.push(stored);
        Ok(())
    }

    /// Bit-fields directly in a struct: the word around them is stored as `bits`.
    fn loose_bits(&mut self, field: &Field) -> Result<()> {
        let offset = field.bit_offset.unwrap_or(0) / 32 * 4;
        if self.out.stored.last().is_none_or(|last| last.offset != offset) {
            let shown = "uint32_t".to_owned();
            self.out.stored.push(Stored {
                name: "bits".into(),
                c_type: CType::parse("uint32_t")?,
                shown,
                offset,
            });
        }
        self.bits(field, "", "bits", offset)
    }

    fn bits(&mut self, field: &Field, group: &str, storage: &str, storage_offset: usize) -> Result<()> {
        let (Some(bit_offset), Some(width)) = (field.bit_offset, field.bit_width) else {
            bail!("`{}` is no bit-field", field.name);
        };
        let shift = bit_offset - storage_offset * 8;
        let member = snake_case(&field.name);
        let name = if group.is_empty() { member } else { format!("{group}_{member}") };
        let path = if group.is_empty() { field.name.clone() } else { format!("{group}.{}", field.name) };
        self.place(&path, PlaceKind::Bits { field: storage.to_owned(), getter: name.clone() });
        let kind = AccessorKind::Bits { field: storage.to_owned(), shift, width };
        self.out.accessors.push(Accessor { name, kind });
        Ok(())
    }

    /// The members of a union of numbers: the first is stored, the rest are views of it.
    fn views(&mut self, fields: &[Field]) -> Result<()> {
        let Some((primary, others)) = fields.split_first() else { bail!("empty union") };
        let first = self.out.stored.len();
        if primary.fields.is_empty() {
            self.store(primary, &primary.name)?;
        } else {
            let path = self.next_anonymous();
            for member in &primary.fields {
                self.store(member, &member.name)?;
            }
            self.span(path, first);
        }
        others.iter().try_for_each(|other| self.view(other, first))
    }

    fn view(&mut self, field: &Field, first: usize) -> Result<()> {
        let stored: Vec<_> = self.out.stored[first..].iter().map(|stored| stored.name.clone()).collect();
        let primary = &self.out.stored[first];
        if !field.fields.is_empty() {
            let offset = primary.offset;
            let path = if field.is_anonymous() { self.next_anonymous() } else { field.name.clone() };
            self.span(path, first);
            let group = if field.is_anonymous() { "" } else { field.name.as_str() };
            return field.fields.iter().try_for_each(|bits| self.bits(bits, group, &stored[0], offset));
        }
        let c_type = CType::parse(&field.c_type)?;
        let kind = match &stored[..] {
            [field] => {
                AccessorKind::Cast { field: field.clone(), from_pointer: primary.c_type.is_pointer(), c_type }
            }
            [low, high] if field.c_type == "uint32_t" => {
                AccessorKind::Halves { low: low.clone(), high: high.clone() }
            }
            _ => bail!("`{}` sees more fields than it can join", field.name),
        };
        let name = snake_case(&field.name);
        self.place(&field.name, PlaceKind::View { field: stored[0].clone(), getter: name.clone() });
        self.out.accessors.push(Accessor { name, kind });
        Ok(())
    }

    /// A union of structs without a tag: a Rust union with a name of its own.
    fn inner_union(&mut self, field: &Field) -> Result<()> {
        let path = self.next_anonymous();
        let type_name = format!("{}_anon_union_t", self.stem());
        let mut inner = Lowered { is_union: true, ..Lowered::default() };
        let name = "anon_union".to_owned();
        self.place(&path, PlaceKind::Field { expression: name.clone(), in_union: false });
        for member in &field.fields {
            let expression = format!("{name}.{}", member.name);
            self.place(&member.name, PlaceKind::Field { expression: expression.clone(), in_union: true });
            inner.stored.push(self.union_member(member, &expression)?);
        }
        let stored = Stored {
            name,
            c_type: CType::Named(type_name.clone()),
            shown: "union".to_owned(),
            offset: field.byte_offset(),
        };
        self.out.stored.push(stored);
        self.out.nested.push((type_name, inner));
        Ok(())
    }

    /// One member of a Rust union; a struct without a tag gets a name.
    fn union_member(&mut self, member: &Field, expression: &str) -> Result<Stored> {
        if member.fields.is_empty() {
            return stored(member);
        }
        let type_name = format!("{}_{}_t", self.stem(), member.name);
        let mut inner = Lowered::default();
        for field in &member.fields {
            let path = format!("{}.{}", member.name, field.name);
            let expression = format!("{expression}.{}", rust_field(&field.name));
            self.place(&path, PlaceKind::Field { expression, in_union: true });
            inner.stored.push(stored(field)?);
        }
        self.out.nested.push((type_name.clone(), inner));
        let c_type = CType::Named(type_name);
        Ok(Stored {
            name: rust_field(&member.name),
            c_type,
            shown: "struct".into(),
            offset: member.byte_offset(),
        })
    }

    fn union_members(&mut self, fields: &[Field]) -> Result<()> {
        fields.iter().try_for_each(|field| self.store(field, &field.name))
    }

    fn stem(&self) -> &str {
        self.owner.strip_suffix("_t").unwrap_or(self.owner)
    }

    fn next_anonymous(&mut self) -> String {
        self.anonymous += 1;
        format!("<anon>[{}]", self.anonymous - 1)
    }

    fn span(&mut self, path: String, first: usize) {
        let names = &self.out.stored[first..];
        if let (Some(first), Some(last)) = (names.first(), names.last()) {
            let kind = PlaceKind::Span { first: first.name.clone(), last: last.name.clone() };
            self.place(&path, kind);
        }
    }

    fn place(&mut self, path: &str, kind: PlaceKind) {
        self.out.places.push(Place { path: path.to_owned(), kind });
    }
}

/// A number, a pointer, or a struct without a tag of nothing but these.
fn is_number_like(field: &Field) -> bool {
    if field.fields.is_empty() {
        return CType::parse(&field.c_type).is_ok_and(|c_type| c_type.is_pointer() || c_type.is_integer());
    }
    !field.is_union() && field.fields.iter().all(is_number_like)
}

fn stored(field: &Field) -> Result<Stored> {
    let shown = field.c_type.clone();
    Ok(Stored {
        name: rust_field(&field.name),
        c_type: CType::parse(&field.c_type)?,
        shown,
        offset: field.byte_offset(),
    })
}

/// A C member's name, with `_` behind it where Rust has a keyword.
pub(crate) fn rust_field(name: &str) -> String {
    match name {
        "type" | "ref" | "in" | "fn" | "mod" | "use" | "move" | "match" | "box" | "impl" => {
            format!("{name}_")
        }
        _ => name.to_owned(),
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.trim_start_matches('_').chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lowered(kind: &str, fields: serde_json::Value) -> Lowered {
        let fact = json!({ "kind": kind, "size": 8, "align": 4, "file": "h", "fields": fields });
        lower("thing_t", &serde_json::from_value(fact).unwrap()).unwrap()
    }

    fn stored(lowered: &Lowered) -> Vec<(&str, usize)> {
        lowered.stored.iter().map(|stored| (stored.name.as_str(), stored.offset)).collect()
    }

    #[test]
    fn adjacent_bit_fields_share_one_stored_word() {
        let bits = |name: &str, at: usize| json!({ "name": name, "type": "uint32_t", "bit_offset": at, "bit_width": 1 });
        let lowered = lowered("struct", json!([bits("isUnload", 32), bits("fromStart", 33)]));
        assert_eq!(stored(&lowered), [("bits", 4)]);
        let accessors: Vec<_> = lowered.accessors.iter().map(|accessor| accessor.name.as_str()).collect();
        assert_eq!(accessors, ["is_unload", "from_start"]);
        assert!(matches!(lowered.accessors[1].kind, AccessorKind::Bits { shift: 1, width: 1, .. }));
    }

    #[test]
    fn a_union_of_numbers_stores_its_first_member_and_shows_the_rest() {
        let lowered = lowered(
            "struct",
            json!([{ "name": "<anon union>", "type": "union <anon>", "offset": 0, "fields": [
            { "name": "value", "type": "volatile int64_t", "offset": 0 },
            { "name": "pointer", "type": "volatile uint64_t *", "offset": 0 },
        ] }]),
        );
        assert_eq!(stored(&lowered), [("value", 0)]);
        assert_eq!(lowered.accessors[0].name, "pointer");
        let paths: Vec<_> = lowered.places.iter().map(|place| place.path.as_str()).collect();
        assert_eq!(paths, ["value", "pointer", "<anon>[0]"]);
    }

    #[test]
    fn a_union_of_structs_becomes_a_union() {
        let lowered = lowered(
            "struct",
            json!([{ "name": "<anon union>", "type": "union <anon>", "offset": 8, "fields": [
            { "name": "fault", "type": "fault_info_t", "offset": 8 },
            { "name": "data", "type": "struct <anon>", "offset": 8, "fields": [
                { "name": "result", "type": "uint64_t", "offset": 8 },
            ] },
        ] }]),
        );
        assert_eq!(stored(&lowered), [("anon_union", 8)]);
        let nested: Vec<_> = lowered.nested.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(nested, ["thing_data_t", "thing_anon_union_t"]);
    }

    #[test]
    fn keywords_get_an_underscore() {
        assert_eq!(
            stored(&lowered("struct", json!([{ "name": "type", "type": "uint16_t", "offset": 2 }]))),
            [("type_", 2)]
        );
    }
}
