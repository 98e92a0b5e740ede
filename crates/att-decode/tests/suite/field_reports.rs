//! What users of such decoders suffered from; the crate documentation has the table of reports and tests.

use std::collections::HashMap;
use std::sync::Arc;

use wavescope_att_decode::{
    CodeObjects, Decoder, Error, FunctionMap, Generation, InstructionSource, MarkerRecordKind,
    NoInstructions, Options, Pc, ProgramLine, Record, RecordKind, RecordSet, Token, TokenKind, Tokens,
    assemble,
};
use wavescope_sqtt_fixtures::{Kernel, Set};

use crate::support::{healthy, lookup};

/// Chunks of healthy sets, each with its set.
fn chunks() -> Vec<(Set, Vec<u8>)> {
    let of_set = |set: Set| {
        let chunks = set.chunks().unwrap();
        chunks.into_iter().map(move |chunk| (set.clone(), chunk.bytes))
    };
    healthy().into_iter().flat_map(of_set).collect()
}

/// The chunk with so many bytes taken out.
fn without(chunk: &[u8], from: usize, count: usize) -> Vec<u8> {
    [&chunk[..from], &chunk[(from + count).min(chunk.len())..]].concat()
}

/// Starts and ends of waves: place, and whether it is a start.
fn occupancy(chunk: &[u8]) -> Vec<((u8, u8, u8), bool, u64)> {
    let mut all = Vec::new();
    let options = Options::of(RecordSet::of(&[RecordKind::Occupancy]));
    let _ = Decoder::new(NoInstructions, options).decode(chunk, &mut |record: Record<'_>| {
        let Record::Occupancy(records) = record else { return };
        all.extend(records.iter().map(|r| ((r.cu, r.simd, r.wave_id), r.is_start(), r.time)));
    });
    all
}

/// G45, G52: bytes are missing from the middle. Every start and end that is left is told, an end whose start is gone has
/// one made up at time 0, and no place ever has fewer waves than none.
#[test]
fn after_a_cut_every_start_and_end_is_accounted_for() {
    let mut made_up = 0;
    for (set, chunk) in chunks() {
        let generation = Generation::of_chunk(&chunk).unwrap();
        if generation == Generation::Gfx9 {
            continue; // An end of the target without its wave leaves nothing there, as in the public decoder.
        }
        for count in [64, 500, 4096] {
            let cut = without(&chunk, chunk.len() / 2, count);
            let bits = cut.len() as u64 * 8;
            // gfx10 and gfx11 take a last token that is cut off, later generations drop it.
            let is_taken = |token: &Token| {
                let takes_parts = matches!(generation, Generation::Gfx10 | Generation::Gfx11);
                takes_parts || token.bit_offset + u64::from(token.bits) <= bits
            };
            let tokens: Vec<_> = Tokens::new(&cut).unwrap().filter(is_taken).collect();
            let is_start = |t: &&Token| matches!(t.kind, TokenKind::WaveStart | TokenKind::WaveStartExt);
            let is_switch = |t: &Token| is_start(&t) && (66..90).contains(&(t.raw >> 25 & 0x7f));
            let is_loss = |t: &Token| t.kind == TokenKind::Timestamp && t.raw >> 8 & 1 == 1;
            if tokens.iter().any(|token| is_switch(token) || is_loss(token)) {
                continue; // The bytes around the gap read as tokens that start and end waves in other ways.
            }
            let starts = tokens.iter().filter(is_start).count();
            let ends = tokens.iter().filter(|token| token.kind == TokenKind::WaveEnd).count();
            let mut running: HashMap<_, u32> = HashMap::new();
            let (mut told_starts, mut told_ends, mut here) = (0, 0, 0);
            for (place, is_start, time) in occupancy(&cut) {
                let waves = running.entry(place).or_default();
                if is_start {
                    *waves += 1;
                    told_starts += 1;
                    here += usize::from(time == 0);
                } else {
                    told_ends += 1;
                    assert!(*waves > 0, "{}: {place:?} has fewer waves than none", set.name);
                    *waves -= 1;
                }
            }
            assert_eq!(told_ends, ends, "{}", set.name);
            assert!(told_starts >= starts && told_starts - starts <= here, "{}", set.name);
            made_up += told_starts - starts;
        }
    }
    assert!(made_up > 0, "no cut took a start away");
}

