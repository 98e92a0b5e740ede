//! The agents: one CPU and the GPUs of the topology, their handles and what they say about themselves.

use std::sync::Arc;

use hsa_sys::*;
use wavescope_core::{Agent, GfxTarget, Topology};

use super::Error;
use super::address_map::AddressMap;
use super::clock::{Clock, SYSTEM_FREQUENCY};
use super::error::{Failure, Outcome};
use super::host::GpuHost;
use super::out::bytes_of_text;
use crate::{Device, DeviceConfig, DeviceOptions, TICKS_PER_SECOND};

/// GPUs that one process can have: one bit each in an access mask.
pub(super) const GPU_LIMIT: usize = 64;

/// Sizes of a queue, in packets (amd_gpu_agent.cpp: minAqlSize_, maxAqlSize_).
pub(super) const QUEUE_PACKETS: std::ops::RangeInclusive<u32> = 0x40..=0x20000;

/// Handles are numbers of our own: nobody can mistake them for pointers.
const AGENT_HANDLES: u64 = 0x4167_0000;
const ISA_HANDLES: u64 = 0x4973_0000;

/// Length of names in HSA, terminator included.
const NAME_BYTES: usize = 64;

/// Which agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentIndex {
    /// The only CPU agent.
    Cpu,
    /// A GPU, by its place in the topology.
    Gpu(usize),
}

/// A GPU: its place in the topology and the device behind it.
pub(super) struct Gpu {
    pub(super) agent: Agent,
    pub(super) device: Device,
    pub(super) host: Arc<GpuHost>,
}

/// All agents of the process.
pub(super) struct Agents {
    gpus: Vec<Gpu>,
}

impl AgentIndex {
    pub(super) fn handle(self) -> hsa_agent_t {
        let number = match self {
            Self::Cpu => 0,
            Self::Gpu(index) => 1 + index as u64,
        };
        hsa_agent_t { handle: AGENT_HANDLES + number }
    }
}

impl Agents {
    /// Makes a device for each GPU.
    pub(super) fn new(
        topology: &Topology,
        clock: &Arc<Clock>,
        map: &Arc<AddressMap>,
        options: &DeviceOptions,
    ) -> Result<Self, Error> {
        let gpus = topology.agents().len();
        if gpus > GPU_LIMIT {
            return Err(Error::TooManyGpus { gpus, limit: GPU_LIMIT });
        }
        let gpus = topology.agents().iter().enumerate().map(|(index, agent)| {
            let host = Arc::new(GpuHost::new(index, Arc::clone(clock), Arc::clone(map)));
            let device =
                Device::new(DeviceConfig::from_agent(agent)?, Arc::clone(&host) as _, options.clone())?;
            Ok(Gpu { agent: agent.clone(), device, host })
        });
        Ok(Self { gpus: gpus.collect::<Result<_, Error>>()? })
    }

    pub(super) fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// Every agent, the CPU first, as ROCr enumerates them.
    pub(super) fn all(&self) -> impl Iterator<Item = AgentIndex> + use<> {
        std::iter::once(AgentIndex::Cpu).chain((0..self.gpus.len()).map(AgentIndex::Gpu))
    }

    /// The agent of a handle.
    pub(super) fn find(&self, handle: hsa_agent_t) -> Outcome<AgentIndex> {
        let invalid = Failure(HSA_STATUS_ERROR_INVALID_AGENT);
        match handle.handle.checked_sub(AGENT_HANDLES).ok_or(invalid)? {
            0 => Ok(AgentIndex::Cpu),
            number if number <= self.gpus.len() as u64 => Ok(AgentIndex::Gpu(number as usize - 1)),
            _ => Err(invalid),
        }
    }

    /// The GPU of a handle, with its index.
    pub(super) fn find_gpu(&self, handle: hsa_agent_t) -> Outcome<(usize, &Gpu)> {
        match self.find(handle)? {
            AgentIndex::Gpu(index) => Ok((index, &self.gpus[index])),
            AgentIndex::Cpu => Err(Failure(HSA_STATUS_ERROR_INVALID_AGENT)),
        }
    }

    /// The GPU of an instruction-set handle: each has one instruction set.
    pub(super) fn find_isa(&self, handle: hsa_isa_t) -> Outcome<&Gpu> {
        let index = handle.handle.checked_sub(ISA_HANDLES).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.gpus.get(index)).ok_or(Failure(HSA_STATUS_ERROR_INVALID_ISA))
    }

    /// The instruction set with this full name.
    pub(super) fn isa_named(&self, name: &str) -> Option<hsa_isa_t> {
        let index = self.gpus.iter().position(|gpu| gpu.isa_name() == name)?;
        Some(isa_handle(index))
    }

    /// An attribute as C reads it.
    pub(super) fn info(&self, agent: AgentIndex, attribute: u32, clock: &Clock) -> Outcome<Vec<u8>> {
        match agent {
            AgentIndex::Cpu => cpu_info(attribute, clock),
            AgentIndex::Gpu(index) => self.gpus[index].info(index, attribute, clock),
        }
        .ok_or(Failure::ARGUMENT)
    }
}

