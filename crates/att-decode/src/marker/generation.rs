//! Markers of one wave, from its start to its end.

use std::sync::Arc;

use super::map::FunctionMap;
use crate::record::{Marker, MarkerFlags, MarkerKind, MarkerRecordKind, Pc, ShaderData};

/// A decoded marker that keeps the map alive which its names are in.
#[derive(Debug, Clone)]
pub(super) struct Decoded {
    map: Arc<FunctionMap>,
    word: ShaderData,
    entry: Pc,
    id: u32,
    record_kind: MarkerRecordKind,
    flags: MarkerFlags,
    payload_index: u32,
    payload_count: u32,
}

impl Decoded {
    /// As a record.
    pub(super) fn marker(&self) -> Marker<'_> {
        let named = self.map.get(self.id);
        Marker {
            shader_data: self.word,
            kernel_entry: self.entry,
            code_object_id: self.entry.code_object_id,
            name: named.map_or("", |named| &named.name),
            source_location: named.map_or("", |named| &named.location),
            marker_id: self.id,
            record_kind: self.record_kind,
            kind: named.map_or(MarkerKind::Unknown, |named| named.kind),
            flags: self.flags,
            payload_index: self.payload_index,
            payload_count: self.payload_count,
            delay: 0,
        }
    }
}

/// Payload words that follow a marker.
#[derive(Debug, Clone, Copy)]
struct Payload {
    id: u32,
    flags: MarkerFlags,
    next: u32,
    count: u32,
}

/// State of one wave's markers.
#[derive(Debug, Clone)]
pub(super) struct Generation {
    pub(super) entry: Pc,
    /// The map of its code object, once that is known.
    map: Option<Arc<FunctionMap>>,
    /// Words that wait for the map.
    pub(super) held: Vec<ShaderData>,
    scopes: Vec<u32>,
    payload: Option<Payload>,
    has_begun: bool,
}

/// Scopes that may be open at a time. Deeper ones are not closed by name.
const MAX_SCOPES: usize = 4096;

impl Generation {
    pub(super) fn new(entry: Pc) -> Self {
        Generation { entry, map: None, held: Vec::new(), scopes: Vec::new(), payload: None, has_begun: false }
    }

    pub(super) fn is_resolved(&self) -> bool {
        self.map.is_some()
    }

    /// The code object is known: words held until now are decoded.
    pub(super) fn resolve(&mut self, entry: Pc, map: Arc<FunctionMap>, out: &mut Vec<Decoded>) {
        self.entry = entry;
        self.map = Some(map);
        for word in std::mem::take(&mut self.held) {
            self.take(word, out);
        }
    }

    /// Takes a word of a resolved generation.
    pub(super) fn take(&mut self, word: ShaderData, out: &mut Vec<Decoded>) {
        let Some(map) = self.map.clone() else { return };
        if let Some(payload) = self.payload {
            let Payload { id, flags, next, count } = payload;
            out.push(self.decoded(map, word, id, MarkerRecordKind::Payload, flags, next, count));
            self.payload = (next + 1 < count).then_some(Payload { next: next + 1, ..payload });
            return;
        }
        let value = word.value as u32;
        let flags = MarkerFlags(value & 3);
        let (exits, enters) = (value & 1 == 1, value & 2 == 2);
        let is_bare_exit = |id: u32| id == 0 && exits && !enters;
        let id = marker_id(&map, value, is_bare_exit);
        let Some(entry) = map.get(id) else {
            if is_bare_exit(id)
                && let Some(scope) = self.scopes.pop()
            {
                self.header(map, word, scope, flags, 0, out);
            }
            return;
        };
        if exits {
            self.scopes.pop();
        }
        if enters && entry.kind != MarkerKind::Point && self.scopes.len() < MAX_SCOPES {
            self.scopes.push(id);
        }
        let count = map.payload_words(id);
        let flags = self.header(map, word, id, flags, count, out);
        if count > 0 {
            self.payload = Some(Payload { id, flags, next: 0, count });
        }
    }

    /// Adds a header record; returns its flags.
    fn header(
        &mut self,
        map: Arc<FunctionMap>,
        word: ShaderData,
        id: u32,
        mut flags: MarkerFlags,
        count: u32,
        out: &mut Vec<Decoded>,
    ) -> MarkerFlags {
        if !std::mem::replace(&mut self.has_begun, true) {
            flags.0 |= MarkerFlags::NEW_WAVE.0;
        }
        let index = Marker::NO_PAYLOAD;
        out.push(self.decoded(map, word, id, MarkerRecordKind::Header, flags, index, count));
        flags
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a record, none of which belong together")]
    fn decoded(
        &self,
        map: Arc<FunctionMap>,
        word: ShaderData,
        id: u32,
        record_kind: MarkerRecordKind,
        flags: MarkerFlags,
        payload_index: u32,
        payload_count: u32,
    ) -> Decoded {
        Decoded { map, word, entry: self.entry, id, record_kind, flags, payload_index, payload_count }
    }
}

/// Id of a marker word: without the clock bits if that id is known or none is needed, else with them.
fn marker_id(map: &FunctionMap, value: u32, is_bare_exit: impl Fn(u32) -> bool) -> u32 {
    let plain = value >> 2;
    let clock_bits = map.clock_bits();
    if clock_bits == 0 {
        return plain;
    }
    let short = (u64::from(value) & ((1 << (32 - clock_bits)) - 1)) as u32 >> 2;
    if map.get(short).is_some() || is_bare_exit(short) { short } else { plain }
}
