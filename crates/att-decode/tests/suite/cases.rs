//! The readable golden cases of `tests/cases`.

use std::path::Path;

use wavescope_att_decode::assemble::Case;

#[test]
fn cases_give_their_records() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let case = Case::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if let Some(difference) = crate::support::first_difference(case.expected(), &case.records()) {
            panic!("{}: {difference}", path.display());
        }
        cases += 1;
    }
    assert!(cases >= 10, "{cases} cases");
}

#[test]
fn a_case_is_read_back_from_its_dump() {
    let text = "chip gfx12\ntokens\nHEADER version=4 wgp=5\n+700 WAVE_END wgp=5 simd=2 slot=31\nrecords\n";
    let case = Case::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let mut dump = String::new();
    wavescope_att_decode::dump::write(case.chunk(), &mut dump).unwrap();
    assert!(dump.contains("WAVE_END\t20\t700\t"), "{dump}");
    assert!(dump.contains("\tsa=0 wgp=5 simd=2 slot=31\n"), "{dump}");
}
