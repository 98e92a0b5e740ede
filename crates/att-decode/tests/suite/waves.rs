//! Waves on request are the waves of a full decode.

use wavescope_att_decode::jsonl::JsonLines;
use wavescope_att_decode::{Decoder, Options, Pc, Record, RecordKind, RecordSet, RecordSink, Waves};

use crate::support::{first_difference, lookup, sets_with};

#[test]
fn pulled_waves_equal_the_golden_ones() {
    for set in sets_with("golden.jsonl") {
        let kernels = set.kernels().unwrap();
        let mut lines = JsonLines::new(Vec::new());
        for chunk in set.chunks().unwrap() {
            let source = |pc: Pc, gfxip: u32| lookup(&kernels, pc, gfxip);
            let mut decoder = Decoder::new(source, Options::of(RecordSet::of(&[RecordKind::Wave])));
            let mut waves = Waves::new(&mut decoder, &chunk.bytes);
            while let Some(wave) = waves.next_wave().unwrap() {
                lines.record(Record::Wave(wave));
            }
        }
        let found = String::from_utf8(lines.finish().unwrap()).unwrap();
        let golden = set.text("golden.jsonl").unwrap();
        let expected: Vec<_> = golden.lines().filter(|line| line.starts_with("{\"rec\":\"wave\"")).collect();
        if let Some(difference) = first_difference(&expected.join("\n"), &found) {
            panic!("{}: {difference}", set.name);
        }
    }
}

#[cfg(feature = "rayon")]
#[test]
fn shader_engines_side_by_side_give_the_golden_records() {
    use wavescope_att_decode::decode_parallel;
    for set in sets_with("golden.jsonl") {
        let kernels = set.kernels().unwrap();
        let chunks = set.chunks().unwrap();
        let bytes: Vec<_> = chunks.iter().map(|chunk| &chunk.bytes[..]).collect();
        let done = decode_parallel(
            &bytes,
            Options::default(),
            |_| |pc: Pc, gfxip: u32| lookup(&kernels, pc, gfxip),
            |_| JsonLines::new(Vec::new()),
        );
        let mut lines = JsonLines::new(Vec::new());
        for (chunk, (records, result)) in chunks.iter().zip(done) {
            lines.chunk(&chunk.file, chunk.shader_engine, chunk.bytes.len());
            lines.raw(&String::from_utf8(records.finish().unwrap()).unwrap());
            lines.status(result);
        }
        let found = String::from_utf8(lines.finish().unwrap()).unwrap();
        if let Some(difference) = first_difference(&set.text("golden.jsonl").unwrap(), &found) {
            panic!("{}: {difference}", set.name);
        }
    }
}
