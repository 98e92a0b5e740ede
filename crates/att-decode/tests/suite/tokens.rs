//! The token layer against dumps of every generation.

use wavescope_att_decode::{Token, Tokens};

/// What a dump line says, the raw bits left out: offset, kind, length, time.
fn line(token: &Token) -> String {
    format!("{}\t{}\t{}\t{}", token.bit_offset, token.kind, token.bits, token.time)
}

#[test]
fn tokens_equal_the_dumps() {
    let mut wrong = Vec::new();
    for set in crate::support::sets_with("tokens.tsv") {
        let text = set.text("tokens.tsv").unwrap();
        for section in text.split("# ").skip(1) {
            let (file, expected) = section.split_once('\n').unwrap();
            let chunk = set.bytes(file).unwrap();
            let mut tokens = Tokens::new(&chunk).unwrap();
            for (number, expected) in expected.lines().enumerate() {
                let expected = expected.rsplit_once('\t').unwrap().0;
                let found = tokens.next().map(|token| line(&token));
                if found.as_deref() != Some(expected) {
                    wrong.push(format!("{}/{file} line {number}: {expected} but {found:?}", set.name));
                    break;
                }
            }
            if let Some(extra) = tokens.next()
                && wrong.is_empty()
            {
                wrong.push(format!("{}/{file}: extra {}", set.name, line(&extra)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
