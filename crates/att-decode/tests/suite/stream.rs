//! Chunks in pieces give the same records, whatever the size of the pieces.

use wavescope_att_decode::{Decoder, Options, Pc};
use wavescope_sqtt_fixtures::{Chunk, Kernel};

use crate::support::{decode, first_difference, lookup, sets_with};

/// Records of a chunk that comes in pieces of these sizes, over and over.
fn in_pieces(chunk: &Chunk, kernels: &[Kernel], options: Options, sizes: &[usize]) -> String {
    let mut lines = wavescope_att_decode::jsonl::JsonLines::new(Vec::new());
    let source = |pc: Pc, gfxip: u32| lookup(kernels, pc, gfxip);
    let mut decoder = Decoder::new(source, options);
    let mut stream = decoder.stream();
    let mut rest = &chunk.bytes[..];
    let mut result = Ok(());
    for size in sizes.iter().cycle() {
        let (piece, behind) = rest.split_at(rest.len().min(*size));
        result = stream.push(piece, &mut lines);
        rest = behind;
        if rest.is_empty() || result.is_err() {
            break;
        }
    }
    let result = result.and_then(|()| stream.finish(&mut lines));
    lines.status(result);
    String::from_utf8(lines.finish().unwrap()).unwrap()
}

#[test]
fn any_pieces_give_the_golden_records() {
    let mut wrong = Vec::new();
    for set in sets_with("golden.jsonl") {
        let kernels = set.kernels().unwrap();
        let golden = set.text("golden.jsonl").unwrap();
        for sizes in [&[1][..], &[2, 3, 64, 5], &[17], &[4096]] {
            let found = decode(&set, |chunk, lines| {
                let text = in_pieces(chunk, &kernels, Options::default(), sizes);
                lines.raw(&text);
            });
            if let Some(difference) = first_difference(&golden, &found) {
                wrong.push(format!("{} in {sizes:?}: {difference}", set.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn bounded_streams_do_not_depend_on_the_pieces() {
    for set in sets_with("golden.jsonl") {
        let kernels = set.kernels().unwrap();
        for chunk in set.chunks().unwrap() {
            let whole = in_pieces(&chunk, &kernels, Options::streaming(), &[usize::MAX]);
            let pieces = in_pieces(&chunk, &kernels, Options::streaming(), &[1, 100, 7]);
            if let Some(difference) = first_difference(&whole, &pieces) {
                panic!("{}/{}: {difference}", set.name, chunk.file);
            }
        }
    }
}
