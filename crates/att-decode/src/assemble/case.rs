//! Golden cases: input and expected output in one text.

use std::collections::HashMap;
use std::sync::Arc;

use super::{AssembleError, chunk};
use crate::decoder::Decoder;
use crate::generation::Generation;
use crate::jsonl::JsonLines;
use crate::marker::FunctionMap;
use crate::options::{Options, Recovery};
use crate::record::{Pc, RecordSet};
use crate::source::{InstructionSource, ProgramLine};

/// A golden case.
///
/// The text begins with free lines that say what the case shows. A line `chip NAME` (gfx9, gfx10, gfx11, gfx12 or
/// gfx1250) follows, then sections that begin with their name on a line of their own: `program` (offset, size and text
/// of each instruction; program counters of any code object are looked up there), `map` (lines of a function map),
/// `resync` (no lines: decode with [`Recovery::Resync`] and tell losses), `tokens` (the assembler's text) and `records`
/// (the expected lines).
#[derive(Debug)]
pub struct Case {
    generation: Generation,
    chunk: Vec<u8>,
    program: HashMap<u64, (u32, String)>,
    map: Option<Arc<FunctionMap>>,
    options: Options,
    expected: String,
    /// The text up to the expected lines.
    before: String,
}

/// Line in front of the expected records.
const RECORDS: &str = "records\n";

impl Case {
    /// Reads and assembles a case.
    ///
    /// # Errors
    ///
    /// A section is missing or malformed, or a token line is.
    pub fn parse(text: &str) -> Result<Self, AssembleError> {
        let broken = |what: &str| AssembleError::Case { what: what.to_owned() };
        let (before, expected) = match text.find("\nrecords\n") {
            Some(at) => text.split_at(at + 1 + RECORDS.len()),
            None => return Err(broken("no `records` section")),
        };
        let generation = before.lines().find_map(|line| line.strip_prefix("chip "));
        let generation = generation.and_then(generation_of).ok_or_else(|| broken("no `chip` line"))?;
        let program = section(before, "program").unwrap_or_default();
        let program = program.lines().map(program_line).collect::<Option<_>>();
        let tokens = section(before, "tokens").ok_or_else(|| broken("no `tokens` section"))?;
        let mut options = Options::default();
        if section(before, "resync").is_some() {
            options = Options { records: RecordSet::ALL, recovery: Recovery::Resync, ..options };
        }
        Ok(Case {
            generation,
            chunk: chunk(generation, &tokens)?,
            program: program.ok_or_else(|| broken("a program line is not `OFFSET SIZE TEXT`"))?,
            map: section(before, "map").map(|text| Arc::new(FunctionMap::parse(&text))),
            options,
            expected: expected.to_owned(),
            before: before.to_owned(),
        })
    }

    /// The assembled chunk.
    pub fn chunk(&self) -> &[u8] {
        &self.chunk
    }

    /// Generation of the chip.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The expected records, one line each.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// The records that the decoder makes of it, one line each.
    pub fn records(&self) -> String {
        let mut lines = JsonLines::new(Vec::new());
        let result = Decoder::new(Source(self), self.options).decode(&self.chunk, &mut lines);
        lines.status(result);
        // Writing to memory does not fail, and the lines are text.
        lines.finish().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    }

    /// The text of the case with what the decoder makes of it as the expectation.
    pub fn blessed(&self) -> String {
        format!("{}{}", self.before, self.records())
    }
}

/// The program and the map of a case.
struct Source<'a>(&'a Case);

impl InstructionSource for Source<'_> {
    fn instruction(&mut self, pc: Pc, gfxip: u32) -> Option<ProgramLine> {
        let (size, text) = self.0.program.get(&pc.address)?;
        Some(ProgramLine::from_text(gfxip, *size, text))
    }

    fn has_function_maps(&self) -> bool {
        self.0.map.is_some()
    }

    fn function_map(&mut self, _: u64) -> Option<Arc<FunctionMap>> {
        self.0.map.clone()
    }
}

fn generation_of(name: &str) -> Option<Generation> {
    Some(match name.trim() {
        "gfx9" => Generation::Gfx9,
        "gfx10" => Generation::Gfx10,
        "gfx11" => Generation::Gfx11,
        "gfx12" => Generation::Gfx12,
        "gfx1250" => Generation::Gfx1250,
        _ => return None,
    })
}

/// Lines of a section up to the next.
fn section(text: &str, name: &str) -> Option<String> {
    const NAMES: [&str; 5] = ["program", "map", "resync", "tokens", "records"];
    let mut lines = text.lines().skip_while(|line| *line != name);
    lines.next()?;
    let own = lines.take_while(|line| !NAMES.contains(line));
    Some(own.map(|line| format!("{line}\n")).collect())
}

fn program_line(line: &str) -> Option<(u64, (u32, String))> {
    let (offset, rest) = line.split_once(' ')?;
    let (size, text) = rest.split_once(' ')?;
    Some((offset.parse().ok()?, (size.parse().ok()?, text.to_owned())))
}
