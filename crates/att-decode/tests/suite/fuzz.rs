//! The harness of the fuzz targets on random and damaged inputs.

use proptest::prelude::*;

#[path = "../../../../fuzz/harness.rs"]
mod harness;

/// Chunks of the sets in the repository.
fn seeds() -> Vec<Vec<u8>> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let sets = wavescope_sqtt_fixtures::sets_below(&root, "golden.jsonl").unwrap();
    sets.iter().map(|set| set.chunks().unwrap().remove(0).bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn damaged_chunks(
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..30),
        how in any::<u8>(),
        code in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let seeds = seeds();
        let mut chunk = seeds[which.index(seeds.len())].clone();
        for (at, byte) in changes {
            let at = at.index(chunk.len());
            chunk[at] = byte;
        }
        harness::tokens(&chunk);
        let size = (code.len() as u16).to_le_bytes();
        harness::full_decode(&[&[how], &size[..], &code, &chunk].concat());
    }

    #[test]
    fn random_code(data in proptest::collection::vec(any::<u8>(), 0..600)) {
        harness::isa(&data);
    }
}
