//! Shader engines side by side.

use rayon::prelude::*;

use crate::decoder::Decoder;
use crate::error::Error;
use crate::options::Options;
use crate::record::RecordSink;
use crate::source::InstructionSource;

/// Decodes each chunk with a decoder and a sink of its own, on the threads of rayon's current pool. Returns, in the
/// order of the chunks, each sink and what decoding its chunk gave: an error of one shader engine is none of the
/// others.
///
/// ```
/// use wavescope_att_decode::{NoInstructions, Options, decode_parallel, jsonl::JsonLines};
/// let chunk = [0x4_0003_c211u64.to_le_bytes(), [0; 8], [0; 8]].concat();
/// let engines = [&chunk[..], &[]];
/// let done =
///     decode_parallel(&engines, Options::default(), |_| NoInstructions, |_| JsonLines::new(Vec::new()));
/// assert!(done[0].1.is_ok() && done[1].1.is_err());
/// ```
pub fn decode_parallel<S, K>(
    chunks: &[&[u8]],
    options: Options,
    source: impl Fn(usize) -> S + Sync,
    sink: impl Fn(usize) -> K + Sync,
) -> Vec<(K, Result<(), Error>)>
where
    S: InstructionSource,
    K: RecordSink + Send,
{
    let decode = |(index, chunk): (usize, &&[u8])| {
        let mut sink = sink(index);
        let result = Decoder::new(source(index), options).decode(chunk, &mut sink);
        (sink, result)
    };
    chunks.par_iter().enumerate().map(decode).collect()
}
