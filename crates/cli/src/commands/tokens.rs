//! `wavescope tokens`: the stream before any interpretation.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use serde::Serialize;
use wavescope_att_decode::dump;

use crate::args::TokensArgs;
use crate::capture::Capture;
use crate::input::bad_input;

/// Prints a `# FILE` line before each file's tokens, a line a token.
pub(crate) fn run(args: &TokensArgs) -> anyhow::Result<()> {
    let captures = args.files.iter().map(|path| Capture::read(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut faults = Vec::new();
    for capture in &captures {
        if !args.json {
            writeln!(out, "# {}", capture.name)?;
        }
        let mut written = Ok(());
        let result = dump::each_line(&capture.bytes, |line| {
            written =
                if args.json { json_line(&mut out, &capture.name, line) } else { writeln!(out, "{line}") };
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        written?;
        faults.extend(capture.fault(result));
    }
    out.flush()?;
    faults.into_iter().next().map_or(Ok(()), |first| Err(bad_input(first)))
}

/// A token for machines; `fields` are the named bit fields in stream order.
#[derive(Serialize)]
struct Row<'a> {
    file: &'a str,
    bit_offset: u64,
    kind: &'a str,
    bits: u32,
    time: i64,
    raw: String,
    fields: serde_json::Map<String, serde_json::Value>,
}

impl<'a> Row<'a> {
    /// Takes a line of the dump apart: offset, kind, length, time, raw bits, fields.
    fn parse(file: &'a str, line: &'a str) -> Option<Self> {
        let mut columns = line.split('\t');
        let mut column = || columns.next();
        Some(Self {
            file,
            bit_offset: column()?.parse().ok()?,
            kind: column()?,
            bits: column()?.parse().ok()?,
            time: column()?.parse().ok()?,
            raw: format!("0x{}", column()?),
            fields: column().unwrap_or_default().split_whitespace().filter_map(field).collect(),
        })
    }
}

fn field(text: &str) -> Option<(String, serde_json::Value)> {
    let (name, value) = text.split_once('=')?;
    let number = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => value.parse().ok()?,
    };
    Some((name.to_owned(), number.into()))
}

fn json_line(out: &mut impl Write, file: &str, line: &str) -> io::Result<()> {
    if let Some(row) = Row::parse(file, line) {
        serde_json::to_writer(&mut *out, &row)?;
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_dump_becomes_an_object() {
        let row = Row::parse("f", "64\tMISC\t16\t1020\t2ff0\tdelta=255 value=0x12").unwrap();
        let json = serde_json::to_string(&row).unwrap();
        assert_eq!(
            json,
            r#"{"file":"f","bit_offset":64,"kind":"MISC","bits":16,"time":1020,"raw":"0x2ff0","fields":{"delta":255,"value":18}}"#
        );
    }
}
