//! The bindings have the layout that a C compiler measured, and the comparison sees each kind of difference.

#![cfg(test)]

use serde_json::{Value, json};
use wavescope_abi_check::{AQLPROFILE, HSA, Registry, Report, compare, registry_for};

fn facts(name: &str) -> Value {
    let path = format!("{}/../hsa-sys/abi/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn shown(report: &Report) -> Vec<String> {
    report.differences.iter().map(ToString::to_string).collect()
}

/// Changes the fact at `pointer` and demands a difference at exactly `place`.
fn mutation_is_seen(name: &str, registry: &Registry, pointer: &str, value: Value, place: &str) {
    let mut facts = facts(name);
    let fact = facts.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is not in {name}"));
    assert_ne!(*fact, value, "{pointer} already has this value");
    *fact = value;
    let report = compare(&facts, registry);
    let places: Vec<_> = report.differences.iter().map(|difference| difference.place.as_str()).collect();
    assert_eq!(places, [place], "{:?}", shown(&report));
}

#[test]
fn every_fact_of_hsa_has_an_equal_compiled_counterpart() {
    let report = compare(&facts("hsa.json"), &HSA);
    assert_eq!(shown(&report), [""; 0]);
    // Two figures per struct, one or more per member, enumerator, function: far more than the 113 structs.
    assert!(report.comparisons > 3000, "only {} figures compared", report.comparisons);
}

#[test]
fn every_fact_of_aqlprofile_has_an_equal_compiled_counterpart() {
    let report = compare(&facts("aqlprofile.json"), &AQLPROFILE);
    assert_eq!(shown(&report), [""; 0]);
    assert!(report.comparisons > 400, "only {} figures compared", report.comparisons);
}

#[test]
fn the_captured_facts_are_those_that_the_bindings_were_made_from() {
    for name in ["hsa.json", "aqlprofile.json"] {
        let path = format!("{}/../../../shared/fixtures/abi/{name}", env!("CARGO_MANIFEST_DIR"));
        let Ok(captured) = std::fs::read_to_string(path) else {
            println!("NOT RUN: ../shared/fixtures/abi/{name} is not there");
            continue;
        };
        assert_eq!(
            serde_json::from_str::<Value>(&captured).unwrap(),
            facts(name),
            "run `cargo xtask golden bless abi`"
        );
    }
}

#[test]
fn a_changed_size_is_seen() {
    mutation_is_seen("hsa.json", &HSA, "/structs/hsa_queue_t/size", json!(48), "structs.hsa_queue_t.size");
}

#[test]
fn a_changed_alignment_is_seen() {
    mutation_is_seen("hsa.json", &HSA, "/structs/amd_signal_t/align", json!(8), "structs.amd_signal_t.align");
}

#[test]
fn a_changed_offset_is_seen_in_a_struct_a_view_and_a_union() {
    let place = "structs.hsa_queue_t.fields.size";
    mutation_is_seen("hsa.json", &HSA, "/structs/hsa_queue_t/fields/4/offset", json!(20), place);
    let view = "/structs/hsa_kernel_dispatch_packet_t/fields/0/fields/1/size";
    mutation_is_seen(
        "hsa.json",
        &HSA,
        view,
        json!(2),
        "structs.hsa_kernel_dispatch_packet_t.fields.full_header",
    );
    let nested = "/structs/hsa_ven_amd_aqlprofile_info_data_t/fields/1/fields/0/fields/1/offset";
    let place = "structs.hsa_ven_amd_aqlprofile_info_data_t.fields.pmc_data.result";
    mutation_is_seen("aqlprofile.json", &AQLPROFILE, nested, json!(20), place);
}

#[test]
fn a_moved_bit_field_is_seen() {
    let pointer = "/structs/aqlprofile_att_codeobj_data_t/fields/5/bit_offset";
    let place = "structs.aqlprofile_att_codeobj_data_t.fields.fromStart";
    mutation_is_seen("aqlprofile.json", &AQLPROFILE, pointer, json!(258), place);
    let pointer = "/structs/aqlprofile_att_parameter_t/fields/1/fields/1/fields/0/bit_width";
    let place = "structs.aqlprofile_att_parameter_t.fields.counter_id";
    mutation_is_seen("aqlprofile.json", &AQLPROFILE, pointer, json!(27), place);
}

#[test]
fn a_changed_enumerator_is_seen() {
    let pointer = "/enums/hsa_status_t/values/HSA_STATUS_ERROR";
    mutation_is_seen("hsa.json", &HSA, pointer, json!(1), "enums.hsa_status_t.values.HSA_STATUS_ERROR");
}

#[test]
fn a_moved_slot_is_seen() {
    let place = "api_table_slots.CoreApiTable.hsa_queue_create_fn.index";
    mutation_is_seen("hsa.json", &HSA, "/api_table_slots/CoreApiTable/7/index", json!(8), place);
    let place = "api_table_slots.AmdExtTable.hsa_amd_coherency_set_type_fn.offset";
    mutation_is_seen("hsa.json", &HSA, "/api_table_slots/AmdExtTable/1/offset", json!(32), place);
}

#[test]
fn a_changed_table_version_is_seen() {
    let pointer = "/table_versions/HSA_AMD_EXT_API_TABLE_STEP_VERSION";
    mutation_is_seen(
        "hsa.json",
        &HSA,
        pointer,
        json!(8),
        "table_versions.HSA_AMD_EXT_API_TABLE_STEP_VERSION",
    );
}

#[test]
fn a_changed_argument_is_seen() {
    let pointer = "/functions/aqlprofile_pmc_create_packets/params/2/type";
    let place = "functions.aqlprofile_pmc_create_packets.params";
    mutation_is_seen("aqlprofile.json", &AQLPROFILE, pointer, json!("aqlprofile_handle_t"), place);
}

#[test]
fn a_fact_without_counterpart_and_a_binding_without_fact_are_seen() {
    let mut facts = facts("hsa.json");
    let structs = facts["structs"].as_object_mut().unwrap();
    let queue = structs.remove("hsa_queue_t").unwrap();
    structs.insert("hsa_queue_v9_t".into(), queue);
    facts["new_section"] = json!({ "thing": {} });
    let shown = shown(&compare(&facts, &HSA));
    for expected in [
        "structs.hsa_queue_v9_t: expected Present, compiled nothing",
        "structs.hsa_queue_t: expected nothing, compiled Present",
        "new_section.thing: expected Present, compiled nothing",
    ] {
        assert!(shown.iter().any(|line| line == expected), "{expected} is not in {shown:?}");
    }
}

#[test]
fn the_registry_is_found_by_content_and_never_guessed() {
    let found = |facts: &Value| registry_for(facts).map(|registry| registry.structs.len());
    assert_eq!(found(&facts("hsa.json")), Some(HSA.structs.len()));
    assert_eq!(found(&facts("aqlprofile.json")), Some(AQLPROFILE.structs.len()));
    assert_eq!(found(&json!({ "structs": { "rocprofiler_agent_id_t": {} } })), None);
    assert_eq!(found(&json!(7)), None);
}
