//! The library's functions, safe to call: arguments are checked by whoever made the built-in program first.

use std::collections::HashMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hsa_sys::loader::{AqlProfile, HsaRuntime, LoadError};
use hsa_sys::{
    AQLPROFILE_AGENT_VERSION_V1, HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, aqlprofile_agent_handle_t,
    aqlprofile_agent_info_v1_t, aqlprofile_att_codeobj_data_t, aqlprofile_att_control_aql_packets_t,
    aqlprofile_att_parameter_t, aqlprofile_att_profile_t, aqlprofile_handle_t, aqlprofile_pmc_aql_packets_t,
    aqlprofile_pmc_event_flags_t, aqlprofile_pmc_event_t, aqlprofile_pmc_profile_t, aqlprofile_version_t,
    hsa_agent_t, hsa_ext_amd_aql_pm4_packet_t, hsa_signal_t, hsa_status_t,
    hsa_ven_amd_aqlprofile_block_name_t, hsa_ven_amd_aqlprofile_parameter_name_t, pfn,
};
use wavescope_core::AqlPacket;

use super::session::{Session, TraceSink, ValueSink};
use crate::agent::AgentShape;
use crate::error::Error;
use crate::event::Event;
use crate::status::Status;
use crate::trace::{CodeObjectMarker, TraceParameter};

/// The library's name.
pub(super) const SONAME: &str = AqlProfile::SONAME;
/// The oldest version of the API that is used.
const NEEDED: &str = "1.0.0";

/// The library, loaded for good.
pub(super) struct Library {
    functions: AqlProfile,
    register_agent: pfn::aqlprofile_register_agent_info,
    version: [u32; 3],
    path: PathBuf,
    /// Handles of registered agents; held over each creation too, since builders are shared inside the library.
    agents: Mutex<HashMap<AgentShape, aqlprofile_agent_handle_t>>,
}

/// Fails unless the HSA runtime is loaded and initialised.
pub(super) fn check_runtime() -> Result<(), Error> {
    let refused = |reason| Error::RuntimeNotInitialised { library: SONAME, reason };
    let runtime = HsaRuntime::already_loaded().map_err(|error| refused(error.to_string()))?;
    let mut frequency = 0u64;
    let value = (&raw mut frequency).cast();
    // SAFETY: the attribute is a uint64_t, and `value` points to one. The function checks itself whether the
    // runtime is initialised.
    let status = unsafe { (runtime.hsa_system_get_info)(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, value) };
    if status.0 == 0 { Ok(()) } else { Err(refused(format!("hsa_system_get_info: {status:?}"))) }
}

impl Library {
    /// Loads the library from `path`, or from where the system has it.
    pub(super) fn load(path: Option<&Path>) -> Result<Self, Error> {
        let loaded = path.map_or_else(AqlProfile::load, AqlProfile::load_from);
        let functions = loaded.map_err(load_error)?;
        let path = path.map_or_else(|| loaded_path().unwrap_or_else(|| SONAME.into()), Path::to_owned);
        let old = |found: String| Error::LibraryTooOld {
            library: SONAME,
            path: path.clone(),
            found,
            needed: NEEDED,
        };
        let missing = |symbol| old(format!("below {NEEDED}: no symbol `{symbol}`"));
        let get_version =
            functions.aqlprofile_get_version.ok_or_else(|| missing("aqlprofile_get_version"))?;
        let register_agent = functions
            .aqlprofile_register_agent_info
            .ok_or_else(|| missing("aqlprofile_register_agent_info"))?;
        let version = version(get_version)?;
        if version[0] != 1 {
            return Err(old(version.map(|part| part.to_string()).join(".")));
        }
        Ok(Self { functions, register_agent, version, path, agents: Mutex::default() })
    }

    /// Major, minor, patch.
    pub(super) const fn version(&self) -> [u32; 3] {
        self.version
    }

