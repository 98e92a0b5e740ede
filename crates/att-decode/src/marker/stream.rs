//! Markers of all waves of a chunk.

use std::collections::HashMap;

use super::generation::{Decoded, Generation};
use crate::emit::{BLOCK, Emitter};
use crate::program::CodeObjects;
use crate::record::{Marker, Pc, Record, RecordKind, ShaderData};
use crate::source::InstructionSource;

/// Words that may wait for their code object to become known, over all waves.
const MAX_HELD: usize = 1 << 20;

/// Where a wave runs: compute unit, SIMD, slot.
type Place = (u8, u8, u8);

/// Marker state of a chunk.
#[derive(Debug, Default)]
pub(crate) struct MarkerStream {
    running: HashMap<Place, Generation>,
    /// Waves without end whose place another wave took; their code object may still become known.
    displaced: Vec<Generation>,
    held: usize,
    decoded: Vec<Decoded>,
}

impl MarkerStream {
    /// A wave starts.
    pub(crate) fn start(&mut self, place: Place, entry: Pc, source: &mut dyn InstructionSource) {
        let mut generation = Generation::new(entry);
        if entry.code_object_id != 0
            && let Some(map) = source.function_map(entry.code_object_id)
        {
            generation.resolve(entry, map, &mut self.decoded);
        }
        let before = self.running.insert(place, generation);
        self.displaced.extend(before.filter(|before| !before.held.is_empty()));
    }

    /// A wave ends.
    pub(crate) fn end(&mut self, place: Place, code: &CodeObjects, source: &mut dyn InstructionSource) {
        if let Some(generation) = self.running.remove(&place) {
            self.close(generation, code, source);
        }
    }

    /// A wave wrote a word.
    pub(crate) fn word(&mut self, word: ShaderData, emitter: &mut Emitter<'_>) {
        if word.flags & ShaderData::PRIVILEGED != 0 {
            return;
        }
        let place = (word.cu, word.simd, word.wave_id);
        let Some(generation) = self.running.get_mut(&place) else { return };
        if generation.is_resolved() {
            generation.take(word, &mut self.decoded);
            if self.decoded.len() >= BLOCK || emitter.is_immediate(RecordKind::Marker) {
                self.flush(emitter);
            }
        } else if self.held < MAX_HELD {
            self.held += 1;
            generation.held.push(word);
        } else if let Some(dropped) = self.running.remove(&place) {
            self.held -= dropped.held.len();
        }
    }

    /// Packets were lost: which words belong to running waves is not known until their next start.
    pub(crate) fn lose(&mut self) {
        self.running.clear();
        self.displaced.clear();
        self.held = 0;
    }

    /// The chunk ends: what can be resolved now is resolved, and everything is handed over.
    pub(crate) fn finish(&mut self, code: &CodeObjects, source: &mut dyn InstructionSource) {
        let mut open: Vec<_> = self.running.drain().collect();
        open.sort_by_key(|(place, _)| *place);
        let displaced = std::mem::take(&mut self.displaced);
        for generation in displaced.into_iter().chain(open.into_iter().map(|(_, generation)| generation)) {
            self.close(generation, code, source);
        }
    }

    fn close(&mut self, mut generation: Generation, code: &CodeObjects, source: &mut dyn InstructionSource) {
        self.held -= generation.held.len();
        if generation.is_resolved() || generation.held.is_empty() {
            return;
        }
        let entry = code.resolve_late(generation.entry);
        if entry.code_object_id != 0
            && let Some(map) = source.function_map(entry.code_object_id)
        {
            generation.resolve(entry, map, &mut self.decoded);
        }
    }

    /// Hands over what is decoded.
    pub(crate) fn flush(&mut self, emitter: &mut Emitter<'_>) {
        if !self.decoded.is_empty() {
            let markers: Vec<Marker<'_>> = self.decoded.iter().map(Decoded::marker).collect();
            emitter.emit(Record::Markers(&markers));
        }
        self.decoded.clear();
    }
}
