//! What a GPU node of the topology says about the hardware.

use std::fmt;

use super::names::marketing_name;
use super::properties::Properties;
use crate::{AgentId, Error, GfxTarget};

/// A GPU agent and the shape of its hardware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Index among the GPUs of the topology.
    pub id: AgentId,
    /// Number of the topology node.
    pub node: u32,
    /// The driver's id of the GPU, never 0.
    pub gpu_id: u32,
    /// Instruction-set target.
    pub target: GfxTarget,
    /// PCI device id.
    pub device_id: u32,
    /// Product name where the device id tells it, else the target and the device id.
    pub marketing_name: String,
    /// Compute dies (XCC) that act as this one agent.
    pub xcc_count: u32,
    /// Shader engines of all XCCs together.
    pub shader_engines: u32,
    /// Shader arrays per shader engine.
    pub arrays_per_engine: u32,
    /// CU positions per shader array, more than are active on a harvested part.
    pub cu_slots_per_array: u32,
    /// Active compute units of all XCCs together.
    pub compute_units: u32,
    /// SIMDs per compute unit.
    pub simds_per_cu: u32,
    /// Wave slots per SIMD.
    pub waves_per_simd: u32,
    /// Lanes per wave of the native size.
    pub wave_size: u32,
    /// LDS per compute unit, bytes.
    pub lds_bytes: u32,
    /// Device memory, bytes.
    pub vram_bytes: u64,
    /// Where it sits.
    pub pci: PciLocation,
    /// Highest engine clock, MHz.
    pub max_engine_clock_mhz: u32,
    /// Highest memory clock, MHz; 0 where the driver does not say.
    pub max_memory_clock_mhz: u32,
}

/// A PCI function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PciLocation {
    /// PCI segment.
    pub domain: u32,
    /// Bus, device and function as the driver packs them: bus in bits 15:8, device 7:3, function 2:0.
    pub location_id: u32,
}

impl PciLocation {
    fn from_properties(properties: &Properties) -> Result<Self, Error> {
        let (domain, location_id) =
            (properties.required_u32("domain")?, properties.required_u32("location_id")?);
        Ok(Self { domain, location_id })
    }
}

impl fmt::Display for PciLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.location_id;
        write!(f, "{:04x}:{:02x}:{:02x}.{}", self.domain, id >> 8 & 0xFF, id >> 3 & 0x1F, id & 7)
    }
}

/// What the memory banks of a node add up to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeviceMemory {
    pub(super) bytes: u64,
    pub(super) max_clock_mhz: u32,
}

impl Agent {
    pub(super) fn from_properties(
        id: AgentId,
        node: u32,
        gpu_id: u32,
        properties: &Properties,
        memory: DeviceMemory,
    ) -> Result<Self, Error> {
        let target = target(properties)?;
        let device_id = properties.required_u32("device_id")?;
        let simds_per_cu = properties.positive("simd_per_cu")?;
        let (xcc_count, shader_engines, arrays_per_engine) = engines(properties)?;
        Ok(Self {
            id,
            node,
            gpu_id,
            target,
            device_id,
            marketing_name: marketing_name(target, device_id),
            xcc_count,
            shader_engines,
            arrays_per_engine,
            cu_slots_per_array: properties.positive("cu_per_simd_array")?,
            compute_units: quotient(properties, "simd_count", "simd_per_cu", simds_per_cu)?,
            simds_per_cu,
            waves_per_simd: properties.positive("max_waves_per_simd")?,
            wave_size: properties.positive("wave_front_size")?,
            lds_bytes: lds_bytes(properties)?,
            vram_bytes: memory.bytes,
            pci: PciLocation::from_properties(properties)?,
            max_engine_clock_mhz: properties.required_u32("max_engine_clk_fcompute")?,
            max_memory_clock_mhz: memory.max_clock_mhz,
        })
    }

    /// Shader engines of one XCC.
    pub fn shader_engines_per_xcc(&self) -> u32 {
        self.shader_engines / self.xcc_count
    }
}

fn target(properties: &Properties) -> Result<GfxTarget, Error> {
    let version = properties.required_u32("gfx_target_version")?;
    GfxTarget::from_kfd_version(version)
        .ok_or_else(|| properties.inconsistent(format!("gfx_target_version {version} names no target")))
}

/// XCCs, shader engines of all of them, shader arrays in each engine.
fn engines(properties: &Properties) -> Result<(u32, u32, u32), Error> {
    let arrays_per_engine = properties.positive("simd_arrays_per_engine")?;
    // Kernels before the multi-die parts have no `num_xcc`.
    let xcc_count = match properties.optional("num_xcc") {
        None => 1,
        Some(_) => properties.positive("num_xcc")?,
    };
    let shader_engines = quotient(properties, "array_count", "simd_arrays_per_engine", arrays_per_engine)?;
    if !shader_engines.is_multiple_of(xcc_count) {
        let what = format!("{shader_engines} shader engines do not spread over {xcc_count} XCCs");
        return Err(properties.inconsistent(what));
    }
    Ok((xcc_count, shader_engines, arrays_per_engine))
}

fn quotient(properties: &Properties, total: &'static str, per: &str, divisor: u32) -> Result<u32, Error> {
    let value = properties.positive(total)?;
    if value.is_multiple_of(divisor) {
        Ok(value / divisor)
    } else {
        Err(properties.inconsistent(format!("{total} {value} is no multiple of {per} {divisor}")))
    }
}

fn lds_bytes(properties: &Properties) -> Result<u32, Error> {
    let kib = properties.positive("lds_size_in_kb")?;
    kib.checked_mul(1024)
        .ok_or_else(|| properties.inconsistent(format!("lds_size_in_kb {kib} exceeds 4 GiB")))
}