    /// Where it was loaded from.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a counter set's packets: start, read, stop.
    pub(super) fn create_counters(
        &self,
        agent: &AgentShape,
        events: &[Event],
        session: &Arc<Session>,
    ) -> Result<(u64, [AqlPacket; 3]), Error> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let events: Vec<_> = events.iter().map(raw_event).collect();
        let agent = self.handle(&mut agents, agent)?;
        let profile =
            aqlprofile_pmc_profile_t { agent, events: events.as_ptr(), event_count: events.len() as u32 };
        let empty = hsa_ext_amd_aql_pm4_packet_t::zeroed();
        let mut packets =
            aqlprofile_pmc_aql_packets_t { start_packet: empty, stop_packet: empty, read_packet: empty };
        let mut handle = aqlprofile_handle_t { handle: 0 };
        let (allocate, free, copy) = Session::CALLBACKS;
        let create = self.functions.aqlprofile_pmc_create_packets;
        let (to_handle, to_packets) = (&raw mut handle, &raw mut packets);
        // SAFETY: the pointers are to living locals of the right types; `profile.events` covers `event_count`
        // events of a set that the built-in program accepted, so the library does not crash on it. The callbacks
        // take a `Session`, which the caller keeps until the packets are deleted, or for ever when this fails.
        let status =
            unsafe { create(to_handle, to_packets, profile, allocate, free, copy, session.as_user_data()) };
        succeed("aqlprofile_pmc_create_packets", status)?;
        let packets = [&packets.start_packet, &packets.read_packet, &packets.stop_packet].map(packet);
        Ok((handle.handle, packets))
    }

    /// Hands out the values of a counter set.
    pub(super) fn iterate_counters(&self, handle: u64, sink: &mut ValueSink<'_>) -> Status {
        let iterate = self.functions.aqlprofile_pmc_iterate_data;
        let user_data = sink.as_user_data();
        let handle = aqlprofile_handle_t { handle };
        // SAFETY: the handle is of a living counter set; the callback takes the sink, which outlives the call.
        let status = unsafe { iterate(handle, ValueSink::CALLBACK, user_data) };
        Status(status.0)
    }

    /// Deletes a counter set: its memory goes back through the session.
    pub(super) fn delete_counters(&self, handle: u64) {
        let delete = self.functions.aqlprofile_pmc_delete_packets;
        // SAFETY: any number is allowed; the session of this one is still there.
        unsafe { delete(aqlprofile_handle_t { handle }) };
    }

    /// Creates a trace's packets: start, stop.
    pub(super) fn create_trace(
        &self,
        hsa_agent: u64,
        parameters: &[TraceParameter],
        session: &Arc<Session>,
    ) -> Result<(u64, [AqlPacket; 2]), Error> {
        let _creating = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let parameters: Vec<_> = parameters.iter().map(raw_parameter).collect();
        let profile = aqlprofile_att_profile_t {
            agent: hsa_agent_t { handle: hsa_agent },
            parameters: parameters.as_ptr(),
            parameter_count: parameters.len() as u32,
        };
        let empty = hsa_ext_amd_aql_pm4_packet_t::zeroed();
        let mut packets = aqlprofile_att_control_aql_packets_t { start_packet: empty, stop_packet: empty };
        let mut handle = aqlprofile_handle_t { handle: 0 };
        let (allocate, free, copy) = Session::CALLBACKS;
        let create = self.functions.aqlprofile_att_create_packets;
        let (to_handle, to_packets) = (&raw mut handle, &raw mut packets);
        // SAFETY: as for counters; the HSA runtime is initialised (`check_runtime`), which traces need.
        let status =
            unsafe { create(to_handle, to_packets, profile, allocate, free, copy, session.as_user_data()) };
        succeed("aqlprofile_att_create_packets", status)?;
        Ok((handle.handle, [&packets.start_packet, &packets.stop_packet].map(packet)))
    }

    /// Copies out and hands out the data of a trace.
    pub(super) fn iterate_trace(&self, handle: u64, sink: &mut TraceSink<'_>) -> Status {
        let iterate = self.functions.aqlprofile_att_iterate_data;
        let user_data = sink.as_user_data();
        let handle = aqlprofile_handle_t { handle };
        // SAFETY: the handle is of a living trace; the callback takes the sink, which outlives the call.
        let status = unsafe { iterate(handle, TraceSink::CALLBACK, user_data) };
        Status(status.0)
    }

    /// Deletes a trace's packets, or a marker: their memory goes back through the session.
    pub(super) fn delete_trace(&self, handle: u64) {
        let delete = self.functions.aqlprofile_att_delete_packets;
        // SAFETY: any number is allowed; the session of this one is still there.
        unsafe { delete(aqlprofile_handle_t { handle }) };
    }

    /// Creates a code-object marker's packet.
    pub(super) fn create_marker(
        &self,
        hsa_agent: u64,
        marker: &CodeObjectMarker,
        session: &Arc<Session>,
    ) -> Result<(u64, AqlPacket), Error> {
        let _creating = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let data = aqlprofile_att_codeobj_data_t {
            id: marker.id,
            addr: marker.address,
            size: marker.bytes,
            agent: hsa_agent_t { handle: hsa_agent },
            bits: u32::from(marker.unload) | u32::from(marker.from_start) << 1,
        };
        let mut raw = hsa_ext_amd_aql_pm4_packet_t::zeroed();
        let mut handle = aqlprofile_handle_t { handle: 0 };
        let (allocate, free, _) = Session::CALLBACKS;
        let create = self.functions.aqlprofile_att_codeobj_marker;
        let (to_packet, to_handle) = (&raw mut raw, &raw mut handle);
        // SAFETY: as for traces; the memory is written by the library itself, so the session's memory is mapped
        // in this process (`Native`).
        let status = unsafe { create(to_packet, to_handle, data, allocate, free, session.as_user_data()) };
        succeed("aqlprofile_att_codeobj_marker", status)?;
        Ok((handle.handle, packet(&raw)))
    }

    fn handle(
        &self,
        agents: &mut HashMap<AgentShape, aqlprofile_agent_handle_t>,
        agent: &AgentShape,
    ) -> Result<aqlprofile_agent_handle_t, Error> {
        if let Some(handle) = agents.get(agent) {
            return Ok(*handle);
        }
        let unsupported = || Error::UnsupportedAgent { gfxip: agent.gfxip.clone() };
        let gfxip = CString::new(agent.gfxip.as_str()).map_err(|_| unsupported())?;
        let info = aqlprofile_agent_info_v1_t {
            agent_gfxip: gfxip.as_ptr(),
            xcc_num: agent.xcc,
            se_num: agent.se,
            cu_num: agent.cu,
            shader_arrays_per_se: agent.sa_per_se,
            domain: agent.domain,
            location_id: agent.location_id,
        };
        let mut handle = aqlprofile_agent_handle_t { handle: 0 };
        let (to_handle, from) = (&raw mut handle, (&raw const info).cast());
        // SAFETY: `from` points to the struct that version 1 means, whose string lives until the call returns;
        // the library copies it.
        let status = unsafe { (self.register_agent)(to_handle, from, AQLPROFILE_AGENT_VERSION_V1) };
        succeed("aqlprofile_register_agent_info", status)?;
        agents.insert(agent.clone(), handle);
        Ok(handle)
    }
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library").field("path", &self.path).field("version", &self.version).finish()
    }
}

