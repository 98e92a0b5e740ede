//! The shape of a device: what a topology folder says about an agent, plus what hardware adds to it.

use wavescope_core::Agent;
use wavescope_pm4::{Generation, IpBases, Target};

use crate::Error;

/// A compute unit that is switched off, so that the indices of the others are not contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
pub struct Harvest {
    /// XCC.
    pub xcc: u8,
    /// Shader engine within the XCC.
    pub se: u8,
    /// Shader array within the engine.
    pub sa: u8,
    /// Compute unit (gfx9) or WGP (gfx10 and later) within the array.
    pub cu: u8,
}

/// Geometry and limits of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Number of the device among those of the process, as it appears in the truth log.
    pub device: u32,
    /// Chip: register and packet generation, block tables.
    pub target: Target,
    /// XCCs.
    pub xcc: u8,
    /// Shader engines of one XCC.
    pub se_per_xcc: u8,
    /// Shader arrays of one shader engine.
    pub sa_per_se: u8,
    /// Compute-unit places of one shader array, active or not.
    pub cu_per_sa: u8,
    /// Active compute units of the whole device.
    pub compute_units: u32,
    /// SIMDs of one compute unit.
    pub simd_per_cu: u8,
    /// Wave slots of one SIMD.
    pub waves_per_simd: u8,
    /// Lanes of a wave unless the kernel asks for 32 or 64 itself.
    pub wave_size: u8,
    /// LDS of one compute unit in bytes; on gfx10 and later a WGP has twice as much.
    pub lds_bytes: u32,
    /// Engine clock in MHz: device cycles per 100 MHz tick times 100.
    pub engine_mhz: u32,
    /// Places switched off beyond those that make the count of active units right.
    pub harvest: Vec<Harvest>,
    /// Register segment bases.
    pub bases: IpBases,
}

impl DeviceConfig {
    /// MI300X as one partition: 8 XCCs, 32 shader engines, 304 compute units.
    pub fn mi300x() -> Self {
        Self {
            device: 0,
            target: Target::Gfx942,
            xcc: 8,
            se_per_xcc: 4,
            sa_per_se: 1,
            cu_per_sa: 10,
            compute_units: 304,
            simd_per_cu: 4,
            waves_per_simd: 8,
            wave_size: 64,
            lds_bytes: 64 << 10,
            engine_mhz: 2100,
            harvest: Vec::new(),
            bases: IpBases::fixed(Generation::Gfx9),
        }
    }

    /// The device that a topology describes.
    ///
    /// # Errors
    /// [`Error::UnknownTarget`] if no table of registers exists for it, [`Error::Geometry`] if its numbers are out
    /// of range.
    pub fn from_agent(agent: &Agent) -> Result<Self, Error> {
        let name = agent.target.to_string();
        // gfx1250 has another trace and other registers than the gfx12 that the tables describe.
        let target =
            Target::from_gfxip(&name).filter(|_| name != "gfx1250").ok_or(Error::UnknownTarget(name))?;
        let small = |value: u32| u8::try_from(value).map_err(|_| Error::Geometry("a count beyond 255"));
        let config = Self {
            device: agent.id.0,
            target,
            xcc: small(agent.xcc_count)?,
            se_per_xcc: small(agent.shader_engines_per_xcc())?,
            sa_per_se: small(agent.arrays_per_engine)?,
            cu_per_sa: small(agent.cu_slots_per_array)?,
            compute_units: agent.compute_units,
            simd_per_cu: small(agent.simds_per_cu)?,
            waves_per_simd: small(agent.waves_per_simd)?,
            wave_size: small(agent.wave_size)?,
            lds_bytes: agent.lds_bytes,
            engine_mhz: agent.max_engine_clock_mhz,
            harvest: Vec::new(),
            bases: IpBases::fixed(target.generation()),
        };
        config.validate()?;
        Ok(config)
    }

    /// What its waves execute.
    pub(crate) const fn instruction_set(&self) -> wavescope_isa::Target {
        use wavescope_isa::Target as Isa;
        match self.target {
            Target::Gfx906 => Isa::Gfx906,
            Target::Gfx908 => Isa::Gfx908,
            Target::Gfx90a => Isa::Gfx90a,
            Target::Gfx942 => Isa::Gfx942,
            Target::Gfx950 => Isa::Gfx950,
            Target::Gfx1030 => Isa::Gfx1030,
            Target::Gfx1100 => Isa::Gfx1100,
            Target::Gfx1200 => Isa::Gfx1200,
            Target::Gfx1201 => Isa::Gfx1201,
        }
    }

    /// Device cycles in one tick of the 100 MHz clock.
    pub const fn cycles_per_tick(&self) -> u64 {
        (self.engine_mhz / 100) as u64
    }

    /// Shader engines of all XCCs.
    pub const fn shader_engines(&self) -> u32 {
        self.xcc as u32 * self.se_per_xcc as u32
    }

    /// Checks that hardware of this shape can exist.
    ///
    /// # Errors
    /// [`Error::Geometry`] with the rule that is broken.
    pub fn validate(&self) -> Result<(), Error> {
        let places = u32::from(self.cu_per_sa) * u32::from(self.sa_per_se) * self.shader_engines();
        let rules = [
            (self.xcc == 0 || self.xcc > 8, "the number of XCCs is not between 1 and 8"),
            (
                self.se_per_xcc == 0 || self.se_per_xcc > 32,
                "the number of shader engines of an XCC is not between 1 and 32",
            ),
            (
                self.sa_per_se == 0 || self.sa_per_se > 2,
                "the number of shader arrays of an engine is not 1 or 2",
            ),
            (
                self.cu_per_sa == 0 || self.cu_per_sa > 32,
                "the number of compute units of an array is not between 1 and 32",
            ),
            (self.compute_units == 0 || self.compute_units > places, "more compute units than places"),
            (!matches!(self.simd_per_cu, 2 | 4), "the number of SIMDs of a compute unit is not 2 or 4"),
            (
                self.waves_per_simd == 0 || self.waves_per_simd > 32,
                "the number of waves of a SIMD is not between 1 and 32",
            ),
            (!matches!(self.wave_size, 32 | 64), "a wave size that is not 32 or 64"),
            (self.engine_mhz < 100, "an engine clock below 100 MHz"),
        ];
        match rules.iter().find(|(broken, _)| *broken) {
            Some(&(_, rule)) => Err(Error::Geometry(rule)),
            None => Ok(()),
        }
    }
}
