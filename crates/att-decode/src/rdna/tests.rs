//! The fast loop against careful steps, on damaged chunks.

use std::path::Path;

use wavescope_sqtt_fixtures::{Kernel, find_line, sets_below};

use super::RdnaDecoder;
use crate::emit::{Emitter, Wanted};
use crate::generation::Generation;
use crate::jsonl::JsonLines;
use crate::options::Options;
use crate::record::{Pc, RecordKind, RecordSet};
use crate::session::{Outside, Session};
use crate::source::ProgramLine;

/// Numbers without a pattern, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 as usize
    }
}

fn records(chunk: &[u8], kernels: &[Kernel], options: Options, is_slow: bool) -> String {
    let mut lines = JsonLines::new(Vec::new());
    let mut source = |pc: Pc, gfxip: u32| {
        let (size, text) = find_line(kernels, pc.address, pc.code_object_id)?;
        Some(ProgramLine::from_text(gfxip, size, text))
    };
    let mut session = Session::default();
    let mut out = Outside {
        session: &mut session,
        source: &mut source,
        emitter: Emitter::new(&mut lines, Wanted { records: options.records, immediate: options.immediate }),
        limits: options.limits,
        recovery: options.recovery,
    };
    let mut decoder = RdnaDecoder::new(Generation::of_chunk(chunk).unwrap(), &options);
    decoder.is_slow = is_slow;
    decoder.run(chunk, 0, true, &mut out);
    decoder.finish(&mut out);
    String::from_utf8(lines.finish().unwrap()).unwrap()
}

/// Makes marks that matter for the order of delivery frequent: losses, headers and short times.
fn damage(chunk: &mut [u8], numbers: &mut Numbers) {
    const MARKS: [&[u8]; 6] = [
        &[0x01, 0x01, 0, 0, 0, 0],          // TIMESTAMP of gfx11, lost
        &[0x01, 0x01, 0, 0, 0, 0, 0, 0],    // TIMESTAMP of gfx12, lost
        &[0x14, 0xff, 0xff],                // WAVE_READY without time
        &[0x1c, 0x00, 0x00, 0x00, 0x01],    // WAVE_START_EXT
        &[0x91, 0xc1, 0x03, 0, 0, 0, 0, 0], // HEADER of gfx11
        &[0x9e, 0x1e, 0x0e, 0x4e],          // quiet tokens
    ];
    for _ in 0..numbers.next() % 12 {
        let mark = MARKS[numbers.next() % MARKS.len()];
        let at = 8 + numbers.next() % (chunk.len() - 8);
        if numbers.next().is_multiple_of(3) {
            chunk[at] = numbers.next() as u8;
        } else {
            for (old, new) in chunk[at..].iter_mut().zip(mark) {
                *old = *new;
            }
        }
    }
}

#[test]
fn the_fast_loop_does_what_careful_steps_do() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for set in sets_below(&data, "golden.jsonl").unwrap() {
        if set.name.starts_with("gfx9_") {
            continue;
        }
        let kernels = set.kernels().unwrap();
        for chunk in set.chunks().unwrap() {
            for round in 0..40 {
                let mut bytes = chunk.bytes.clone();
                if round > 0 {
                    damage(&mut bytes, &mut numbers);
                }
                let occupancy = Options::of(RecordSet::of(&[RecordKind::Occupancy]));
                for options in [Options::default(), occupancy] {
                    let [fast, slow] =
                        [false, true].map(|is_slow| records(&bytes, &kernels, options, is_slow));
                    if fast != slow {
                        let mut lines = slow.lines().zip(fast.lines());
                        let different = lines.find(|(slow, fast)| slow != fast);
                        panic!("{} round {round}: {different:?}", set.name);
                    }
                }
            }
        }
    }
}
