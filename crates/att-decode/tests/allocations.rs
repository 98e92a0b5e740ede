//! Memory: no allocation per token, and no more than a few times the output at the peak.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its fixtures has failed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

use wavescope_att_decode::{Decoder, NoInstructions, Options, Record, Tokens};
use wavescope_sqtt_fixtures::sets_below;

/// The system's allocator, with counts of what the current thread does.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn note(bytes: isize) {
    // Nothing is counted while the thread ends and its counters are gone.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
    if bytes > 0 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    }
}

// SAFETY: every call is handed on to the system's allocator unchanged, which keeps the trait's promises; the counters
// are thread-local cells that do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller's promise for this call is the one needed.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: `pointer` came from `System` with this layout, by `alloc` above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and peak of live bytes while `run` runs.
fn measure(run: impl FnOnce()) -> (usize, usize) {
    let (before, live) = (ALLOCATIONS.get(), LIVE.get());
    PEAK.set(live);
    run();
    (ALLOCATIONS.get() - before, (PEAK.get() - live) as usize)
}

/// Each chunk of the repository's sets, repeated so many times.
fn repeated(times: usize) -> Vec<(String, Vec<u8>)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let repeat = |set: &wavescope_sqtt_fixtures::Set| {
        let chunk = set.chunks().unwrap().remove(0).bytes;
        // The software header of gfx9 counts once.
        let header = if set.name.starts_with("gfx9") { 8 } else { 0 };
        (set.name.clone(), [&chunk[..header], &chunk[header..].repeat(times)].concat())
    };
    sets_below(&data, "golden.jsonl").unwrap().iter().map(repeat).collect()
}

/// Bytes of what a record delivers.
fn size(record: &Record<'_>) -> usize {
    match record {
        Record::Occupancy(records) => size_of_val(*records),
        Record::PerfEvents(records) => size_of_val(*records),
        Record::ShaderData(records) => size_of_val(*records),
        Record::Realtime(records) => size_of_val(*records),
        Record::OtherSimd(records) => size_of_val(*records),
        Record::Wave(wave) => 64 + size_of_val(wave.timeline) + size_of_val(wave.instructions),
        _ => 40,
    }
}

#[test]
fn tokens_allocate_nothing() {
    for (name, chunk) in repeated(4) {
        let mut tokens = 0;
        let (allocations, _) = measure(|| tokens = Tokens::new(&chunk).unwrap().count());
        assert!(tokens > 200, "{name}: {tokens} tokens");
        assert_eq!(allocations, 0, "{name}");
    }
}

#[test]
fn decoding_allocates_for_lists_and_not_for_tokens() {
    for ((name, once), (_, often)) in repeated(1).into_iter().zip(repeated(64)) {
        let decode = |chunk: &[u8]| {
            measure(|| {
                let _ =
                    Decoder::new(NoInstructions, Options::default()).decode(chunk, &mut |_: Record<'_>| {});
            })
        };
        let (few, _) = decode(&once);
        let (many, _) = decode(&often);
        let tokens = Tokens::new(&often).unwrap().count();
        // Lists grow by doubling or by half; waves that never end have lists of their own.
        let waves = 3 * open_waves(&often);
        assert!(many < few + 200 + waves, "{name}: {few} allocations once, {many} for {tokens} tokens");
    }
}

/// Waves that are delivered at the end of a chunk, all alive at a time.
fn open_waves(chunk: &[u8]) -> usize {
    let mut waves = 0;
    let _ = Decoder::new(NoInstructions, Options::default()).decode(chunk, &mut |record: Record<'_>| {
        waves += usize::from(matches!(record, Record::Wave(_)));
    });
    waves
}

#[test]
fn the_peak_is_at_most_three_times_the_output() {
    for (name, chunk) in repeated(200) {
        let mut output = 0;
        let (_, peak) = measure(|| {
            let _ =
                Decoder::new(NoInstructions, Options::default())
                    .decode(&chunk, &mut |record: Record<'_>| output += size(&record));
        });
        assert!(peak <= 3 * output + FIXED, "{name}: {peak} bytes at the peak for {output} of output");
    }
}

/// Tables that any chunk has.
const FIXED: usize = 200_000;

#[test]
fn streams_stay_within_fixed_memory() {
    for (name, chunk) in repeated(400) {
        let (_, peak) = measure(|| {
            let mut decoder = Decoder::new(NoInstructions, Options::streaming());
            let mut stream = decoder.stream();
            for piece in chunk.chunks(65_536) {
                if stream.push(piece, &mut |_: Record<'_>| {}).is_err() {
                    return;
                }
            }
            let _ = stream.finish(&mut |_: Record<'_>| {});
        });
        assert!(peak < 24 << 20, "{name}: {peak} bytes at the peak for a stream of {}", chunk.len());
    }
}

/// Streams made to cost as much memory as possible per byte: all waves of a SIMD take an immediate with every three
/// bytes; waves start over each other and never end; waves end that never started.
fn hostile() -> [(&'static str, Vec<u8>); 3] {
    let header = 0x0000_0000_0000_0191u64.to_le_bytes();
    let start = |slot: u32| (0xc | slot << 13).to_le_bytes();
    let starts: Vec<u8> = (0..16).flat_map(start).collect();
    let immediates = [0x24, 0xff, 0xff].repeat(100_000);
    let open = starts.repeat(5_000);
    // WAVE_END is 20 bits: two of them in five bytes.
    let ends = [0x15, 0x00, 0x50, 0x01, 0x00].repeat(50_000);
    [
        ("immediates", [&header[..], &starts, &immediates, &[0; 16]].concat()),
        ("waves without end", [&header[..], &open, &[0; 16]].concat()),
        ("ends without start", [&header[..], &ends, &[0; 16]].concat()),
    ]
}

#[test]
fn hostile_streams_cost_less_than_300_times_their_length() {
    for (name, chunk) in hostile() {
        let (_, peak) = measure(|| {
            Decoder::new(NoInstructions, Options::default()).decode(&chunk, &mut |_: Record<'_>| {}).unwrap();
        });
        assert!(peak > chunk.len() * 5, "{name}: only {peak} bytes, the stream does not do what it should");
        assert!(peak < chunk.len() * 300, "{name}: {peak} bytes for {}", chunk.len());
    }
}
