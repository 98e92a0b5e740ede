//! Instruction text through the installed comgr library.
#![cfg(feature = "comgr")]

mod common;

use common::{bare, captures};
use wavescope_isa::{CodeObject, Comgr, Error, Instructions, Target};

/// The installed library; None, said aloud, where there is none.
fn comgr() -> Option<Comgr> {
    match Comgr::load() {
        Ok(comgr) => Some(comgr),
        Err(error) => {
            println!("NOT RUN: {error}");
            None
        }
    }
}

#[test]
fn a_missing_library_is_named() {
    let error = Comgr::load_from("libamd_comgr_of_nobody.so").err().unwrap();
    assert!(matches!(error, Error::ComgrMissing { .. }));
    assert!(error.to_string().contains("libamd_comgr_of_nobody.so"), "{error}");
}

#[test]
fn text_and_length_agree_with_decoding_of_a_captured_kernel() {
    let (Some(comgr), Some(folder)) = (comgr(), captures()) else { return };
    let file = std::fs::read(folder.join("gfx1100/gemm_run_0/k0.co")).unwrap();
    let object = CodeObject::parse(&file).unwrap();
    let target = object.target().unwrap();
    let mut disassembler = match comgr.disassembler(target) {
        Ok(disassembler) => disassembler,
        Err(error) => return println!("NOT RUN: {error}"),
    };
    let mut compared = 0;
    for code in object.code() {
        for (offset, found) in Instructions::new(target, code.bytes) {
            let found = found.unwrap();
            let text = disassembler.text(&code.bytes[offset..], code.vaddr + offset as u64);
            // An older library refuses the last bytes of a text, since it wants to read the longest instruction.
            let Ok((text, size)) = text else { continue };
            compared += 1;
            assert_eq!((found.size(), found.mnemonic()), (size, bare(&text)), "{text}");
        }
    }
    println!("{compared} instructions compared");
    assert!(compared > 150, "{compared} instructions compared");
}

#[test]
fn bytes_that_end_early_are_an_error() {
    let Some(comgr) = comgr() else { return };
    let mut disassembler = comgr.disassembler(Target::Gfx1030).unwrap();
    let error = disassembler.text(&[0xff, 0x03], 0).unwrap_err();
    assert!(matches!(error, Error::Comgr { .. }), "{error}");
}
