//! Every record of every set at hand, field by field.

use std::ops::ControlFlow;

use wavescope_att_decode::quick::{ScanState, TraceFormat, scan};
use wavescope_att_decode::{
    CodeObjects, Decoder, NoInstructions, Options, Pc, RecordKind, RecordSet, RecordSink,
};
use wavescope_sqtt_fixtures::Set;

/// Compares each set's golden with what `records` makes of it.
fn check(golden: &str, records: impl Fn(&Set) -> String) {
    check_sets(golden, &crate::support::sets_with(golden), records);
}

fn check_sets(golden: &str, sets: &[Set], records: impl Fn(&Set) -> String) {
    let mut wrong = Vec::new();
    for set in sets {
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

/// The same with our own instruction tables in place of the sets' disassembly, where a set has code objects.
#[test]
fn records_equal_the_goldens_with_code_objects() {
    let mut sets = crate::support::sets_with("golden.jsonl");
    sets.retain(|set| set.kernels().unwrap().iter().all(|kernel| kernel.code_object.is_some()));
    if sets.is_empty() {
        println!("NOT RUN: no set at hand has code objects; captured ones are not part of the repository");
        return;
    }
    check_sets("golden.jsonl", &sets, |set| {
        let kernels = set.kernels().unwrap();
        let mut code = CodeObjects::new();
        for kernel in &kernels {
            let elf = std::fs::read(kernel.code_object.as_ref().unwrap()).unwrap();
            code.add(&elf, Some(kernel.load_address), None).unwrap();
        }
        crate::support::decode(set, |chunk, lines| {
            let result = Decoder::new(code.clone(), Options::default()).decode(&chunk.bytes, lines);
            lines.status(result);
        })
    });
}

/// The path that looks at nothing but starts and ends of waves.
#[test]
fn occupancy_alone_is_the_same() {
    let kinds = RecordSet::of(&[RecordKind::Occupancy]);
    let is_kept = |line: &&str| {
        ["chunk", "occupancy", "status"].iter().any(|rec| line.starts_with(&format!("{{\"rec\":\"{rec}\"")))
    };
    for set in crate::support::sets_with("golden.jsonl") {
        let found = crate::support::decode(&set, |chunk, lines| {
            let result = Decoder::new(NoInstructions, Options::of(kinds)).decode(&chunk.bytes, lines);
            lines.status(result);
        });
        let golden = set.text("golden.jsonl").unwrap();
        let expected: Vec<_> = golden.lines().filter(is_kept).collect();
        if let Some(difference) = crate::support::first_difference(&expected.join("\n"), &found) {
            panic!("{}: {difference}", set.name);
        }
    }
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
