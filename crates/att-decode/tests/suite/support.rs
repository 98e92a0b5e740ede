//! What the tests on golden sets share.

use std::path::Path;

use wavescope_att_decode::jsonl::JsonLines;
use wavescope_att_decode::{Pc, ProgramLine};
use wavescope_sqtt_fixtures::{Chunk, Kernel, Set, find_line, sets_below, shared_sets};

/// All sets at hand that have the named file: those beside the repository where they exist, the copies in
/// `tests/data` always.
pub(crate) fn sets_with(file: &str) -> Vec<Set> {
    let mut sets = sets_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"), file).unwrap();
    assert!(!sets.is_empty(), "not even the sets in tests/data were found");
    match shared_sets(env!("CARGO_MANIFEST_DIR")) {
        Some(shared) => sets.extend(sets_below(&shared, file).unwrap()),
        None => println!("NOT RUN: sets of ../shared/fixtures/sqtt, the folder is absent"),
    }
    sets
}

/// Sets that no fault was put into.
pub(crate) fn healthy() -> Vec<Set> {
    let is_healthy = |set: &Set| {
        let (family, name) = set.name.split_once('/').unwrap();
        let first_faulty = if family.starts_with("gfx9_") { 4 } else { 5 };
        match name.split_once('_') {
            Some(("synth", number)) => number.parse::<u32>().unwrap() < first_faulty,
            Some(("soup", _)) => false,
            _ => true,
        }
    };
    sets_with("golden.jsonl").into_iter().filter(is_healthy).collect()
}

/// Looks instructions up the way the goldens were made.
pub(crate) fn lookup(kernels: &[Kernel], pc: Pc, gfxip: u32) -> Option<ProgramLine> {
    let (size, text) = find_line(kernels, pc.address, pc.code_object_id)?;
    Some(ProgramLine::from_text(gfxip, size, text))
}

/// Records of a set's chunks as lines, each chunk decoded by itself.
pub(crate) fn decode(set: &Set, mut decode_chunk: impl FnMut(&Chunk, &mut JsonLines<Vec<u8>>)) -> String {
    let mut lines = JsonLines::new(Vec::new());
    for chunk in set.chunks().unwrap() {
        lines.chunk(&chunk.file, chunk.shader_engine, chunk.bytes.len());
        decode_chunk(&chunk, &mut lines);
    }
    String::from_utf8(lines.finish().unwrap()).unwrap()
}

/// The first line that differs.
pub(crate) fn first_difference(expected: &str, found: &str) -> Option<String> {
    let (mut expected, mut found) = (expected.lines(), found.lines());
    for number in 1.. {
        match (expected.next(), found.next()) {
            (None, None) => return None,
            (left, right) if left == right => {}
            (left, right) => {
                let (left, right) = (shown(left), shown(right));
                return Some(format!("line {number}\n  expected {left}\n  found    {right}"));
            }
        }
    }
    None
}

fn shown(line: Option<&str>) -> &str {
    let line = line.unwrap_or("nothing");
    line.get(..1000).unwrap_or(line)
}
