//! The members of an aggregate as the facts give them, nested groups unfolded into paths.

use serde_json::Value;

use crate::registry::BitSpan;

/// One member of the facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// As [`crate::Field::path`].
    pub(crate) path: String,
    /// Where C put it; `None` when the facts are malformed.
    pub(crate) place: Option<MemberPlace>,
}

/// Where C put a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberPlace {
    /// Offset and size.
    Bytes(usize, usize),
    /// Bits.
    Bits(BitSpan),
}

/// All members below `aggregate`, a group before its own members.
pub(crate) fn members(aggregate: &Value) -> Vec<Member> {
    let mut walk = Walk::default();
    walk.fields(aggregate, "");
    walk.members
}

#[derive(Default)]
struct Walk {
    members: Vec<Member>,
    anonymous: usize,
}

impl Walk {
    fn fields(&mut self, aggregate: &Value, prefix: &str) {
        for field in aggregate["fields"].as_array().into_iter().flatten() {
            let name = field["name"].as_str().unwrap_or("<unnamed>");
            let is_anonymous = name.starts_with("<anon");
            let path = if is_anonymous { self.next_anonymous() } else { format!("{prefix}{name}") };
            let inner = if is_anonymous { prefix.to_owned() } else { format!("{path}.") };
            self.members.push(Member { path, place: place(field) });
            self.fields(field, &inner);
        }
    }

    fn next_anonymous(&mut self) -> String {
        self.anonymous += 1;
        format!("<anon>[{}]", self.anonymous - 1)
    }
}

fn place(field: &Value) -> Option<MemberPlace> {
    let number = |key: &str| field[key].as_u64().map(|number| number as usize);
    match (number("bit_offset"), number("bit_width")) {
        (Some(bit_offset), Some(bit_width)) => Some(MemberPlace::Bits(BitSpan { bit_offset, bit_width })),
        _ => Some(MemberPlace::Bytes(number("offset")?, number("size")?)),
    }
}
