//! Bad input gives one clear line that names the file and the place, exit code 2, and never a panic.

mod common;

use std::fs;

use common::{Outcome, wavescope};

/// Asserts a refusal whose one line holds all of `words`.
fn refused(outcome: &Outcome, words: &[&str]) {
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert_eq!(outcome.stderr.trim_end().lines().count(), 1, "{outcome:?}");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "`{word}` is not in {outcome:?}");
    }
}

/// The 8-byte software header of a gfx9 trace, version 5, as the capturing library writes it (0x11 | 5 << 13).
const GFX9_HEADER: [u8; 8] = [0x11, 0xA0, 0x0F, 0, 0, 0, 0, 0];

#[test]
fn unknown_target_lists_the_known_ones() {
    refused(&wavescope(["decode", "--gfx", "gfx1", "--sqtt", "x"]), &["`gfx1`", "gfx942"]);
    refused(&wavescope(["demo", "--gpu", "voodoo2"]), &["`voodoo2`", "gfx942"]);
    refused(&wavescope(["list", "counters", "--gfx", "gfx1"]), &["`gfx1`", "gfx942"]);
}

#[test]
fn target_without_kernels_is_named() {
    refused(&wavescope(["demo", "--gpu", "gfx1030"]), &["gfx1030", "gfx942"]);
}

#[test]
fn missing_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no-such.sqtt");
    let name = missing.to_str().unwrap();
    refused(&wavescope(["decode", "--gfx", "gfx942", "--sqtt", name]), &[name]);
    refused(&wavescope(["tokens", name]), &[name]);
}

#[test]
fn capture_too_short_for_its_header_is_refused_at_offset_0() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short.sqtt");
    fs::write(&path, &GFX9_HEADER[..5]).unwrap();
    let name = path.to_str().unwrap();
    refused(&wavescope(["decode", "--gfx", "gfx942", "--sqtt", name]), &[name, "offset 0", "5 bytes"]);
}

#[test]
fn capture_cut_inside_a_unit_is_decoded_and_its_end_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.sqtt");
    let mut bytes = GFX9_HEADER.to_vec();
    bytes.resize(8 + 32 + 9, 0);
    fs::write(&path, &bytes).unwrap();
    let name = path.to_str().unwrap();
    let outcome = wavescope(["decode", "--gfx", "gfx942", "--sqtt", name]);
    refused(&outcome, &[name, "offset 40", "truncated", "9 bytes"]);
    assert!(outcome.stdout.contains(r#"{"rec":"gfxip","value":9}"#), "{outcome:?}");
}

#[test]
fn capture_of_another_generation_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gfx9.sqtt");
    let mut bytes = GFX9_HEADER.to_vec();
    bytes.resize(8 + 32, 0);
    fs::write(&path, &bytes).unwrap();
    let name = path.to_str().unwrap();
    refused(&wavescope(["decode", "--gfx", "gfx1100", "--sqtt", name]), &[name, "gfx1100", "Gfx9"]);
}

#[test]
fn file_that_is_no_elf_is_named_with_its_offset() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, code) = (folder.path().join("t.sqtt"), folder.path().join("k.co"));
    fs::write(&trace, [GFX9_HEADER, [0; 8]].concat()).unwrap();
    fs::write(&code, b"this is no ELF file, but it is long enough to hold the header of one, or nearly so")
        .unwrap();
    let object = format!("{}@0x1000", code.display());
    let name = code.to_str().unwrap();
    let trace = trace.to_str().unwrap();
    let outcome = wavescope(["decode", "--gfx", "gfx942", "--sqtt", trace, "--code-object", &object]);
    refused(&outcome, &[name, "offset", "ELF"]);
}

#[test]
fn code_object_without_an_address_says_what_is_expected() {
    let outcome = wavescope(["decode", "--gfx", "gfx942", "--sqtt", "x", "--code-object", "k.co"]);
    refused(&outcome, &["k.co", "FILE@ADDRESS"]);
}

#[test]
fn topology_folder_with_garbage_is_named_with_line_and_byte() {
    let folder = tempfile::tempdir().unwrap();
    let node = folder.path().join("nodes/0");
    fs::create_dir_all(&node).unwrap();
    fs::write(folder.path().join("generation_id"), "1\n").unwrap();
    fs::write(node.join("gpu_id"), "4711\n").unwrap();
    fs::write(node.join("properties"), "simd_count 1216\nsimd_per_cu \u{fffd}four\n").unwrap();
    let name = folder.path().to_str().unwrap();
    let outcome = wavescope(["list", "agents", "--topology", name]);
    refused(&outcome, &["nodes/0/properties", "line 2", "byte"]);
}

#[test]
fn command_buffer_with_a_cut_packet_is_printed_up_to_it_and_its_offset_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.txt");
    // A whole SET_UCONFIG_REG of GRBM_GFX_INDEX, then the header of another.
    fs::write(&path, "c0017900 00000200 e0000000 c0017900").unwrap();
    let name = path.to_str().unwrap();
    let outcome = wavescope(["pm4", "--gfx", "gfx90a", name]);
    refused(&outcome, &[name, "dword 3"]);
    assert!(outcome.stdout.contains("SET_UCONFIG_REG GRBM_GFX_INDEX[0c200] = e0000000"), "{outcome:?}");
    refused(&wavescope(["pm4", name]), &[name, "--gfx"]);
    refused(&wavescope(["pm4", "--gfx", "gfx7", name]), &["gfx7"]);
    fs::write(&path, [1, 2, 3, 4, 5]).unwrap();
    refused(&wavescope(["pm4", "--gfx", "gfx90a", name]), &[name, "offset 4"]);
}

#[test]
fn folder_or_empty_file_is_refused_by_every_command_that_reads_one() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    fs::write(&empty, []).unwrap();
    let (folder, empty) = (folder.path().to_str().unwrap(), empty.to_str().unwrap());
    for (name, word) in [(folder, "directory"), (empty, "")] {
        let object = format!("{name}@0x1000");
        refused(&wavescope(["decode", "--gfx", "gfx942", "--sqtt", name]), &[name, word]);
        refused(
            &wavescope(["decode", "--gfx", "gfx942", "--sqtt", empty, "--code-object", &object]),
            &[name, word],
        );
        refused(&wavescope(["tokens", name]), &[name, word]);
        refused(&wavescope(["pm4", "--gfx", "gfx942", name]), &[name, word]);
    }
    refused(&wavescope(["list", "agents", "--topology", empty]), &[empty]);
}

#[test]
fn machine_without_the_driver_is_told_so() {
    refused(&wavescope(["list", "agents", "--topology", "/nowhere"]), &["/nowhere", "amdgpu", "--topology"]);
}

#[test]
fn line_about_a_file_stays_one_line_and_reaches_no_terminal_control() {
    refused(&wavescope(["tokens", "a\nb\u{1b}[2J"]), &[r"a\nb\u{1b}[2J"]);
}

#[test]
fn wrong_arguments_are_explained_by_the_parser_with_the_same_exit_code() {
    let outcome = wavescope(["demo", "--contexts", "0"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("--contexts"), "{outcome:?}");
}
