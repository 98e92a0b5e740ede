//! What a packet program has to know about an agent.

use std::path::Path;

use wavescope_core::Agent;
use wavescope_pm4::{Generation, IpBases, Target};

use crate::error::Error;
use crate::ip_discovery::discover;

/// An agent as it is registered for packet programs (`aqlprofile_agent_info_v1_t`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgentShape {
    /// gfx name, e.g. `gfx942`.
    pub gfxip: String,
    /// XCCs of the partition.
    pub xcc: u32,
    /// Shader engines of all XCCs together.
    pub se: u32,
    /// Compute units of all XCCs together.
    pub cu: u32,
    /// Shader arrays in each shader engine.
    pub sa_per_se: u32,
    /// PCI domain.
    pub domain: u32,
    /// PCI location: bus 15:8, device 7:3, function 2:0.
    pub location_id: u32,
    /// Frequency of the HSA timestamp in kHz, put into traces. Upstream writes 0 when its agent object came
    /// from a registration instead of the runtime.
    pub clock_khz: u32,
    /// The device's own segment bases, where IP discovery gave them; ignored on gfx9, whose bases are fixed.
    pub bases: Option<IpBases>,
    /// The runtime's handle of the agent (`hsa_agent_t`), which the installed library wants for traces.
    pub hsa_agent: Option<u64>,
}

impl From<&Agent> for AgentShape {
    /// The agent as the topology shows it, without IP discovery and without a runtime's handle.
    fn from(agent: &Agent) -> Self {
        let gfxip = agent.target.to_string();
        let (xcc, se) = (agent.xcc_count, agent.shader_engines);
        let mut shape = Self::new(&gfxip, xcc, se, agent.compute_units, agent.arrays_per_engine);
        (shape.domain, shape.location_id) = (agent.pci.domain, agent.pci.location_id);
        shape
    }
}

impl AgentShape {
    /// An agent without PCI ids, with the fixed segment bases and a 100 MHz timestamp.
    pub fn new(gfxip: &str, xcc: u32, se: u32, cu: u32, sa_per_se: u32) -> Self {
        Self {
            gfxip: gfxip.to_owned(),
            xcc,
            se,
            cu,
            sa_per_se,
            domain: 0,
            location_id: 0,
            clock_khz: 100_000,
            bases: None,
            hsa_agent: None,
        }
    }

    /// Takes the segment bases that the device's IP discovery shows in sysfs (`root` is `/sys`), where it does.
    /// gfx9 chips keep their fixed bases, as upstream does.
    #[must_use]
    pub fn with_discovered_bases(mut self, root: &Path) -> Self {
        self.bases = discover(root, self.domain, self.location_id);
        self
    }

    /// Derives the quantities that sequences use.
    ///
    /// # Errors
    /// [`Error::UnsupportedAgent`]; [`Error::ImpossibleAgent`] when the numbers contradict each other.
    pub fn chip(&self) -> Result<Chip, Error> {
        let Some(target) = Target::from_gfxip(&self.gfxip) else {
            return Err(Error::UnsupportedAgent { gfxip: self.gfxip.clone() });
        };
        let Self { xcc, se, cu, sa_per_se, .. } = *self;
        let fits = |count: u32| (1..=256).contains(&count);
        // Every XCC has as many engines: which one an engine belongs to is a quotient.
        let is_whole = fits(xcc) && se.is_multiple_of(xcc);
        if !is_whole || !fits(se) || !fits(sa_per_se) || cu > 1 << 16 {
            return Err(Error::ImpossibleAgent { gfxip: self.gfxip.clone(), xcc, se, sa_per_se });
        }
        let generation = target.generation();
        let fixed = IpBases::fixed(generation);
        let bases = if generation == Generation::Gfx9 { fixed } else { self.bases.unwrap_or(fixed) };
        let chip = Chip { target, generation, bases, xcc, se, cu, sa: sa_per_se, clock_khz: self.clock_khz };
        Ok(chip)
    }
}

/// An agent's derived quantities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Whose tables apply.
    pub target: Target,
    /// Whose packet constants apply.
    pub generation: Generation,
    /// Segment bases of its registers.
    pub bases: IpBases,
    /// XCCs.
    pub xcc: u32,
    /// Shader engines, all XCCs together.
    pub se: u32,
    /// Compute units, all XCCs together.
    pub cu: u32,
    /// Shader arrays in each engine.
    pub sa: u32,
    /// Timestamp frequency in kHz.
    pub clock_khz: u32,
}

impl Chip {
    /// Shader engines of one XCC.
    pub const fn se_per_xcc(&self) -> u32 {
        self.se / self.xcc
    }

    /// Work-group processors read in each shader array. Upstream divides the agent's compute units by one XCC's
    /// arrays.
    pub const fn wgps_read(&self) -> u32 {
        let arrays = self.se_per_xcc() * self.sa;
        (self.cu / 2).div_ceil(arrays)
    }

    /// Compute units of a shader array, rounded up.
    pub const fn cus_per_array(&self) -> u32 {
        let arrays = self.sa * self.se;
        self.cu.div_ceil(arrays)
    }

    /// Work-group processors of a shader array as the WGP dimension counts them, rounded up.
    pub const fn wgps_per_array(&self) -> u32 {
        let arrays = self.sa * self.se;
        (self.cu / 2).div_ceil(arrays)
    }

    /// Whether the stream is predicated by XCC.
    pub const fn has_several_xccs(&self) -> bool {
        matches!(self.generation, Generation::Gfx9) && self.xcc > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // MI300X as one partition: 304 CUs in 32 engines of 8 XCCs.
    #[test]
    fn quantities_of_an_mi300x() {
        let chip = AgentShape::new("gfx942", 8, 32, 304, 1).chip().unwrap();
        assert_eq!((chip.se_per_xcc(), chip.cus_per_array()), (4, 10));
        assert!(chip.has_several_xccs());
    }

    #[test]
    fn gfx9_keeps_its_fixed_bases() {
        let mut agent = AgentShape::new("gfx90a", 1, 8, 104, 1);
        agent.bases = Some(IpBases::new(&[1, 2], &[3]));
        assert_eq!(agent.chip().unwrap().bases, IpBases::fixed(Generation::Gfx9));
    }

    #[test]
    fn impossible_numbers_are_refused() {
        for (xcc, se, sa) in [(0, 4, 1), (1, 0, 1), (1, 4, 0), (8, 4, 1), (7, 13, 1)] {
            let error = AgentShape::new("gfx942", xcc, se, 38, sa).chip().unwrap_err();
            assert!(matches!(error, Error::ImpossibleAgent { .. }), "{error}");
        }
        let error = AgentShape::new("gfx803", 1, 4, 64, 1).chip().unwrap_err();
        assert!(matches!(error, Error::UnsupportedAgent { .. }));
    }
}
