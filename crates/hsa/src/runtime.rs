//! The runtime behind a saved table.

use hsa_sys::{
    HSA_SYSTEM_INFO_TIMESTAMP, HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, HsaApiTable, hsa_agent_t,
    hsa_amd_profiling_dispatch_time_t, hsa_signal_t, hsa_system_info_t,
};
use wavescope_core::sync::Arc;
use wavescope_core::{AgentId, DispatchTimes, Topology};

use crate::agent::{Agents, GpuAgent};
use crate::error::{Error, check, entry};
use crate::table::SavedTable;

/// Handle of the runtime; clones are cheap. Every call goes through the saved entries, never through hooks.
#[derive(Clone, Debug)]
pub struct Hsa {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    table: SavedTable,
    agents: Agents,
    /// Ticks of the system clock per second.
    frequency: u64,
}

impl Hsa {
    /// Saves the tables that a runtime hands to its tools and asks it for its agents.
    ///
    /// With `topology` an agent's id is its index there, also if the runtime hides others; agents that are not in it
    /// are left out. Without, the GPUs that the runtime shows are counted in node order.
    ///
    /// # Safety
    /// `table` is null or what a runtime hands over ([`SavedTable::copy`]), and its functions may be called until
    /// the last clone of the handle and of everything made from it is gone.
    ///
    /// # Errors
    /// [`Error::NullTable`], [`Error::UnknownVersion`], [`Error::MissingEntry`] or [`Error::Call`].
    pub unsafe fn from_table(table: *const HsaApiTable, topology: Option<&Topology>) -> Result<Self, Error> {
        // SAFETY: by this function's contract.
        let table = unsafe { SavedTable::copy(table) }?;
        let agents = Agents::read(&table, topology)?;
        let frequency = system_info(&table, HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY)?;
        Ok(Self { inner: Arc::new(Inner { table, agents, frequency }) })
    }

    /// The saved entries.
    pub fn table(&self) -> &SavedTable {
        &self.inner.table
    }

    /// The GPUs, in node order.
    pub fn gpus(&self) -> &[GpuAgent] {
        &self.inner.agents.gpus
    }

    /// A GPU by its id.
    ///
    /// # Errors
    /// [`Error::NoAgent`].
    pub fn gpu(&self, id: AgentId) -> Result<&GpuAgent, Error> {
        self.gpus().iter().find(|gpu| gpu.id == id).ok_or(Error::NoAgent(id))
    }

    /// A GPU by the runtime's handle; `None` for CPUs and agents that are not in the topology.
    pub fn gpu_by_handle(&self, handle: hsa_agent_t) -> Option<&GpuAgent> {
        self.gpus().iter().find(|gpu| gpu.handle == handle)
    }

    pub(crate) fn cpus(&self) -> &[hsa_agent_t] {
        &self.inner.agents.cpus
    }

    /// Now, in nanoseconds of the system clock, in which dispatch times are given as well. 0 if the runtime does
    /// not say.
    pub fn now_ns(&self) -> u64 {
        system_info(&self.inner.table, HSA_SYSTEM_INFO_TIMESTAMP).map_or(0, |ticks| self.ticks_to_ns(ticks))
    }

    /// When the kernel ran that completed `signal` on `agent`.
    ///
    /// # Errors
    /// [`Error::Call`] if the runtime does not know, [`Error::NoAgent`], [`Error::MissingEntry`].
    pub fn dispatch_times(&self, agent: AgentId, signal: hsa_signal_t) -> Result<DispatchTimes, Error> {
        let call = "hsa_amd_profiling_get_dispatch_time";
        let get = entry(call, self.inner.table.amd.hsa_amd_profiling_get_dispatch_time_fn)?;
        let agent = self.gpu(agent)?.handle;
        let mut time = hsa_amd_profiling_dispatch_time_t::zeroed();
        // SAFETY: the agent is the runtime's; the runtime refuses signals it does not know; `time` outlives the call.
        let status = unsafe { get(agent, signal, &raw mut time) };
        check(call, status)?;
        Ok(DispatchTimes { start_ns: self.ticks_to_ns(time.start), end_ns: self.ticks_to_ns(time.end) })
    }

    /// Copies `into.len()` bytes from `address` on, through the runtime, so that device memory can be read.
    ///
    /// # Safety
    /// The range lies in a living allocation of the runtime.
    ///
    /// # Errors
    /// [`Error::Call`], [`Error::MissingEntry`].
    pub unsafe fn read_memory(&self, address: u64, into: &mut [u8]) -> Result<(), Error> {
        let call = "hsa_memory_copy";
        let copy = entry(call, self.inner.table.core.hsa_memory_copy_fn)?;
        let source = std::ptr::with_exposed_provenance(address as usize);
        // SAFETY: the source by this function's contract; the slice is ours alone.
        let status = unsafe { copy(into.as_mut_ptr().cast(), source, into.len()) };
        check(call, status)
    }

    /// System-clock ticks in nanoseconds.
    pub fn ticks_to_ns(&self, ticks: u64) -> u64 {
        const SECOND: u128 = 1_000_000_000;
        match self.inner.frequency {
            1_000_000_000 | 0 => ticks,
            frequency => (u128::from(ticks) * SECOND / u128::from(frequency)) as u64,
        }
    }

    /// Nanoseconds in system-clock ticks.
    pub fn ns_to_ticks(&self, ns: u64) -> u64 {
        match self.inner.frequency {
            1_000_000_000 | 0 => ns,
            frequency => (u128::from(ns) * u128::from(frequency) / 1_000_000_000) as u64,
        }
    }
}

/// A 64-bit system attribute.
fn system_info(table: &SavedTable, attribute: hsa_system_info_t) -> Result<u64, Error> {
    let call = "hsa_system_get_info";
    let get = entry(call, table.core.hsa_system_get_info_fn)?;
    let mut value = 0u64;
    // SAFETY: both attributes asked for in this file are 64-bit numbers by the header.
    let status = unsafe { get(attribute, (&raw mut value).cast()) };
    check(call, status)?;
    Ok(value)
}