/// Handle of the instruction set of a GPU.
pub(super) fn isa_handle(gpu: usize) -> hsa_isa_t {
    hsa_isa_t { handle: ISA_HANDLES + gpu as u64 }
}

impl Gpu {
    /// Full name of the instruction set (ISA), with the features that its code objects may ask for.
    pub(super) fn isa_name(&self) -> String {
        let features = match self.agent.target {
            GfxTarget::GFX90A | GfxTarget::GFX942 | GfxTarget::GFX950 => ":sramecc+:xnack-",
            _ => "",
        };
        format!("amdgcn-amd-amdhsa--{}{features}", self.agent.target)
    }

    fn info(&self, index: usize, attribute: u32, clock: &Clock) -> Option<Vec<u8>> {
        if attribute >= HSA_AMD_AGENT_INFO_CHIP_ID.0 {
            self.amd_info(hsa_amd_agent_info_t(attribute), clock)
        } else {
            self.core_info(index, hsa_agent_info_t(attribute))
        }
    }

    fn core_info(&self, index: usize, attribute: hsa_agent_info_t) -> Option<Vec<u8>> {
        Some(match attribute {
            HSA_AGENT_INFO_NAME => bytes_of_text(&self.agent.target.to_string(), NAME_BYTES),
            HSA_AGENT_INFO_VENDOR_NAME => bytes_of_text("AMD", NAME_BYTES),
            HSA_AGENT_INFO_FEATURE => u32(HSA_AGENT_FEATURE_KERNEL_DISPATCH.0),
            HSA_AGENT_INFO_PROFILE => u32(HSA_PROFILE_BASE.0),
            HSA_AGENT_INFO_FAST_F16_OPERATION => vec![1],
            HSA_AGENT_INFO_WAVEFRONT_SIZE => u32(self.agent.wave_size),
            HSA_AGENT_INFO_WORKGROUP_MAX_DIM => [1024_u16; 3].iter().flat_map(|n| n.to_ne_bytes()).collect(),
            HSA_AGENT_INFO_WORKGROUP_MAX_SIZE => u32(1024),
            HSA_AGENT_INFO_GRID_MAX_DIM => {
                [i32::MAX as u32, 0xFFFF, 0xFFFF].iter().flat_map(|n| n.to_ne_bytes()).collect()
            }
            HSA_AGENT_INFO_GRID_MAX_SIZE => u32(u32::MAX),
            HSA_AGENT_INFO_FBARRIER_MAX_SIZE => u32(32),
            HSA_AGENT_INFO_QUEUES_MAX => u32(crate::Queue::LIMIT as u32),
            HSA_AGENT_INFO_QUEUE_MIN_SIZE => u32(*QUEUE_PACKETS.start()),
            HSA_AGENT_INFO_QUEUE_MAX_SIZE => u32(*QUEUE_PACKETS.end()),
            HSA_AGENT_INFO_QUEUE_TYPE => u32(HSA_QUEUE_TYPE_MULTI.0),
            HSA_AGENT_INFO_NODE => u32(self.agent.node),
            HSA_AGENT_INFO_DEVICE => u32(HSA_DEVICE_TYPE_GPU.0),
            HSA_AGENT_INFO_ISA => u64(isa_handle(index).handle),
            _ => return common_info(attribute),
        })
    }

    fn amd_info(&self, attribute: hsa_amd_agent_info_t, clock: &Clock) -> Option<Vec<u8>> {
        let agent = &self.agent;
        Some(match attribute {
            HSA_AMD_AGENT_INFO_CHIP_ID => u32(agent.device_id),
            HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT | HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT => {
                u32(agent.compute_units)
            }
            HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY => u32(agent.max_engine_clock_mhz),
            HSA_AMD_AGENT_INFO_DRIVER_NODE_ID => u32(agent.node),
            HSA_AMD_AGENT_INFO_BDFID => u32(agent.pci.location_id),
            HSA_AMD_AGENT_INFO_DOMAIN => u32(agent.pci.domain),
            HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY => u32(agent.max_memory_clock_mhz),
            HSA_AMD_AGENT_INFO_PRODUCT_NAME => bytes_of_text(&agent.marketing_name, NAME_BYTES),
            HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU => u32(agent.simds_per_cu * agent.waves_per_simd),
            HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU => u32(agent.simds_per_cu),
            HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES => u32(agent.shader_engines),
            HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE => u32(agent.arrays_per_engine),
            // Null registers: nothing to flush between one process and itself.
            HSA_AMD_AGENT_INFO_HDP_FLUSH => vec![0; size_of::<hsa_amd_hdp_flush_t>()],
            HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES => vec![0],
            // What ROCr says of a device without a serial number.
            HSA_AMD_AGENT_INFO_UUID => b"GPU-XX\0".to_vec(),
            HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS => vec![1],
            HSA_AMD_AGENT_INFO_MEMORY_AVAIL => u64(agent.vram_bytes),
            HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY => u64(TICKS_PER_SECOND),
            HSA_AMD_AGENT_INFO_NUM_XCC => u32(agent.xcc_count),
            HSA_AMD_AGENT_INFO_DRIVER_UID => u32(agent.gpu_id),
            HSA_AMD_AGENT_INFO_NEAREST_CPU => u64(AgentIndex::Cpu.handle().handle),
            HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES | HSA_AMD_AGENT_INFO_AQL_EXTENSIONS => vec![0; 8],
            HSA_AMD_AGENT_INFO_CLOCK_COUNTERS => clock_counters(clock.ticks(), clock),
            _ => return None,
        })
    }
}