/// Categories and program counters of the wave that begins last, if it is worth comparing.
fn last_wave(chunk: &[u8], kernels: &[Kernel]) -> Option<(i64, Vec<(u8, Pc)>)> {
    let mut last: Option<(i64, Vec<_>)> = None;
    let source = |pc: Pc, gfxip: u32| lookup(kernels, pc, gfxip);
    let _ = Decoder::new(source, Options::default()).decode(chunk, &mut |record: Record<'_>| {
        let Record::Wave(wave) = record else { return };
        if last.as_ref().is_none_or(|(begin, _)| *begin < wave.begin_time) {
            let instructions = wave.instructions.iter();
            let instructions = instructions.map(|i| (i.category_number(), i.pc)).collect();
            last = Some((wave.begin_time, instructions));
        }
    });
    last.filter(|(_, instructions)| instructions.len() >= 3)
}

/// Length of the shortest part of a chunk that holds the start of its last wave.
fn start_of_last_wave(chunk: &[u8], begin: i64) -> usize {
    let holds = |len: usize| last_begin(&chunk[..len]) == Some(begin);
    let (mut without, mut with) = (16, chunk.len());
    while with - without > 1 {
        let middle = without.midpoint(with);
        if holds(middle) { with = middle } else { without = middle }
    }
    with
}

fn last_begin(chunk: &[u8]) -> Option<i64> {
    let mut last = None;
    let options = Options::of(RecordSet::of(&[RecordKind::Wave]));
    let _ = Decoder::new(NoInstructions, options).decode(chunk, &mut |record: Record<'_>| {
        if let Record::Wave(wave) = record {
            last = last.max(Some(wave.begin_time));
        }
    });
    last
}

/// G51: bytes are missing in front of a wave, none that it depends on. The wave decodes as it does without the gap.
#[test]
fn waves_behind_a_gap_decode_fully() {
    /// Enough for the reader to find its way back.
    const BETWEEN: usize = 400;
    /// Registers and clocks of the wave; on gfx9 a slot whose wave did not end keeps it.
    const MATTERS: [TokenKind; 5] =
        [TokenKind::Reg, TokenKind::RegCs, TokenKind::RegCsPriv, TokenKind::Time, TokenKind::WaveEnd];
    let mut compared = 0;
    for (set, chunk) in chunks() {
        let kernels = set.kernels().unwrap();
        let Some((begin, expected)) = last_wave(&chunk, &kernels) else { continue };
        let start = start_of_last_wave(&chunk, begin);
        for count in [64, 500, 4096] {
            let Some(from) = start.checked_sub(BETWEEN + count).filter(|from| *from > 64) else { continue };
            let is_lost = |token: &Token| {
                let place = (token.bit_offset / 8) as usize;
                MATTERS.contains(&token.kind) && place + 8 > from && place < from + count
            };
            if Tokens::new(&chunk).unwrap().any(|token| is_lost(&token)) {
                continue;
            }
            let found = last_wave(&without(&chunk, from, count), &kernels).map(|(_, found)| found);
            assert_eq!(found.as_ref(), Some(&expected), "{}: {count} bytes before {start}", set.name);
            compared += 1;
        }
    }
    assert!(compared > 0, "no chunk has room for a gap");
}

/// G55: a chip that nothing is known of, and no trace at all, are errors that show what was found.
#[test]
fn an_unknown_chip_is_an_error_with_its_first_bytes() {
    let word = 0x0000_0000_0000_0f91u64; // HEADER of version 31
    let chunk = [word.to_le_bytes(), [0; 8]].concat();
    let decode = |chunk: &[u8]| {
        Decoder::new(NoInstructions, Options::default()).decode(chunk, &mut |record: Record<'_>| {
            panic!("{record:?}");
        })
    };
    assert_eq!(decode(&chunk), Err(Error::UnknownFormat { word }));
    assert!(decode(&chunk).unwrap_err().to_string().contains("f91"), "{:?}", decode(&chunk));
    assert!(decode(&chunk[..7]).is_err());
    assert_eq!(decode(&chunk).unwrap_err().status(), 4);
}

/// G55: a capture that ends early keeps what came before.
#[test]
fn a_truncated_capture_keeps_what_came_before() {
    for (set, chunk) in chunks() {
        let whole: Vec<_> = occupancy(&chunk).into_iter().filter(|(_, _, time)| *time > 0).collect();
        for quarters in 1..4 {
            let part = occupancy(&chunk[..chunk.len() * quarters / 4]);
            let part: Vec<_> = part.into_iter().filter(|(_, _, time)| *time > 0).collect();
            // The last token may be cut in two and read as something else.
            let kept = &part[..part.len().saturating_sub(1)];
            assert!(whole.starts_with(kept), "{} cut to {quarters}/4", set.name);
        }
    }
}

