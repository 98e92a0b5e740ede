//! The GPUs as their topology folder describes them: what the model is made from, and what render nodes tell.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use wavescope_core::{Agent, GfxTarget, Topology};
use wavescope_pm4::{IpBases, Target};
use wavescope_software_gpu::DeviceConfig;

use super::error::Error;
use crate::paths;

/// Where the kernel driver publishes its topology; used when `WAVESCOPE_GPU_TOPOLOGY` is not set.
const SYSTEM: &str = "/sys/devices/virtual/kfd/kfd/topology";

/// GPUs that one process can have: a set of them is one word.
pub(super) const GPU_LIMIT: usize = 64;

/// PCI revision ids, which the topology does not have: with the device id they pick the marketing name
/// (`amdgpu.ids` of libdrm).
const PCI_REVISIONS: [(GfxTarget, u32); 3] =
    [(GfxTarget::GFX90A, 0x02), (GfxTarget::GFX1100, 0xC8), (GfxTarget::GFX1201, 0xC0)];

/// One GPU of the topology.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// What everybody reads.
    pub(super) agent: Agent,
    /// Minor number of its render node.
    pub(super) render_minor: u32,
    /// `AMDGPU_FAMILY_*`.
    pub(super) family: u32,
    /// PCI revision id.
    pub(super) pci_revision: u32,
    /// SDMA engines, those for links between GPUs included.
    pub(super) sdma_engines: u32,
    /// Queues of one SDMA engine.
    pub(super) sdma_queues_per_engine: u32,
    /// Global wave sync entries; 0: no cooperative launch.
    pub(super) gws: u32,
}

/// The folder that describes the GPUs.
pub(super) fn folder() -> PathBuf {
    let named = paths::topology_folder().map(|bytes| PathBuf::from(OsStr::from_bytes(bytes)));
    named.unwrap_or_else(|| PathBuf::from(SYSTEM))
}

/// Reads every GPU of `folder`.
pub(super) fn read(folder: &Path) -> Result<Vec<Node>, Error> {
    let topology = Topology::read(folder)?;
    let gpus = topology.agents().len();
    if gpus == 0 || gpus > GPU_LIMIT {
        return Err(Error::GpuCount { folder: folder.to_owned(), gpus, limit: GPU_LIMIT });
    }
    topology.agents().iter().map(|agent| Node::read(folder, agent)).collect()
}

impl Node {
    fn read(folder: &Path, agent: &Agent) -> Result<Self, Error> {
        let path = folder.join(format!("nodes/{}/properties", agent.node));
        let text =
            std::fs::read_to_string(&path).map_err(|source| Error::Node { path: path.clone(), source })?;
        let properties = properties(&text);
        let property = |name: &'static str| {
            let value = properties.get(name).copied().unwrap_or(0);
            u32::try_from(value).map_err(|_| Error::Property { node: agent.node, property: name, value })
        };
        let revision = PCI_REVISIONS.iter().find(|(target, _)| *target == agent.target);
        Ok(Self {
            agent: agent.clone(),
            render_minor: property("drm_render_minor")?,
            family: property("family_id")?,
            pci_revision: revision.map_or(0, |(_, revision)| *revision),
            sdma_engines: property("num_sdma_engines")?.saturating_add(property("num_sdma_xgmi_engines")?),
            sdma_queues_per_engine: property("num_sdma_queues_per_engine")?,
            gws: property("num_gws")?,
        })
    }

    /// The model's view of the node.
    pub(super) fn device_config(&self) -> Result<DeviceConfig, Error> {
        let agent = &self.agent;
        let name = agent.target.to_string();
        let target = Target::from_gfxip(&name).ok_or(wavescope_software_gpu::Error::UnknownTarget(name))?;
        let narrow = |property: &'static str, value: u32| {
            u8::try_from(value).map_err(|_| Error::Property {
                node: agent.node,
                property,
                value: u64::from(value),
            })
        };
        Ok(DeviceConfig {
            device: agent.id.0,
            target,
            xcc: narrow("num_xcc", agent.xcc_count)?,
            se_per_xcc: narrow("array_count", agent.shader_engines_per_xcc())?,
            sa_per_se: narrow("simd_arrays_per_engine", agent.arrays_per_engine)?,
            cu_per_sa: narrow("cu_per_simd_array", agent.cu_slots_per_array)?,
            compute_units: agent.compute_units,
            simd_per_cu: narrow("simd_per_cu", agent.simds_per_cu)?,
            waves_per_simd: narrow("max_waves_per_simd", agent.waves_per_simd)?,
            wave_size: narrow("wave_front_size", agent.wave_size)?,
            lds_bytes: agent.lds_bytes,
            engine_mhz: agent.max_engine_clock_mhz,
            harvest: Vec::new(),
            bases: IpBases::fixed(target.generation()),
        })
    }
}

/// Lines `name value` of a properties file.
fn properties(text: &str) -> HashMap<&str, u64> {
    text.lines().filter_map(|line| line.split_once(' ')).filter_map(number).collect()
}

fn number<'a>((name, value): (&'a str, &'a str)) -> Option<(&'a str, u64)> {
    Some((name, value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> Vec<Node> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/topology").join(name);
        read(&folder).unwrap()
    }

    // Revisions as `amdgpu.ids` lists them beside these products' device ids.
    #[test]
    fn nodes_carry_what_render_nodes_tell() {
        let node = &fixture("gfx1100")[0];
        assert_eq!((node.render_minor, node.family, node.pci_revision), (128, 145, 0xC8));
        let nodes = fixture("gfx942-x2");
        assert_eq!(nodes.len(), 2);
        assert_ne!(nodes[0].render_minor, nodes[1].render_minor);
        assert_eq!((nodes[0].sdma_engines, nodes[0].sdma_queues_per_engine, nodes[0].gws), (16, 8, 64));
    }

    #[test]
    fn model_accepts_every_fixture() {
        for name in ["gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1201"] {
            let config = fixture(name)[0].device_config().unwrap();
            config.validate().unwrap();
            assert_eq!(config.compute_units, fixture(name)[0].agent.compute_units);
        }
    }
}
