//! A wrong byte of each kind of case must fail it.

use serde_json::Value;

use super::*;
use crate::paths;

fn case(name: &str) -> Option<Value> {
    let path = paths::root().join("crates/aql-profile/tests/fixtures").join(name);
    let text = read_text(&path).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

fn differences(case: &Value) -> usize {
    let mut outcome = Outcome::default();
    schema_of(case).unwrap()(case, &mut outcome).unwrap();
    assert!(outcome.comparisons() > 0);
    outcome.differences().len()
}

/// Changes one hexadecimal digit of the dwords at `pointer`.
fn flip(case: &mut Value, pointer: &str, digit: usize) {
    let place = case.pointer_mut(pointer).unwrap();
    let mut text: Vec<u8> = place.as_str().unwrap().into();
    text[digit] = if text[digit] == b'0' { b'1' } else { b'0' };
    *place = Value::String(String::from_utf8(text).unwrap());
}

#[track_caller]
fn fails_when(name: &str, mutate: impl FnOnce(&mut Value)) {
    let mut case = case(name).expect("the repository holds a copy");
    assert_eq!(differences(&case), 0, "{name} passes as it is");
    mutate(&mut case);
    assert_ne!(differences(&case), 0, "{name} passes though it was changed");
}

#[test]
fn a_flipped_dword_of_counter_commands_fails() {
    fails_when("gfx90a/pmc-single-GRBM.json", |case| flip(case, "/ib/start/dw", 100));
    fails_when("gfx90a/pmc-single-GRBM.json", |case| flip(case, "/ib/read/dw", 8));
    fails_when("gfx1201/pmc-single-SQ.json", |case| flip(case, "/ib/stop/dw", 8));
}

#[test]
fn a_flipped_dword_of_a_packet_fails() {
    fails_when("gfx90a/pmc-single-GRBM.json", |case| flip(case, "/aql/read/dw", 24));
    fails_when("gfx1100/att-se-mask-1.json", |case| flip(case, "/aql/stop/dw", 20));
}

#[test]
fn a_flipped_dword_of_trace_commands_fails() {
    fails_when("gfx1100/att-se-mask-1.json", |case| flip(case, "/ib/start/dw", 200));
    fails_when("gfx942/att-default.json", |case| flip(case, "/ib/stop/dw", 300));
}

#[test]
fn a_changed_relocation_fails() {
    fails_when("gfx90a/pmc-single-GRBM.json", |case| case["ib"]["read"]["relocs"][0][2] = 4.into());
}

#[test]
fn a_changed_allocation_fails() {
    fails_when("gfx942/att-default.json", |case| case["allocs"][1]["flags"] = 19.into());
    fails_when("gfx90a/pmc-single-GRBM.json", |case| case["allocs"][0]["size"] = 24.into());
    fails_when("gfx90a/pmc-single-GRBM.json", |case| case["free_order"] = serde_json::json!([1, 0]));
    fails_when("gfx90a/pmc-single-GRBM.json", |case| case["copies"][0][2] = 148.into());
}

#[test]
fn changed_values_and_coordinates_fail() {
    fails_when("gfx1201/pmc-single-SQ.json", |case| case["iter"][3][2] = 9.into());
    fails_when("gfx1201/pmc-single-SQ.json", |case| case["iter"][3][3][0] = 7.into());
    fails_when("gfx1201/pmc-single-SQ.json", |case| case["out_host_writes"][0][0] = 8.into());
    fails_when("gfx942/att-default.json", |case| case["iterate"][0]["callbacks"][0][1] = 265.into());
    fails_when("gfx942/att-default.json", |case| case["iterate"][4]["status"] = 0.into());
}

#[test]
fn a_changed_status_fails() {
    fails_when("gfx90a/pmc-err-too-many-SQ.json", |case| case["status"] = 0x1001.into());
    fails_when("gfx90a/att-err-buf-small.json", |case| case["status"] = 0.into());
}

#[test]
fn a_changed_marker_queue_command_or_table_fails() {
    fails_when("gfx90a/codeobj.json", |case| flip(case, "/markers/1/ib/dw", 50));
    fails_when("gfx90a/queue-enable.json", |case| flip(case, "/cmds/enable/ib", 23));
    fails_when("gfx90a/info.json", |case| case["blocks"][3]["dims"][0][2] = 77.into());
    fails_when("tables/gfx1201.json", |case| case["blocks"][4]["regs"][0]["lo"]["off"] = "0x1".into());
    fails_when("api-behaviour.json", |case| case["validate"]["bad_index"][0] = 0.into());
}

#[test]
fn a_file_of_an_unknown_schema_is_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spm-new.json");
    std::fs::write(&path, "{\"kind\": \"spm\"}").unwrap();
    assert!(matches!(AqlProfile.role(&path), Role::NotCovered(_)));
    std::fs::write(folder.path().join("README.md"), "about").unwrap();
    assert_eq!(AqlProfile.role(&folder.path().join("README.md")), Role::Support);
}
