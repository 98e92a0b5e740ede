//! Chunks that come in pieces of any size.

use crate::decoder::Decoder;
use crate::error::Error;
use crate::generation::{Generation, first_word};
use crate::gfx9::Gfx9Decoder;
use crate::marker::MarkerStream;
use crate::rdna::RdnaDecoder;
use crate::record::{RecordKind, RecordSink};
use crate::session::Outside;
use crate::source::InstructionSource;

/// Bytes that may be needed behind a place before what stands there can be decoded.
const MARGIN: usize = 64;

/// State of a chunk on its way through the decoder of its family.
#[derive(Debug)]
pub(crate) enum ChunkState {
    Gfx9(Box<Gfx9Decoder>),
    Rdna(Box<RdnaDecoder>),
}

impl ChunkState {
    /// Names the format from the first bytes of a chunk that has at least one byte behind its header.
    pub(crate) fn begin<S: InstructionSource>(chunk: &[u8], decoder: &Decoder<S>) -> Result<Self, Error> {
        let generation = Generation::of_chunk(chunk)?;
        let options = decoder.options();
        let has_markers =
            options.records.contains(RecordKind::Marker) && decoder.source().has_function_maps();
        let markers = has_markers.then(Box::<MarkerStream>::default);
        Ok(match generation {
            Generation::Gfx9 if chunk.len() == Generation::HEADER_BYTES => return Err(Error::EmptyGfx9),
            Generation::Gfx9 => {
                let decoder = Gfx9Decoder::new(first_word(chunk)?, options).with_markers(markers);
                ChunkState::Gfx9(Box::new(decoder))
            }
            rdna => ChunkState::Rdna(Box::new(RdnaDecoder::new(rdna, options).with_markers(markers))),
        })
    }

    /// Decodes what can be decoded of `data`, the chunk from its byte `base` on. Returns the number of bytes that are
    /// not needed any more.
    pub(crate) fn run(
        &mut self,
        data: &[u8],
        base: u64,
        is_last: bool,
        out: &mut Outside<'_>,
    ) -> Result<usize, Error> {
        match self {
            ChunkState::Gfx9(decoder) => {
                out.tell_gfxip(Generation::Gfx9.gfxip());
                decoder.run(data, base, is_last, out)
            }
            ChunkState::Rdna(decoder) => {
                out.tell_gfxip(decoder.gfxip());
                Ok(decoder.run(data, base, is_last, out))
            }
        }
    }

    /// Hands everything over that waits for the end of the chunk.
    pub(crate) fn finish(&mut self, out: &mut Outside<'_>) {
        match self {
            ChunkState::Gfx9(decoder) => decoder.finish(out),
            ChunkState::Rdna(decoder) => decoder.finish(out),
        }
    }
}

/// A chunk that comes in pieces. The records are the same however it is cut.
///
/// With [`Options::streaming`](crate::Options::streaming) memory is bounded, whatever the length of the chunk.
///
/// ```
/// use wavescope_att_decode::{Decoder, NoInstructions, Options, Record};
/// let chunk = [0x4_0003_c211u64.to_le_bytes(), [0; 8], [0; 8]].concat();
/// let mut decoder = Decoder::new(NoInstructions, Options::streaming());
/// let mut stream = decoder.stream();
/// for piece in chunk.chunks(5) {
///     stream.push(piece, &mut |record: Record<'_>| println!("{record:?}"))?;
/// }
/// stream.finish(&mut |record: Record<'_>| println!("{record:?}"))?;
/// # Ok::<(), wavescope_att_decode::Error>(())
/// ```
#[derive(Debug)]
pub struct ChunkStream<'d, S> {
    decoder: &'d mut Decoder<S>,
    state: Option<ChunkState>,
    /// Bytes that came and are still needed.
    carry: Vec<u8>,
    /// Offset of the carry in the chunk.
    base: u64,
    failed: Option<Error>,
}

impl<'d, S: InstructionSource> ChunkStream<'d, S> {
    pub(crate) fn new(decoder: &'d mut Decoder<S>) -> Self {
        ChunkStream { decoder, state: None, carry: Vec::new(), base: 0, failed: None }
    }

    /// Decodes the next piece as far as it goes.
    ///
    /// # Errors
    ///
    /// Those of [`Decoder::decode`]; the same error again for every piece after it.
    pub fn push(&mut self, mut piece: &[u8], sink: &mut dyn RecordSink) -> Result<(), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        while !self.carry.is_empty() {
            // What is left of earlier pieces is joined with the start of this one until it is done; the rest is read
            // where it stands.
            let before = self.carry.len();
            let (joined, rest) = piece.split_at(piece.len().min(before.max(MARGIN)));
            self.carry.extend_from_slice(joined);
            let carry = std::mem::take(&mut self.carry);
            let done = self.run(&carry, false, sink)?;
            if let Some(ahead) = done.checked_sub(before) {
                piece = &piece[ahead..];
                break;
            }
            self.carry = carry;
            self.carry.drain(..done);
            if rest.is_empty() {
                return Ok(());
            }
            piece = rest;
        }
        let done = self.run(piece, false, sink)?;
        self.carry.extend_from_slice(&piece[done..]);
        Ok(())
    }

    /// Decodes the last bytes and hands everything over that waits for the end.
    ///
    /// # Errors
    ///
    /// Those of [`Decoder::decode`].
    pub fn finish(mut self, sink: &mut dyn RecordSink) -> Result<(), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let carry = std::mem::take(&mut self.carry);
        self.run(&carry, true, sink)?;
        let mut out = self.decoder.outside(sink);
        if let Some(mut state) = self.state {
            state.finish(&mut out);
        }
        Ok(())
    }

    /// Runs over bytes that follow what is done; returns how many of them are done now.
    fn run(&mut self, data: &[u8], is_last: bool, sink: &mut dyn RecordSink) -> Result<usize, Error> {
        let state = match &mut self.state {
            Some(state) => state,
            // A gfx9 chunk of its header alone is an error, so one byte more decides.
            None if data.len() <= Generation::HEADER_BYTES && !is_last => return Ok(0),
            none => match ChunkState::begin(data, self.decoder) {
                Ok(state) => none.insert(state),
                Err(error) => {
                    self.failed = Some(error);
                    return Err(error);
                }
            },
        };
        match state.run(data, self.base, is_last, &mut self.decoder.outside(sink)) {
            Ok(done) => {
                self.base += done as u64;
                Ok(done)
            }
            Err(error) => {
                self.failed = Some(error);
                Err(error)
            }
        }
    }
}
