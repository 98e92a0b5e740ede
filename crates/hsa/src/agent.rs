//! The runtime's agents, matched with the topology.

use std::ffi::c_void;

use hsa_sys::{
    HSA_AGENT_INFO_DEVICE, HSA_AGENT_INFO_NAME, HSA_AMD_AGENT_INFO_DRIVER_NODE_ID, HSA_DEVICE_TYPE_CPU,
    HSA_DEVICE_TYPE_GPU, HSA_STATUS_SUCCESS, hsa_agent_info_t, hsa_agent_t, hsa_device_type_t, hsa_status_t,
};
use wavescope_core::{AgentId, Topology};

use crate::error::{Error, check, entry};
use crate::table::SavedTable;

/// A GPU that the runtime shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuAgent {
    /// Its index among the GPUs of the topology.
    pub id: AgentId,
    /// The runtime's handle.
    pub handle: hsa_agent_t,
    /// The driver's node number.
    pub node: u32,
    /// Name of its instruction set, e.g. `gfx942`.
    pub name: String,
}

/// All agents of the runtime that matter here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agents {
    /// In node order.
    pub(crate) gpus: Vec<GpuAgent>,
    pub(crate) cpus: Vec<hsa_agent_t>,
}

impl Agents {
    /// Asks the runtime. Without a topology the ids are counted over the GPUs that the runtime shows.
    pub(crate) fn read(table: &SavedTable, topology: Option<&Topology>) -> Result<Self, Error> {
        let mut agents = Self::default();
        for handle in handles(table)? {
            match attribute::<hsa_device_type_t>(table, handle, HSA_AGENT_INFO_DEVICE)? {
                HSA_DEVICE_TYPE_CPU => agents.cpus.push(handle),
                HSA_DEVICE_TYPE_GPU => agents.gpus.push(gpu(table, handle)?),
                _ => {}
            }
        }
        agents.gpus.sort_by_key(|gpu| gpu.node);
        match topology {
            None => {
                for (index, gpu) in agents.gpus.iter_mut().enumerate() {
                    gpu.id = AgentId(index as u32);
                }
            }
            Some(topology) => agents.gpus.retain_mut(|gpu| {
                let known = topology.agents().iter().find(|agent| agent.node == gpu.node);
                gpu.id = known.map_or(gpu.id, |agent| agent.id);
                known.is_some()
            }),
        }
        Ok(agents)
    }
}

fn gpu(table: &SavedTable, handle: hsa_agent_t) -> Result<GpuAgent, Error> {
    // The extension's attributes are asked for through the same call (`hsa_ext_amd.h`).
    let node_attribute = hsa_agent_info_t(HSA_AMD_AGENT_INFO_DRIVER_NODE_ID.0);
    let node = attribute::<u32>(table, handle, node_attribute)?;
    let name = attribute::<[u8; 64]>(table, handle, HSA_AGENT_INFO_NAME)?;
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let name = String::from_utf8_lossy(&name[..length]).into_owned();
    Ok(GpuAgent { id: AgentId(u32::MAX), handle, node, name })
}

/// Values that `hsa_agent_get_info` writes.
pub(crate) trait Attribute: Copy {
    fn zero() -> Self;
}

impl Attribute for u32 {
    fn zero() -> Self {
        0
    }
}

impl Attribute for hsa_device_type_t {
    fn zero() -> Self {
        Self::default()
    }
}

impl Attribute for [u8; 64] {
    fn zero() -> Self {
        [0; 64]
    }
}

/// One attribute. `T` must be the type that the header names for it.
fn attribute<T: Attribute>(
    table: &SavedTable,
    agent: hsa_agent_t,
    attribute: hsa_agent_info_t,
) -> Result<T, Error> {
    let call = "hsa_agent_get_info";
    let get_info = entry(call, table.core.hsa_agent_get_info_fn)?;
    let mut value = T::zero();
    // SAFETY: the agent comes from the runtime; `value` has the size that the header gives for the attribute: all
    // uses are in this file (u32 for node and device type, 64 bytes for the name).
    let status = unsafe { get_info(agent, attribute, (&raw mut value).cast()) };
    check(call, status)?;
    Ok(value)
}

fn handles(table: &SavedTable) -> Result<Vec<hsa_agent_t>, Error> {
    unsafe extern "C-unwind" fn collect(agent: hsa_agent_t, data: *mut c_void) -> hsa_status_t {
        // SAFETY: `data` is the vector that `handles` passes below, which nobody else uses during the call.
        let found = unsafe { &mut *data.cast::<Vec<hsa_agent_t>>() };
        found.push(agent);
        HSA_STATUS_SUCCESS
    }
    let call = "hsa_iterate_agents";
    let iterate = entry(call, table.core.hsa_iterate_agents_fn)?;
    let mut found = Vec::new();
    // SAFETY: the callback matches the data it gets, and the runtime calls it only before it returns.
    let status = unsafe { iterate(Some(collect), (&raw mut found).cast()) };
    check(call, status)?;
    Ok(found)
}
