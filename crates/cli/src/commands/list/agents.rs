//! `wavescope list agents`: the GPUs of a topology folder.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use wavescope_core::{Agent, Topology};

use crate::input::{bad_input, blame_input};
use crate::output::{Table, write_json};

#[derive(Serialize)]
struct Row<'a> {
    agent: u32,
    node: u32,
    gpu_id: u32,
    target: String,
    name: &'a str,
    xcc: u32,
    shader_engines: u32,
    arrays_per_engine: u32,
    compute_units: u32,
    simds_per_cu: u32,
    waves_per_simd: u32,
    wave_size: u32,
    lds_bytes: u32,
    vram_bytes: u64,
    pci: String,
}

impl<'a> From<&'a Agent> for Row<'a> {
    fn from(agent: &'a Agent) -> Self {
        Self {
            agent: agent.id.0,
            node: agent.node,
            gpu_id: agent.gpu_id,
            target: agent.target.to_string(),
            name: &agent.marketing_name,
            xcc: agent.xcc_count,
            shader_engines: agent.shader_engines,
            arrays_per_engine: agent.arrays_per_engine,
            compute_units: agent.compute_units,
            simds_per_cu: agent.simds_per_cu,
            waves_per_simd: agent.waves_per_simd,
            wave_size: agent.wave_size,
            lds_bytes: agent.lds_bytes,
            vram_bytes: agent.vram_bytes,
            pci: agent.pci.to_string(),
        }
    }
}

/// Prints one row an agent.
pub(crate) fn run(folder: &Path, json: bool) -> anyhow::Result<()> {
    let topology = Topology::read(folder).map_err(|error| match folder.exists() {
        true => blame_input(error),
        false => bad_input(format!("{error}; is the amdgpu driver loaded? --topology names another folder")),
    })?;
    let rows: Vec<Row<'_>> = topology.agents().iter().map(Row::from).collect();
    if json {
        return write_json(&rows);
    }
    let mut out = std::io::stdout().lock();
    if rows.is_empty() {
        writeln!(out, "no GPU agents in {}", folder.display())?;
        return Ok(());
    }
    let mut table =
        Table::new(&["agent", "target", "name", "XCC", "SE", "CU", "SIMD/CU", "wave", "VRAM GiB", "PCI"]);
    for row in &rows {
        table.row([
            row.agent.to_string(),
            row.target.clone(),
            row.name.to_owned(),
            row.xcc.to_string(),
            row.shader_engines.to_string(),
            row.compute_units.to_string(),
            row.simds_per_cu.to_string(),
            row.wave_size.to_string(),
            (row.vram_bytes >> 30).to_string(),
            row.pci.clone(),
        ]);
    }
    table.write(&mut out)?;
    Ok(())
}
