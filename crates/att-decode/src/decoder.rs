//! The decoder as callers see it.

use crate::emit::{Emitter, Wanted};
use crate::error::Error;
use crate::options::Options;
use crate::record::RecordSink;
use crate::session::{Outside, Session};
use crate::source::InstructionSource;
use crate::stream::{ChunkState, ChunkStream};

/// Decodes chunks, one after the other.
///
/// A chunk is normally all data of one shader engine. Chunks share the program lines and the records that come once;
/// all else starts fresh with each.
///
/// ```
/// use wavescope_att_decode::{Decoder, NoInstructions, Options, Record};
/// let chunk = [0x4_0003_c211u64.to_le_bytes(), [0; 8], [0; 8]].concat();
/// let mut decoder = Decoder::new(NoInstructions, Options::default());
/// decoder.decode(&chunk, &mut |record: Record<'_>| println!("{record:?}"))?;
/// # Ok::<(), wavescope_att_decode::Error>(())
/// ```
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
        let mut state = ChunkState::begin(chunk, self)?;
        let mut out = self.outside(sink);
        state.run(chunk, 0, true, &mut out)?;
        state.finish(&mut out);
        Ok(())
    }

    /// Begins a chunk that comes in pieces.
    pub fn stream(&mut self) -> ChunkStream<'_, S> {
        ChunkStream::new(self)
    }

    /// How it decodes.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The source of program lines.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Gives the source back.
    pub fn into_source(self) -> S {
        self.source
    }

    pub(crate) fn outside<'a>(&'a mut self, sink: &'a mut dyn RecordSink) -> Outside<'a> {
        let wanted = Wanted { records: self.options.records, immediate: self.options.immediate };
        Outside {
            session: &mut self.session,
            source: &mut self.source,
            emitter: Emitter::new(sink, wanted),
            limits: self.options.limits,
            recovery: self.options.recovery,
        }
    }
}
