//! The framework alone, on a kind whose cases say themselves what is right.

use std::io::Write;

use super::*;

/// Cases are `*.case` files of two words that must be equal; `*.later` is in the schema but not covered.
struct Pairs;

impl Kind for Pairs {
    fn name(&self) -> &'static str {
        "pairs"
    }

    fn role(&self, file: &Path) -> Role {
        let name = file.file_name().unwrap().to_str().unwrap();
        match name.trim_end_matches(".gz").rsplit_once('.').map(|(_, end)| end) {
            Some("case") => Role::Case,
            Some("later") => Role::NotCovered("its crate does not exist".into()),
            _ => Role::Support,
        }
    }

    fn check(&self, case: &Path) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        for (index, line) in read_text(case)?.lines().enumerate() {
            let (left, right) = line.split_once(' ').with_context(|| format!("line {index} has one word"))?;
            outcome.compare(index, &left, &right);
        }
        Ok(outcome)
    }
}

fn verdict(files: &[(&str, &str)]) -> (String, Result<()>) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = std::fs::File::create(path).unwrap();
        if name.ends_with(".gz") {
            let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            packer.write_all(text.as_bytes()).unwrap();
            packer.finish().unwrap();
        } else {
            file.write_all(text.as_bytes()).unwrap();
        }
    }
    let tally = tally(&Pairs, folder.path()).unwrap();
    (tally.to_string(), tally.verdict())
}

#[test]
fn equal_cases_pass_in_nested_folders_and_gzipped() {
    let (line, verdict) = verdict(&[("a.case", "x x"), ("deep/er/b.case.gz", "y y"), ("README", "about")]);
    assert_eq!(line, "2 passed, 0 failed");
    assert!(verdict.is_ok());
}

#[test]
fn a_difference_in_a_gzipped_case_fails_the_run() {
    let (line, verdict) = verdict(&[("a.case", "x x"), ("b.case.gz", "y z")]);
    assert_eq!(line, "1 passed, 1 failed");
    assert!(verdict.is_err());
}

#[test]
fn no_case_found_fails() {
    let (line, verdict) = verdict(&[("README", "about")]);
    assert_eq!(line, "0 passed, 0 failed");
    assert_eq!(verdict.unwrap_err().to_string(), "no case found");
}

#[test]
fn a_skipped_file_of_the_schema_fails() {
    let (line, verdict) = verdict(&[("a.case", "x x"), ("b.later", "?")]);
    assert_eq!(line, "1 passed, 1 failed");
    assert!(verdict.is_err());
}

#[test]
fn malformed_and_empty_cases_fail_and_the_rest_is_still_checked() {
    let (line, verdict) =
        verdict(&[("a.case", "alone"), ("b.case", ""), ("c.case", "x x"), ("d.case", "\n")]);
    assert_eq!(line, "1 passed, 3 failed");
    assert!(verdict.is_err());
}

#[test]
fn a_case_that_compares_nothing_fails() {
    let mut tally = Tally::default();
    tally.add("hollow", Ok(Outcome::default()));
    assert_eq!(tally.to_string(), "0 passed, 1 failed");
}

#[test]
fn one_file_may_be_given_instead_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("only.case");
    std::fs::write(&path, "x x\ny y").unwrap();
    assert_eq!(tally(&Pairs, &path).unwrap().to_string(), "1 passed, 0 failed");
}

#[test]
fn path_that_is_not_there_is_an_error_that_names_it() {
    let error = tally(&Pairs, Path::new("no/such/folder")).unwrap_err();
    assert!(error.to_string().contains("no/such/folder"));
}

#[test]
fn unknown_kind_is_refused_with_the_known_ones() {
    let Err(error) = find("sqt") else { panic!("found") };
    assert!(error.to_string().contains("abi"), "{error}");
}

#[test]
fn comparisons_are_counted_with_their_differences() {
    let mut outcome = Outcome::default();
    outcome.compare("same", &1, &1);
    outcome.compare("size", &8, &4);
    outcome.differ("field", "missing");
    assert_eq!(outcome.comparisons(), 3);
    assert_eq!(outcome.differences(), ["size: expected 8, found 4", "field: missing"]);
}
