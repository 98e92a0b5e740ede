//! Reads each topology folder beside this file, and broken variants of one.
//!
//! The expected numbers are the published ones of the products (kernel driver `kfd_topology`, product pages).

#![expect(clippy::unwrap_used, reason = "helpers of the tests")]

use std::fs;
use std::path::{Path, PathBuf};

use wavescope_core::{AgentId, Error, Topology};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/topology").join(name)
}

/// target, CUs, XCCs, SEs, arrays per SE, SIMDs per CU, waves per SIMD, wave size, LDS KiB, VRAM, MHz
type Row = (&'static str, u32, u32, u32, u32, u32, u32, u32, u32, u64, u32);

const TABLE: [Row; 5] = [
    ("gfx942", 304, 8, 32, 1, 4, 8, 64, 64, 206_158_430_208, 2100),
    ("gfx90a", 104, 1, 8, 1, 4, 8, 64, 64, 68_702_699_520, 1700),
    ("gfx950", 256, 8, 32, 1, 4, 8, 64, 160, 309_220_868_096, 2200),
    ("gfx1100", 96, 1, 6, 2, 2, 16, 32, 64, 25_753_026_560, 2482),
    ("gfx1201", 64, 1, 4, 2, 2, 16, 32, 64, 34_208_743_424, 2350),
];

#[test]
fn every_product_has_its_published_shape() {
    for row in TABLE {
        let topology = Topology::read(&folder(row.0)).unwrap();
        let [agent] = topology.agents() else { panic!("{}: not one agent", row.0) };
        let name = agent.target.to_string();
        let lds_kib = agent.lds_bytes / 1024;
        let found = (
            (agent.compute_units, agent.xcc_count, agent.shader_engines, agent.arrays_per_engine),
            (agent.simds_per_cu, agent.waves_per_simd, agent.wave_size, lds_kib),
            (agent.vram_bytes, agent.max_engine_clock_mhz),
        );
        assert_eq!(name, row.0);
        assert_eq!(
            found,
            ((row.1, row.2, row.3, row.4), (row.5, row.6, row.7, row.8), (row.9, row.10)),
            "{name}"
        );
        assert_eq!((agent.id, agent.node, agent.gpu_id), (AgentId(0), 1, 2), "{name}");
    }
}

#[test]
fn two_gpus_are_two_agents_at_different_places() {
    let topology = Topology::read(&folder("gfx942-x2")).unwrap();
    let ids: Vec<_> = topology.agents().iter().map(|agent| (agent.id, agent.node, agent.gpu_id)).collect();
    assert_eq!(ids, [(AgentId(0), 1, 2), (AgentId(1), 2, 3)]);
    assert_ne!(topology.agents()[0].pci, topology.agents()[1].pci);
    assert_eq!(topology.agent(AgentId(1)), Some(&topology.agents()[1]));
    assert_eq!(topology.agent(AgentId(2)), None);
}

#[test]
fn agent_carries_product_name_and_pci_location() {
    let topology = Topology::read(&folder("gfx942")).unwrap();
    let agent = &topology.agents()[0];
    assert_eq!(agent.marketing_name, "AMD Instinct MI300X");
    assert_eq!(agent.pci.to_string(), "0000:03:00.0"); // location_id 768 = bus 3
    assert_eq!(agent.shader_engines_per_xcc(), 4);
}

/// Reads gfx942 with one file replaced.
fn with_file(name: &str, content: impl Fn(Vec<u8>) -> Vec<u8>) -> Result<Topology, Error> {
    let root = folder("gfx942");
    Topology::read_with(Path::new("/topo"), |path| {
        let bytes = fs::read(root.join(path))?;
        Ok(if path == name { content(bytes) } else { bytes })
    })
}

fn message(name: &str, content: impl Fn(Vec<u8>) -> Vec<u8>) -> String {
    with_file(name, content).unwrap_err().to_string()
}

const GPU: &str = "nodes/1/properties";

fn replaced(from: &'static str, to: &'static str) -> impl Fn(Vec<u8>) -> Vec<u8> {
    move |bytes| {
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(from), "{from}");
        text.replace(from, to).into_bytes()
    }
}

#[test]
fn garbage_names_file_line_and_byte() {
    let binary = message(GPU, |mut bytes| {
        bytes[20] = 0xFF;
        bytes
    });
    assert_eq!(binary, "/topo/nodes/1/properties: line 2 (byte 20): byte 0xff is not text");
    let word = message(GPU, replaced("simd_count 1216", "simd_count many"));
    assert_eq!(word, "/topo/nodes/1/properties: line 2 (byte 29): simd_count is \"many\", not a number");
    let no_value = message(GPU, |_| b"cpu_cores_count 0\nhello\n".to_vec());
    assert_eq!(
        no_value,
        "/topo/nodes/1/properties: line 2 (byte 18): expected `name value`, found \"hello\""
    );
    let id = message("nodes/1/gpu_id", |_| b"two\n".to_vec());
    assert_eq!(id, "/topo/nodes/1/gpu_id: line 1 (byte 0): expected one number, found \"two\\n\"");
}

#[test]
fn oversized_file_is_refused() {
    let long = message(GPU, |_| vec![b'a'; 5000]);
    assert!(long.contains("line 1 (byte 4095)") && long.contains("5000 bytes"), "{long}");
}

#[test]
fn contradictions_name_the_values() {
    for (from, to, expected) in [
        ("simd_per_cu 4", "simd_per_cu 0", "simd_per_cu of a GPU is 0"),
        ("simd_per_cu 4", "simd_per_cu 5", "simd_count 1216 is no multiple of simd_per_cu 5"),
        ("num_xcc 8", "num_xcc 7", "32 shader engines do not spread over 7 XCCs"),
        ("num_xcc 8", "num_xcc 0", "num_xcc of a GPU is 0"),
        ("gfx_target_version 90402", "gfx_target_version 0", "gfx_target_version 0 names no target"),
        ("lds_size_in_kb 64", "lds_size_in_kb 4294967295", "lds_size_in_kb 4294967295 exceeds 4 GiB"),
        ("domain 0", "domain 4294967296", "domain 4294967296 exceeds 32 bits"),
    ] {
        let found = message(GPU, replaced(from, to));
        assert_eq!(found, format!("/topo/nodes/1/properties: {expected}"));
    }
}

#[test]
fn missing_property_and_file_are_named() {
    let missing = message(GPU, replaced("simd_count 1216\n", ""));
    assert!(missing.starts_with("/topo/nodes/1/properties: no property `simd_count`"), "{missing}");
    let bank = message(GPU, replaced("mem_banks_count 1", "mem_banks_count 2"));
    assert_eq!(bank, "cannot read /topo/nodes/1/mem_banks/1/properties");
    let nothing = Topology::read(Path::new("/nonexistent")).unwrap_err().to_string();
    assert_eq!(nothing, "cannot read /nonexistent/generation_id");
}

#[test]
fn kernel_without_num_xcc_has_one() {
    let topology = with_file(GPU, replaced("num_xcc 8\n", "")).unwrap();
    assert_eq!(topology.agents()[0].xcc_count, 1);
}

#[test]
fn truncation_at_any_byte_is_an_answer_not_a_panic() {
    let whole = fs::read(folder("gfx942").join(GPU)).unwrap();
    let mut refused = 0;
    for length in 0..whole.len() {
        refused += usize::from(with_file(GPU, |bytes| bytes[..length].to_vec()).is_err());
    }
    // The last required property is num_xcc: cut before its value's end, nothing is accepted
    // (a cut inside a longer number still reads as a number).
    assert!(refused > whole.len() / 2, "{refused} of {}", whole.len());
}
