//! Kind `sqtt`: thread-trace chunks against the records, the quick scan and the tokens a decoder makes of them.
//!
//! A set is a folder (see `wavescope-sqtt-fixtures`); each of its expectations is a case. Where a set has code
//! objects, its records are compared twice: with program lines from the set's disassembly, and with our own
//! instruction tables on the code objects. Cases in one text (`*.case`: tokens, program and records) live in the
//! repository; `golden bless sqtt` writes their records anew.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use wavescope_att_decode::jsonl::JsonLines;
use wavescope_att_decode::quick::{ScanState, TraceFormat, scan};
use wavescope_att_decode::{
    CodeObjects, Decoder, InstructionSource, Options, Pc, ProgramLine, RecordSink, assemble, dump,
};
use wavescope_sqtt_fixtures::{Chunk, Kernel, Set, find_line};

use super::source::files_below;
use super::{Kind, Outcome, Role, Source, read_text};
use crate::paths;

/// The kind `sqtt`.
pub(crate) struct Sqtt;

/// Readable cases that live in the repository.
const CASES: &str = "crates/att-decode/tests/cases";

/// Columns of a token dump that are compared: offset, kind, length, time.
const TOKEN_COLUMNS: usize = 4;

impl Kind for Sqtt {
    fn name(&self) -> &'static str {
        "sqtt"
    }

    fn role(&self, file: &Path) -> Role {
        match expectation(file) {
            "golden.jsonl" | "quick.jsonl" | "tokens.tsv" => Role::Case,
            name if name.ends_with(".case") => Role::Case,
            _ => Role::Support,
        }
    }

    fn check(&self, case: &Path) -> Result<Outcome> {
        let folder = case.parent().map_or_else(PathBuf::new, Path::to_owned);
        let set = Set::in_folder(folder);
        let expected = read_text(case)?;
        let mut outcome = Outcome::default();
        match expectation(case) {
            "golden.jsonl" => check_records(&set, &expected, &mut outcome)?,
            "quick.jsonl" => compare_lines("quick", &expected, &quick(&set)?, &mut outcome),
            "tokens.tsv" => check_tokens(&set, &expected, &mut outcome)?,
            name if name.ends_with(".case") => {
                let case = assemble::Case::parse(&expected)?;
                compare_lines("records", case.expected(), &case.records(), &mut outcome);
            }
            name => bail!("{name} is no expectation"),
        }
        Ok(outcome)
    }

    /// Writes the readable cases anew, with the records that the decoder makes now.
    fn bless(&self) -> Result<Vec<PathBuf>> {
        let mut written = Vec::new();
        for path in files_below(&paths::root().join(CASES))? {
            let text = read_text(&path)?;
            let case = assemble::Case::parse(&text).with_context(|| paths::display(&path))?;
            if case.blessed() != text {
                std::fs::write(&path, case.blessed())?;
                written.push(path);
            }
        }
        Ok(written)
    }

    fn ci_sources(&self) -> Vec<Source> {
        vec![Source { shared: "fixtures/sqtt", copy: Some("crates/att-decode/tests/data") }]
    }
}

/// File name without `.gz`.
fn expectation(file: &Path) -> &str {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_suffix(".gz").unwrap_or(name)
}

fn check_records(set: &Set, expected: &str, outcome: &mut Outcome) -> Result<()> {
    let kernels = set.kernels()?;
    let found = records(set, || |pc: Pc, gfxip: u32| lookup(&kernels, pc, gfxip))?;
    compare_lines("disassembly", expected, &found, outcome);
    if kernels.iter().all(|kernel| kernel.code_object.is_some()) {
        let code = code_objects(&kernels)?;
        compare_lines("code objects", expected, &records(set, || code.clone())?, outcome);
    }
    Ok(())
}

/// Records of a set, each chunk decoded by itself, as the goldens were made.
fn records<S: InstructionSource>(set: &Set, source: impl Fn() -> S) -> Result<String> {
    each_chunk(set, |chunk, lines| {
        let result = Decoder::new(source(), Options::default()).decode(&chunk.bytes, lines);
        lines.status(result);
        Ok(())
    })
}

fn lookup(kernels: &[Kernel], pc: Pc, gfxip: u32) -> Option<ProgramLine> {
    let (size, text) = find_line(kernels, pc.address, pc.code_object_id)?;
    Some(ProgramLine::from_text(gfxip, size, text))
}

fn code_objects(kernels: &[Kernel]) -> Result<CodeObjects> {
    let mut code = CodeObjects::new();
    for kernel in kernels {
        let Some(path) = &kernel.code_object else { continue };
        let elf = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        code.add(&elf, Some(kernel.load_address), None).with_context(|| path.display().to_string())?;
    }
    Ok(code)
}

fn quick(set: &Set) -> Result<String> {
    each_chunk(set, |chunk, lines| {
        let format = TraceFormat::of_first_chunk(&chunk.bytes)?;
        let found = scan(&format, &chunk.bytes, true);
        let _ = ScanState::default().replay(&format, &found, |record| {
            lines.record(record);
            ControlFlow::<()>::Continue(())
        });
        lines.status(Ok(()));
        Ok(())
    })
}

fn each_chunk(
    set: &Set,
    mut decode: impl FnMut(&Chunk, &mut JsonLines<Vec<u8>>) -> Result<()>,
) -> Result<String> {
    let mut lines = JsonLines::new(Vec::new());
    for chunk in set.chunks()? {
        lines.chunk(&chunk.file, chunk.shader_engine, chunk.bytes.len());
        decode(&chunk, &mut lines)?;
    }
    Ok(String::from_utf8(lines.finish()?)?)
}

fn check_tokens(set: &Set, expected: &str, outcome: &mut Outcome) -> Result<()> {
    for section in expected.split("# ").skip(1) {
        let (file, expected) = section.split_once('\n').context("a section has no lines")?;
        let mut found = String::new();
        dump::write(&set.bytes(file)?, &mut found)?;
        compare_lines(file, &first_columns(expected), &first_columns(&found), outcome);
    }
    Ok(())
}

fn first_columns(text: &str) -> String {
    let columns = |line: &str| line.split('\t').take(TOKEN_COLUMNS).collect::<Vec<_>>().join("\t");
    text.lines().map(columns).collect::<Vec<_>>().join("\n")
}

fn compare_lines(what: &str, expected: &str, found: &str, outcome: &mut Outcome) {
    let (mut expected, mut found) = (expected.lines(), found.lines());
    for number in 1.. {
        match (expected.next(), found.next()) {
            (None, None) => return,
            (left, right) => outcome.compare(format_args!("{what}, line {number}"), &left, &right),
        }
    }
}
