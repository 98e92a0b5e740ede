//! `wavescope decode`: real captures to records, offline.

mod text;

use std::cell::Cell;
use std::io::{BufWriter, Write};

use wavescope_att_decode::jsonl::JsonLines;
use wavescope_att_decode::{CodeObjects, Decoder, Options, RecordSink};
use wavescope_isa::Target;

use crate::args::{DecodeArgs, Format};
use crate::capture::Capture;
use crate::input::{bad_input, blame_input, read_file};
use crate::output::Watched;
use crate::progress::Progress;
use text::TextLines;

/// A tenth of a second's work or less.
const PIECE_BYTES: usize = 1 << 20;

/// Decodes each file as one chunk with fresh state, in the order given.
pub(crate) fn run(args: &DecodeArgs) -> anyhow::Result<()> {
    let target: Target = args.gfx.parse().map_err(blame_input)?;
    let code = code_objects(&args.code_object, target)?;
    let (out, failed) = Watched::new(std::io::stdout().lock());
    let out = BufWriter::new(out);
    match args.format {
        Format::Jsonl => decode(args, target, &code, JsonLines::new(out), &failed),
        Format::Text => decode(args, target, &code, TextLines::new(out), &failed),
    }
}

/// What both formats do with a chunk.
trait Lines: RecordSink + Sized {
    fn chunk(&mut self, file: &str, shader_engine: u32, bytes: usize);
    fn status(&mut self, result: Result<(), wavescope_att_decode::Error>);
    fn finish(self) -> std::io::Result<()>;
}

impl<W: Write> Lines for JsonLines<W> {
    fn chunk(&mut self, file: &str, shader_engine: u32, bytes: usize) {
        self.chunk(file, shader_engine, bytes);
    }

    fn status(&mut self, result: Result<(), wavescope_att_decode::Error>) {
        self.status(result);
    }

    fn finish(self) -> std::io::Result<()> {
        self.finish().map(drop)
    }
}

/// Records of every file are printed before the first fault of any is reported: a damaged capture still tells
/// what it holds.
fn decode(
    args: &DecodeArgs,
    target: Target,
    code: &CodeObjects,
    mut lines: impl Lines,
    failed: &Cell<bool>,
) -> anyhow::Result<()> {
    // All files are read before the first line is printed: a wrong name is no half of an answer.
    let captures = args.sqtt.iter().map(|path| Capture::read(path)).collect::<anyhow::Result<Vec<_>>>()?;
    if let Some(mismatch) = captures.iter().find_map(|capture| capture.mismatch(target)) {
        return Err(bad_input(mismatch));
    }
    let bytes = captures.iter().map(|capture| capture.bytes.len() as u64).sum();
    let progress = Progress::of_bytes(bytes, "decoding");
    let mut faults = Vec::new();
    for capture in &captures {
        lines.chunk(&capture.name, capture.shader_engine, capture.bytes.len());
        let mut decoder = Decoder::new(code.clone(), Options::default());
        let mut pieces = capture.bytes.chunks(PIECE_BYTES).take_while(|_| !failed.get());
        let result = decode_pieces(&mut decoder, &mut pieces, &mut lines, &progress);
        lines.status(result);
        faults.extend(capture.fault(result));
    }
    lines.finish()?;
    match &faults[..] {
        [] => Ok(()),
        [only] => Err(bad_input(only.clone())),
        [first, others @ ..] => {
            Err(bad_input(format!("{first} (and {} more files with faults)", others.len())))
        }
    }
}

/// Decodes a chunk with fresh state, in pieces that keep the progress moving.
fn decode_pieces(
    decoder: &mut Decoder<CodeObjects>,
    pieces: &mut dyn Iterator<Item = &[u8]>,
    lines: &mut impl RecordSink,
    progress: &Progress,
) -> Result<(), wavescope_att_decode::Error> {
    let mut stream = decoder.stream();
    for piece in pieces {
        stream.push(piece, lines)?;
        progress.advance(piece.len() as u64);
    }
    stream.finish(lines)
}

/// Parses every `FILE@LOAD_ADDRESS`. Files that do not say their chip are for the one of the trace.
fn code_objects(arguments: &[String], target: Target) -> anyhow::Result<CodeObjects> {
    let mut code = CodeObjects::new().assuming(target);
    for argument in arguments {
        let (file, address) = split_address(argument)?;
        let elf = read_file(file.as_ref())?;
        code.add(&elf, Some(address), None).map_err(|error| bad_input(format!("{file}: {error}")))?;
    }
    Ok(code)
}

fn split_address(argument: &str) -> anyhow::Result<(&str, u64)> {
    let wanted = "expected FILE@ADDRESS, the address in decimal or as 0x hexadecimal";
    let (file, address) =
        argument.rsplit_once('@').ok_or_else(|| bad_input(format!("--code-object {argument}: {wanted}")))?;
    let parsed = match address.strip_prefix("0x").or_else(|| address.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => address.parse(),
    };
    let address =
        parsed.map_err(|error| bad_input(format!("--code-object {argument}: {error}; {wanted}")))?;
    Ok((file, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_addresses_are_decimal_or_hexadecimal() {
        assert_eq!(split_address("a@b.co@0x7f00").unwrap(), ("a@b.co", 0x7F00));
        assert_eq!(split_address("k.co@35184405667840").unwrap(), ("k.co", 35_184_405_667_840));
        for wrong in ["k.co", "k.co@", "k.co@0x", "k.co@12g", "k.co@-1", "k.co@0x1ffffffffffffffff"] {
            assert!(split_address(wrong).is_err(), "{wrong}");
        }
    }
}