fn cpu_info(attribute: u32, clock: &Clock) -> Option<Vec<u8>> {
    if attribute >= HSA_AMD_AGENT_INFO_CHIP_ID.0 {
        return Some(match hsa_amd_agent_info_t(attribute) {
            HSA_AMD_AGENT_INFO_PRODUCT_NAME => bytes_of_text("CPU", NAME_BYTES),
            HSA_AMD_AGENT_INFO_CHIP_ID
            | HSA_AMD_AGENT_INFO_DRIVER_NODE_ID
            | HSA_AMD_AGENT_INFO_BDFID
            | HSA_AMD_AGENT_INFO_DOMAIN => u32(0),
            HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT => u32(cpu_count()),
            HSA_AMD_AGENT_INFO_UUID => b"CPU-XX\0".to_vec(),
            HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY => u64(SYSTEM_FREQUENCY),
            HSA_AMD_AGENT_INFO_CLOCK_COUNTERS => clock_counters(0, clock),
            _ => return None,
        });
    }
    let attribute = hsa_agent_info_t(attribute);
    Some(match attribute {
        HSA_AGENT_INFO_NAME | HSA_AGENT_INFO_VENDOR_NAME => bytes_of_text("CPU", NAME_BYTES),
        // ROCr gives its CPU agents no feature: they take no packets.
        HSA_AGENT_INFO_FEATURE
        | HSA_AGENT_INFO_QUEUES_MAX
        | HSA_AGENT_INFO_QUEUE_MIN_SIZE
        | HSA_AGENT_INFO_QUEUE_MAX_SIZE
        | HSA_AGENT_INFO_NODE
        | HSA_AGENT_INFO_WAVEFRONT_SIZE
        | HSA_AGENT_INFO_WORKGROUP_MAX_SIZE
        | HSA_AGENT_INFO_GRID_MAX_SIZE
        | HSA_AGENT_INFO_FBARRIER_MAX_SIZE => u32(0),
        HSA_AGENT_INFO_PROFILE => u32(HSA_PROFILE_FULL.0),
        HSA_AGENT_INFO_FAST_F16_OPERATION => vec![0],
        HSA_AGENT_INFO_WORKGROUP_MAX_DIM => vec![0; 6],
        HSA_AGENT_INFO_GRID_MAX_DIM => vec![0; 12],
        HSA_AGENT_INFO_QUEUE_TYPE => u32(HSA_QUEUE_TYPE_MULTI.0),
        HSA_AGENT_INFO_DEVICE => u32(HSA_DEVICE_TYPE_CPU.0),
        HSA_AGENT_INFO_ISA => u64(0),
        _ => return common_info(attribute),
    })
}

/// What all agents of an AMD machine answer alike.
fn common_info(attribute: hsa_agent_info_t) -> Option<Vec<u8>> {
    Some(match attribute {
        HSA_AGENT_INFO_MACHINE_MODEL => u32(HSA_MACHINE_MODEL_LARGE.0),
        HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE
        | HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES => {
            u32(HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR.0)
        }
        HSA_AGENT_INFO_EXTENSIONS => vec![0; 128],
        HSA_AGENT_INFO_VERSION_MAJOR | HSA_AGENT_INFO_VERSION_MINOR => 1_u16.to_ne_bytes().to_vec(),
        _ => return None,
    })
}

fn clock_counters(gpu_ticks: u64, clock: &Clock) -> Vec<u8> {
    let system = clock.system_ns();
    [gpu_ticks, system, system, SYSTEM_FREQUENCY].iter().flat_map(|n| n.to_ne_bytes()).collect()
}

fn cpu_count() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

fn u32(value: u32) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}

fn u64(value: u64) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}
