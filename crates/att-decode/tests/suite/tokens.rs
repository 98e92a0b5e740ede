//! The token layer against dumps of every generation.

use wavescope_att_decode::dump;

/// A line of a dump as far as it is compared: offset, kind, length, time.
fn compared(line: &str) -> String {
    line.split('\t').take(4).collect::<Vec<_>>().join("\t")
}

#[test]
fn tokens_equal_the_dumps() {
    let mut wrong = Vec::new();
    for set in crate::support::sets_with("tokens.tsv") {
        let text = set.text("tokens.tsv").unwrap();
        for section in text.split("# ").skip(1) {
            let (file, expected) = section.split_once('\n').unwrap();
            let mut found = String::new();
            dump::write(&set.bytes(file).unwrap(), &mut found).unwrap();
            let [expected, found] =
                [expected, &found].map(|text| text.lines().map(compared).collect::<Vec<_>>().join("\n"));
            if let Some(difference) = crate::support::first_difference(&expected, &found) {
                wrong.push(format!("{}/{file} {difference}", set.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
