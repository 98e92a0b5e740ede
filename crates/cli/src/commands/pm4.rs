//! `wavescope pm4`: a command buffer for people.

use std::io::Write;
use std::path::Path;

use wavescope_pm4::{Decoder, RegisterMap, Target, print};

use crate::args::Pm4Args;
use crate::input::{bad_input, read_file};

/// One command buffer of a file.
struct Buffer {
    /// Which of several, where the file holds several.
    name: Option<String>,
    dwords: Vec<u32>,
}

/// Prints every command buffer of the file.
pub(crate) fn run(args: &Pm4Args) -> anyhow::Result<()> {
    let bytes = read_file(&args.file)?;
    if bytes.is_empty() {
        return Err(bad_input(format!("{}: the file is empty", args.file.display())));
    }
    let recorded = bytes.trim_ascii_start().first() == Some(&b'{');
    let (gfx, buffers) =
        if recorded { recorded_case(&args.file, &bytes)? } else { (None, vec![plain(&args.file, &bytes)?]) };
    let Some(gfx) = args.gfx.clone().or(gfx) else {
        return Err(bad_input(format!("{}: say which chip it is for with --gfx", args.file.display())));
    };
    let target =
        Target::from_gfxip(&gfx).ok_or_else(|| bad_input(format!("no PM4 tables for target `{gfx}`")))?;
    let map = RegisterMap::with_fixed_bases(target);
    let mut out = std::io::stdout().lock();
    let mut fault = None;
    for buffer in &buffers {
        if let Some(name) = &buffer.name {
            writeln!(out, "{name}:")?;
        }
        write!(out, "{}", print::CommandBuffer::new(&map, &buffer.dwords))?;
        let malformed = || Decoder::new(&buffer.dwords).find_map(Result::err);
        fault = fault.or_else(malformed);
    }
    out.flush()?;
    match fault {
        None => Ok(()),
        // It names the dword.
        Some(error) => Err(bad_input(format!("{}: {error}", args.file.display()))),
    }
}

/// Hexadecimal text, else the bytes of little-endian dwords as they lie in memory.
fn plain(path: &Path, bytes: &[u8]) -> anyhow::Result<Buffer> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.trim().is_empty());
    if let Some(Ok(dwords)) = text.map(print::dwords_from_hex) {
        return Ok(Buffer { name: None, dwords });
    }
    let beyond = bytes.len() % size_of::<u32>();
    if beyond != 0 {
        let (path, offset) = (path.display(), bytes.len() - beyond);
        return Err(bad_input(format!("{path}: offset {offset}: {beyond} bytes are no whole dword")));
    }
    Ok(Buffer { name: None, dwords: print::dwords_from_bytes(bytes) })
}

/// A recorded case of the golden packets: its chip, and each buffer under `ib`.
fn recorded_case(path: &Path, bytes: &[u8]) -> anyhow::Result<(Option<String>, Vec<Buffer>)> {
    let wrong = |what: &str| bad_input(format!("{}: {what}", path.display()));
    let case: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| wrong(&error.to_string()))?;
    let recorded = case["ib"].as_object().ok_or_else(|| wrong("JSON without command buffers under `ib`"))?;
    let buffers = recorded.iter().map(|(name, buffer)| {
        let text = buffer["dw"].as_str().ok_or_else(|| wrong("a command buffer without `dw`"))?;
        let dwords = print::dwords_from_hex(text).map_err(|error| wrong(&error.to_string()))?;
        Ok(Buffer { name: Some(name.clone()), dwords })
    });
    let gfx = case["agent"]["gfxip"].as_str().map(str::to_owned);
    Ok((gfx, buffers.collect::<anyhow::Result<_>>()?))
}
