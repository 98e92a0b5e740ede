//! Function entries, exits and points marked by shaders.

use super::{Pc, ShaderData};

/// Whether a marker record is a marker or one of its payload words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum MarkerRecordKind {
    /// The marker.
    Header = 0,
    /// A word that follows it.
    Payload = 1,
}

/// What a marker stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum MarkerKind {
    /// Not in the map.
    Unknown = 0,
    /// A function.
    Function = 1,
    /// A scope named by the user.
    UserScope = 2,
    /// A point.
    Point = 3,
}

/// How a marker changes the scopes of its wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MarkerFlags(pub u32);

impl MarkerFlags {
    /// The innermost scope is left first.
    pub const EXIT_PREVIOUS: MarkerFlags = MarkerFlags(1);
    /// A scope is entered.
    pub const ENTER: MarkerFlags = MarkerFlags(2);
    /// First marker of its wave.
    pub const NEW_WAVE: MarkerFlags = MarkerFlags(4);
}

/// A marker written by a shader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker<'a> {
    /// The word it was decoded from.
    pub shader_data: ShaderData,
    /// Kernel entry of its wave.
    pub kernel_entry: Pc,
    /// Code object whose map names it.
    pub code_object_id: u64,
    /// Name, empty where the map has none.
    pub name: &'a str,
    /// Source location, empty where the map has none.
    pub source_location: &'a str,
    /// Identifier in the map.
    pub marker_id: u32,
    /// Marker or payload.
    pub record_kind: MarkerRecordKind,
    /// What it stands for.
    pub kind: MarkerKind,
    /// How it changes the scopes.
    pub flags: MarkerFlags,
    /// Number of the payload word, [`Marker::NO_PAYLOAD`] in headers.
    pub payload_index: u32,
    /// Number of payload words that follow a header.
    pub payload_count: u32,
    /// Always 0.
    pub delay: i32,
}

impl Marker<'_> {
    /// Payload index of a header.
    pub const NO_PAYLOAD: u32 = u32::MAX;
}
