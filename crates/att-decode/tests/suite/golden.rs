//! Every record of every set at hand, field by field.

use std::ops::ControlFlow;

use wavescope_att_decode::quick::{ScanState, TraceFormat, scan};
use wavescope_att_decode::{Decoder, Options, Pc, RecordSink};
use wavescope_sqtt_fixtures::Set;

/// Compares each set's golden with what `records` makes of it.
fn check(golden: &str, records: impl Fn(&Set) -> String) {
    let mut wrong = Vec::new();
    let sets = crate::support::sets_with(golden);
    for set in &sets {
        let expected = set.text(golden).unwrap();
        if let Some(difference) = crate::support::first_difference(&expected, &records(set)) {
            wrong.push(format!("{} {difference}", set.name));
        }
    }
    println!("{golden}: {} sets, {} wrong", sets.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn records_equal_the_goldens() {
    check("golden.jsonl", |set| {
        let kernels = set.kernels().unwrap();
        crate::support::decode(set, |chunk, lines| {
            let source = |pc: Pc, gfxip: u32| crate::support::lookup(&kernels, pc, gfxip);
            let result = Decoder::new(source, Options::default()).decode(&chunk.bytes, lines);
            lines.status(result);
        })
    });
}

#[test]
fn quick_scans_equal_the_goldens() {
    check("quick.jsonl", |set| {
        crate::support::decode(set, |chunk, lines| {
            let format = TraceFormat::of_first_chunk(&chunk.bytes).unwrap();
            let found = scan(&format, &chunk.bytes, true);
            let all = ScanState::default().replay(&format, &found, |record| {
                lines.record(record);
                ControlFlow::<()>::Continue(())
            });
            assert!(all.is_continue());
            lines.status(Ok(()));
        })
    });
}
