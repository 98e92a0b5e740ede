//! Instructions of every format, against what LLVM's disassembler makes of them.
//!
//! `tests/llvm/TARGET.tsv` holds bytes and text, written by `examples/compare_random_words.rs` with LLVM 23.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::{bare, class_of};
use wavescope_isa::{Error, Instruction, Target, decode};

/// All cases of all targets: target, bytes, text.
fn cases() -> Vec<(Target, Vec<u8>, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/llvm");
    let mut cases = Vec::new();
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let target: Target = file.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        for line in fs::read_to_string(&file).unwrap().lines() {
            let (hex, text) = line.split_once('\t').unwrap();
            let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            cases.push((target, (0..hex.len()).step_by(2).map(byte).collect(), text.to_owned()));
        }
    }
    assert!(cases.len() > 5000, "{} cases", cases.len());
    cases
}

#[test]
fn length_name_and_class_are_llvms() {
    for (target, mut bytes, text) in cases() {
        let size = bytes.len();
        bytes.extend([0xff; 8]); // nothing behind the instruction may change it
        let found = decode(target, &bytes).unwrap();
        assert_eq!(found.size(), size, "{target}: {text}");
        assert_eq!(found.mnemonic(), bare(&text), "{target}: {text}");
        assert_eq!(found.class(), class_of(target.gfxip(), &text), "{target}: {text}");
        assert!(found.is_named(), "{target}: {text}");
    }
}

/// A chip may run what its own disassembler refuses: an instruction of a chip next to it.
#[test]
fn instructions_of_a_sibling_chip_have_their_length_and_class() {
    let siblings = [
        (Target::Gfx950, Target::Gfx942),
        (Target::Gfx1151, Target::Gfx1100),
        (Target::Gfx1250, Target::Gfx1200),
    ];
    let mut compared = 0;
    for (target, bytes, text) in cases() {
        let Some((_, sibling)) = siblings.iter().find(|(from, _)| *from == target) else { continue };
        // Where the opcode numbers mean something else, or where only one has 64-bit literals, they differ rightly.
        let Ok(there) = decode(*sibling, &bytes) else { continue };
        if there.mnemonic() == bare(&text) && there.size() == bytes.len() {
            assert_eq!(there.class(), class_of(sibling.gfxip(), &text), "{sibling}: {text}");
            compared += 1;
        }
    }
    assert!(compared > 3000, "{compared} compared");
}

/// Fields that an opcode does not use, filled: with the code of a literal, with anything.
#[test]
fn junk_in_unused_fields_changes_neither_length_nor_class() {
    let cases: [(Target, u64, usize, &str); 8] = [
        (Target::Gfx942, 0xbe80_1cff, 4, "s_getpc_b64"),
        (Target::Gfx942, 0xbf81_beef, 4, "s_endpgm"),
        (Target::Gfx942, 0xbf8a_ffff, 4, "s_barrier"),
        (Target::Gfx942, 0x7ffe_00ff, 4, "v_nop"),
        (Target::Gfx1100, 0xbfbd_ffff, 4, "s_barrier"),
        (Target::Gfx1100, 0x03fe_0501_d503_0000, 8, "v_add_f32"), // third source: 255
        (Target::Gfx1200, 0xbe80_47ff, 4, "s_getpc_b64"),
        (Target::Gfx1250, 0x03fa_0501_d503_0000, 8, "v_add_f32"), // third source: 254
    ];
    for (target, low, size, name) in cases {
        let found = decode(target, &low.to_le_bytes()).unwrap();
        assert_eq!((found.size(), found.mnemonic()), (size, name), "{target} {low:#x}");
        assert_eq!(found.class(), class_of(target.gfxip(), name), "{target} {low:#x}");
    }
}

#[test]
fn every_cut_is_an_error_that_tells_the_length() {
    for (target, bytes, text) in cases() {
        for cut in 0..bytes.len() {
            let error = decode(target, &bytes[..cut]).unwrap_err();
            let Error::Truncated { needed, available } = error else { unreachable!("{error}") };
            assert!(
                available == cut && needed > cut && needed <= bytes.len(),
                "{target}: {text} cut to {cut}"
            );
        }
    }
}

#[test]
fn program_flow_is_told_by_the_mnemonics() {
    for (target, bytes, text) in cases() {
        let found = decode(target, &bytes).unwrap();
        let name = bare(&text);
        let one_of = |names: &[&str]| names.contains(&name);
        assert_eq!(found.ends_program(), name.starts_with("s_endpgm"), "{target}: {text}");
        let indirect = one_of(&[
            "s_setpc_b64",
            "s_swappc_b64",
            "s_rfe_b64",
            "s_rfe_restore_b64",
            "s_cbranch_g_fork",
            "s_cbranch_join",
            "s_set_pc_i64",
            "s_swap_pc_i64",
            "s_add_pc_i64",
        ]);
        assert_eq!(found.is_indirect(), indirect, "{target}: {text}");
        let call = one_of(&["s_swappc_b64", "s_swap_pc_i64", "s_call_b64", "s_call_i64"]);
        assert_eq!(found.is_call(), call, "{target}: {text}");
        assert_eq!(found.is_waitcnt(), text.starts_with("s_waitcnt"), "{target}: {text}");
        assert_eq!(found.is_barrier_wait(), text.starts_with("s_barrier_wait"), "{target}: {text}");
        assert_eq!(found.is_load(), text.contains("_load_"), "{target}: {text}");
        assert_eq!(found.is_scratch(), name.contains("scratch_"), "{target}: {text}");
    }
}

/// Distance that LLVM prints behind the last space: words, 16 bits.
fn printed_distance(text: &str) -> Option<i64> {
    let words: u16 = text.rsplit(' ').next()?.parse().ok()?;
    Some(i64::from(words as i16) * 4)
}

#[test]
fn branch_offsets_are_those_of_the_text() {
    let relative = |name: &str| {
        name == "s_branch"
            || name.starts_with("s_cbranch_")
            || name.starts_with("s_call")
            || name.contains("_loop_")
    };
    let mut compared = 0;
    for (target, bytes, text) in cases() {
        let found: Instruction = decode(target, &bytes).unwrap();
        let expected =
            if relative(bare(&text)) && !found.is_indirect() { printed_distance(&text) } else { None };
        assert_eq!(found.branch_offset(), expected, "{target}: {text}");
        compared += u32::from(expected.is_some());
    }
    assert!(compared > 40, "{compared} branches");
}
