//! The decoder as callers see it.

use crate::emit::{Emitter, Wanted};
use crate::error::Error;
use crate::generation::{Generation, first_word};
use crate::gfx9::Gfx9Decoder;
use crate::rdna::RdnaDecoder;
use crate::record::{RecordKind, RecordSet, RecordSink};
use crate::session::{Outside, Session};
use crate::source::InstructionSource;

/// What to deliver and how.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Kinds of record to deliver. Work for kinds that are left out is left out too.
    pub records: RecordSet,
    /// Kinds to deliver one by one as they are made, of those in [`RecordSet::IMMEDIATE`].
    pub immediate: RecordSet,
}

impl Default for Options {
    /// Everything the public decoder delivers, in blocks.
    fn default() -> Self {
        Options { records: RecordSet::ALL.without(RecordKind::Loss), immediate: RecordSet::NONE }
    }
}

/// Decodes chunks, one after the other.
///
/// A chunk is normally all data of one shader engine. Chunks share the program lines and the records that come once;
/// all else starts fresh with each.
#[derive(Debug, Default)]
pub struct Decoder<S> {
    source: S,
    options: Options,
    session: Session,
}

impl<S: InstructionSource> Decoder<S> {
    /// A decoder that gets program lines from `source`.
    pub fn new(source: S, options: Options) -> Self {
        Decoder { source, options, session: Session::default() }
    }

    /// Decodes a chunk that is all in memory.
    ///
    /// # Errors
    ///
    /// Every [`Error`] means the chunk cannot be decoded (further). Records delivered before stay valid.
    pub fn decode(&mut self, chunk: &[u8], sink: &mut dyn RecordSink) -> Result<(), Error> {
        let generation = Generation::of_chunk(chunk)?;
        let wanted = Wanted { records: self.options.records, immediate: self.options.immediate };
        let mut out = Outside {
            session: &mut self.session,
            source: &mut self.source,
            emitter: Emitter::new(sink, wanted),
        };
        if generation == Generation::Gfx9 {
            if chunk.len() == Generation::HEADER_BYTES {
                return Err(Error::EmptyGfx9);
            }
            out.tell_gfxip(generation.gfxip());
            let mut decoder = Gfx9Decoder::new(first_word(chunk)?, &out);
            decoder.run(chunk, 0, true, &mut out)?;
            decoder.finish(&mut out);
            return Ok(());
        }
        out.tell_gfxip(generation.gfxip());
        let mut decoder = RdnaDecoder::new(generation, &out);
        decoder.run(chunk, 0, true, &mut out);
        decoder.finish(&mut out);
        Ok(())
    }

    /// Gives the source back.
    pub fn into_source(self) -> S {
        self.source
    }
}
