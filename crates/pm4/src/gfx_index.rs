//! GRBM_GFX_INDEX: which copies of a banked register the next accesses reach.

use crate::target::Generation;

/// The selection. An index that is `None` broadcasts (kernel `gc_*_sh_mask.h`, `GRBM_GFX_INDEX__*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct GrbmGfxIndex {
    /// Shader engine (of the XCC, where there are several XCCs).
    pub se: Option<u8>,
    /// Shader array of the engine.
    pub sa: Option<u8>,
    /// Instance of the block; for blocks of a work-group processor, `wgp << 2 | instance`.
    pub instance: Option<u8>,
}

const SA_BROADCAST: u32 = 1 << 29;
const INSTANCE_BROADCAST: u32 = 1 << 30;
const SE_BROADCAST: u32 = 1 << 31;

impl GrbmGfxIndex {
    /// Every copy.
    pub const BROADCAST: Self = Self { se: None, sa: None, instance: None };

    /// One instance in every engine and array.
    pub const fn instance(instance: u8) -> Self {
        Self { instance: Some(instance), ..Self::BROADCAST }
    }

    /// Narrows the selection to a shader engine.
    pub const fn with_se(self, se: u8) -> Self {
        Self { se: Some(se), ..self }
    }

    /// Narrows the selection to a shader array.
    pub const fn with_sa(self, sa: u8) -> Self {
        Self { sa: Some(sa), ..self }
    }

    /// Narrows the selection to an instance of a work-group processor (gfx11, gfx12).
    pub const fn with_wgp(self, wgp: u8, instance: u8) -> Self {
        Self { instance: Some((wgp << 2) | instance), ..self }
    }

    /// The register value. Indices wider than their field lose their upper bits, as in upstream's packing.
    pub const fn encode(self, generation: Generation) -> u32 {
        let fields = Fields::of(generation);
        let mut value = 0;
        match self.instance {
            Some(index) => value |= index as u32 & fields.instance_mask,
            None => value |= INSTANCE_BROADCAST,
        }
        match self.sa {
            Some(index) => value |= (index as u32 & fields.sa_mask) << 8,
            None => value |= SA_BROADCAST,
        }
        match self.se {
            Some(index) => value |= (index as u32 & fields.se_mask) << 16,
            None => value |= SE_BROADCAST,
        }
        value
    }

    /// The selection that a register value means; a broadcast bit hides its index.
    pub const fn decode(generation: Generation, value: u32) -> Self {
        let fields = Fields::of(generation);
        let instance = (value & fields.instance_mask) as u8;
        let sa = (value >> 8 & fields.sa_mask) as u8;
        let se = (value >> 16 & fields.se_mask) as u8;
        Self {
            se: if value & SE_BROADCAST != 0 { None } else { Some(se) },
            sa: if value & SA_BROADCAST != 0 { None } else { Some(sa) },
            instance: if value & INSTANCE_BROADCAST != 0 { None } else { Some(instance) },
        }
    }

    /// The work-group processor that the instance index names, and the instance in it.
    pub const fn wgp(self) -> Option<(u8, u8)> {
        match self.instance {
            Some(index) => Some((index >> 2, index & 3)),
            None => None,
        }
    }
}

struct Fields {
    instance_mask: u32,
    sa_mask: u32,
    se_mask: u32,
}

impl Fields {
    const fn of(generation: Generation) -> Self {
        match generation {
            Generation::Gfx9 | Generation::Gfx10 | Generation::Gfx11 => {
                Self { instance_mask: 0xFF, sa_mask: 0xFF, se_mask: 0xFF }
            }
            Generation::Gfx12 => Self { instance_mask: 0x7F, sa_mask: 0x3, se_mask: 0xF },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Values recorded in captured command buffers: ALL, INST(5), SE_SA(4, 0).
    #[test]
    fn named_selections_have_their_recorded_values() {
        let all = GrbmGfxIndex::BROADCAST;
        assert_eq!(all.encode(Generation::Gfx9), 0xE000_0000);
        assert_eq!(GrbmGfxIndex::instance(5).encode(Generation::Gfx9), 0xA000_0005);
        assert_eq!(all.with_se(4).with_sa(0).encode(Generation::Gfx11), 0x4004_0000);
        assert_eq!(all.with_se(1).with_sa(1).with_wgp(3, 1).encode(Generation::Gfx12), 0x0001_010D);
    }

    #[test]
    fn too_wide_indices_are_cut_to_their_field() {
        assert_eq!(GrbmGfxIndex::instance(0x85).encode(Generation::Gfx12), 0xA000_0005);
    }
}
