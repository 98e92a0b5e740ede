//! Every record of every set at hand, field by field.

mod support;

use wavescope_att_decode::{Decoder, Options, Pc};

#[test]
fn records_equal_the_goldens() {
    let mut wrong = Vec::new();
    let mut sets = 0;
    for set in support::sets_with("golden.jsonl") {
        sets += 1;
        let kernels = set.kernels();
        let found = support::decode(&set, |chunk, lines| {
            let source = |pc: Pc, gfxip: u32| support::lookup(&kernels, pc, gfxip);
            let result = Decoder::new(source, Options::default()).decode(&chunk.bytes, lines);
            lines.status(result);
        });
        let expected = set.text("golden.jsonl").unwrap();
        if let Some(difference) = support::first_difference(&expected, &found) {
            wrong.push(format!("{} {difference}", set.name));
        }
    }
    println!("{sets} sets, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
