//! Waves one at a time, on request.

use std::collections::VecDeque;

use crate::decoder::Decoder;
use crate::error::Error;
use crate::record::{Instruction, Record, TimelineEntry, Wave};
use crate::source::InstructionSource;
use crate::stream::ChunkStream;

/// Bytes decoded at a time while the next wave is looked for.
const STEP: usize = 4096;

/// The waves of a chunk, decoded as far as the next one needs.
///
/// Waves come in the order in which the decoder finishes them: on RDNA when their slot is used again or the chunk
/// ends, on gfx9 when they end.
///
/// ```
/// use wavescope_att_decode::{Decoder, NoInstructions, Options, RecordKind, RecordSet, Waves};
/// let chunk = [0x4_0003_c211u64.to_le_bytes(), [0; 8], [0; 8]].concat();
/// let mut decoder = Decoder::new(NoInstructions, Options::of(RecordSet::of(&[RecordKind::Wave])));
/// let mut waves = Waves::new(&mut decoder, &chunk);
/// while let Some(wave) = waves.next_wave()? {
///     println!("slot {}: {} instructions", wave.wave_id, wave.instructions.len());
/// }
/// # Ok::<(), wavescope_att_decode::Error>(())
/// ```
#[derive(Debug)]
pub struct Waves<'a, S> {
    stream: Option<ChunkStream<'a, S>>,
    rest: &'a [u8],
    ready: VecDeque<OwnedWave>,
    current: Option<OwnedWave>,
}

/// A wave that outlives its delivery.
#[derive(Debug, Clone)]
pub struct OwnedWave {
    fields: Wave<'static>,
    timeline: Vec<TimelineEntry>,
    instructions: Vec<Instruction>,
}

impl OwnedWave {
    /// The wave.
    pub fn as_wave(&self) -> Wave<'_> {
        Wave { timeline: &self.timeline, instructions: &self.instructions, ..self.fields }
    }
}

impl From<Wave<'_>> for OwnedWave {
    fn from(wave: Wave<'_>) -> Self {
        let Wave { cu, simd, wave_id, contexts, dispatcher, workgroup_id, cluster_id, .. } = wave;
        let Wave { begin_time, end_time, timeline, instructions, .. } = wave;
        OwnedWave {
            fields: Wave {
                cu,
                simd,
                wave_id,
                contexts,
                dispatcher,
                workgroup_id,
                cluster_id,
                begin_time,
                end_time,
                timeline: &[],
                instructions: &[],
            },
            timeline: timeline.to_vec(),
            instructions: instructions.to_vec(),
        }
    }
}

impl<'a, S: InstructionSource> Waves<'a, S> {
    /// The waves of a chunk. The decoder's options should ask for waves, and for nothing else to be quick.
    pub fn new(decoder: &'a mut Decoder<S>, chunk: &'a [u8]) -> Self {
        Waves { stream: Some(decoder.stream()), rest: chunk, ready: VecDeque::new(), current: None }
    }

    /// The next wave; `None` behind the last.
    ///
    /// # Errors
    ///
    /// Those of [`Decoder::decode`]. Waves before the error have been given.
    pub fn next_wave(&mut self) -> Result<Option<Wave<'_>>, Error> {
        while self.ready.is_empty() {
            let Some(stream) = &mut self.stream else { break };
            let ready = &mut self.ready;
            let mut keep = |record: Record<'_>| {
                if let Record::Wave(wave) = record {
                    ready.push_back(wave.into());
                }
            };
            let (piece, rest) = self.rest.split_at(self.rest.len().min(STEP));
            self.rest = rest;
            if piece.is_empty() {
                self.stream.take().map_or(Ok(()), |stream| stream.finish(&mut keep))?;
            } else {
                stream.push(piece, &mut keep)?;
            }
        }
        self.current = self.ready.pop_front();
        Ok(self.current.as_ref().map(OwnedWave::as_wave))
    }
}