fn version(get_version: pfn::aqlprofile_get_version) -> Result<[u32; 3], Error> {
    let mut version = aqlprofile_version_t { major: 0, minor: 0, patch: 0 };
    // SAFETY: the pointer is to a living local of the right type.
    let status = unsafe { get_version(&raw mut version) };
    succeed("aqlprofile_get_version", status)?;
    Ok([version.major, version.minor, version.patch])
}

fn succeed(call: &'static str, status: hsa_status_t) -> Result<(), Error> {
    if status.0 == 0 { Ok(()) } else { Err(Error::LibraryCall { call, status: Status(status.0) }) }
}

fn load_error(error: LoadError) -> Error {
    match error {
        LoadError::Library { library, attempts } => Error::LibraryMissing {
            library,
            reason: attempts.iter().map(|attempt| attempt.error.to_string()).collect::<Vec<_>>().join("; "),
            searched: attempts.into_iter().map(|attempt| attempt.path).collect(),
        },
        LoadError::Symbol { library, path, symbol, .. } => Error::LibraryTooOld {
            library,
            path,
            found: format!("below {NEEDED}: no symbol `{symbol}`"),
            needed: NEEDED,
        },
        other => Error::LibraryMissing { library: SONAME, searched: Vec::new(), reason: other.to_string() },
    }
}

/// Where the process has the library from, by the kernel's list of mappings.
fn loaded_path() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.contains("libhsa-amd-aqlprofile64"))?;
    line.find('/').map(|start| PathBuf::from(&line[start..]))
}

fn raw_event(event: &Event) -> aqlprofile_pmc_event_t {
    aqlprofile_pmc_event_t {
        block_index: event.instance,
        event_id: event.id,
        flags: aqlprofile_pmc_event_flags_t { raw: event.flags },
        block_name: hsa_ven_amd_aqlprofile_block_name_t(event.block.0),
    }
}

fn raw_parameter(parameter: &TraceParameter) -> aqlprofile_att_parameter_t {
    aqlprofile_att_parameter_t {
        parameter_name: hsa_ven_amd_aqlprofile_parameter_name_t(parameter.code),
        value: parameter.value,
    }
}

/// The packet as sixteen dwords.
fn packet(raw: &hsa_ext_amd_aql_pm4_packet_t) -> AqlPacket {
    let hsa_ext_amd_aql_pm4_packet_t { header, pm4_command, completion_signal } = raw;
    let hsa_signal_t { handle } = *completion_signal;
    let halves = std::iter::once(*header).chain(*pm4_command).collect::<Vec<_>>();
    let mut dwords = [0; 16];
    for (dword, pair) in dwords.iter_mut().zip(halves.chunks_exact(2)) {
        *dword = u32::from(pair[0]) | u32::from(pair[1]) << 16;
    }
    let mut packet = AqlPacket(dwords);
    packet.set_completion_signal(handle);
    packet
}