/// G61: one shader engine without data is no fault of the others.
#[cfg(feature = "rayon")]
#[test]
fn an_empty_shader_engine_is_an_error_of_its_own() {
    use wavescope_att_decode::{decode_parallel, jsonl::JsonLines};
    let (_, chunk) = chunks().remove(0);
    let engines: [&[u8]; 6] = [&chunk, &chunk, &[], &chunk, &chunk, &chunk];
    let done =
        decode_parallel(&engines, Options::default(), |_| NoInstructions, |_| JsonLines::new(Vec::new()));
    let results: Vec<_> = done.iter().map(|(_, result)| result.is_ok()).collect();
    assert_eq!(results, [true, true, false, true, true, true]);
    for (index, (lines, _)) in done.into_iter().enumerate() {
        assert_eq!(lines.finish().unwrap().is_empty(), index == 2, "engine {index}");
    }
}

/// G62: a wrapper around code objects is told from one, whatever its magic number.
#[test]
fn a_fat_binary_is_no_code_object() {
    for magic in [&b"HIPF"[..], b"HIPK", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"] {
        let wrapper = [magic, &[0; 256]].concat();
        assert!(CodeObjects::new().add(&wrapper, Some(0x1000), None).is_err());
    }
}

/// Maps of shader markers of two code objects, and no program.
struct TwoMaps;

impl InstructionSource for TwoMaps {
    fn instruction(&mut self, _: Pc, _: u32) -> Option<ProgramLine> {
        None
    }

    fn has_function_maps(&self) -> bool {
        true
    }

    fn function_map(&mut self, code_object_id: u64) -> Option<Arc<FunctionMap>> {
        let text = match code_object_id {
            1 => "F:5:first",
            _ => "P:5:second\nR:5:extra_payload_count=1",
        };
        Some(Arc::new(FunctionMap::parse(text)))
    }
}

/// Words that announce a code object of 4096 bytes.
fn load(id: u32, address: u32) -> String {
    let words = [0x104, 0x1000, 0x204, address, 0x504, id, 0x004, 0];
    words.map(|word| format!("REG compute=0 register=0xc342 data={word:#x}\n")).concat()
}

/// G67: two waves take turns with the same marker id, which means something else in their code objects, once with a
/// payload that looks like a marker; a loss ends the markers of the waves that run, not of later ones.
#[test]
fn marker_state_is_kept_by_wave_and_code_object() {
    let text = [
        "HEADER version=4 wgp=1\nREG compute=0 register=0xc342 data=0x434f5200\n",
        &load(1, 0x10000),
        &load(2, 0x20000),
        "REG compute=1 register=0xc data=0x100\nWAVE_START wgp=1 slot=1\n",
        "REG compute=1 register=0xc data=0x200\nWAVE_START wgp=1 slot=2\n",
        "+5 SHADER_DATA wgp=1 slot=1 data=0x16\n+5 SHADER_DATA wgp=1 slot=2 data=0x14\n",
        "+5 SHADER_DATA wgp=1 slot=1 data=0x15\n+5 SHADER_DATA wgp=1 slot=2 data=0x16\n",
        "TIMESTAMP lost value=100\n",
        "+5 SHADER_DATA wgp=1 slot=1 data=0x16\n",
        "+5 WAVE_START wgp=1 slot=3\n+5 SHADER_DATA wgp=1 slot=3 data=0x14\n",
    ]
    .concat();
    let chunk = assemble::chunk(Generation::Gfx12, &text).unwrap();
    let mut found = Vec::new();
    Decoder::new(TwoMaps, Options::default())
        .decode(&chunk, &mut |record: Record<'_>| {
            let Record::Markers(markers) = record else { return };
            for marker in markers {
                let is_payload = marker.record_kind == MarkerRecordKind::Payload;
                found.push((marker.shader_data.wave_id, marker.name.to_owned(), is_payload));
            }
        })
        .unwrap();
    let expected = [(1, "first", false), (2, "second", false), (1, "first", false), (2, "second", true)];
    let expected = expected.map(|(slot, name, is_payload)| (slot, name.to_owned(), is_payload));
    assert_eq!(found[..4], expected);
    assert_eq!(found[4..], [(3, "second".to_owned(), false)]);
}
