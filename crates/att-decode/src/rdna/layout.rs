//! Where the fields of RDNA tokens are: one table per header version.
//!
//! Facts: `gfx10/gfx10token.h`, `gfx11/gfx11token.h`, `gfx12/gfx12token.h`, `mi400/mi400token.h` below
//! `projects/rocprof-trace-decoder/source` of ROCm/rocm-systems.

use crate::bits::Field;

/// Fields that say where a wave is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceFields {
    sa: Field,
    simd: Field,
    wgp: Field,
    slot: Field,
}

impl PlaceFields {
    /// All four fields from the position of each; the WGP is `wgp_bits` wide.
    const fn at(sa: u8, simd: u8, wgp: u8, wgp_bits: u8, slot: u8) -> Self {
        PlaceFields {
            sa: Field::new(sa, sa + 1),
            simd: Field::new(simd, simd + 2),
            wgp: Field::new(wgp, wgp + wgp_bits),
            slot: Field::new(slot, slot + 5),
        }
    }

    /// The place a token names.
    #[inline(always)]
    pub(crate) const fn get(&self, raw: u64) -> Place {
        Place {
            location: self.sa.byte(raw) << 7 | self.wgp.byte(raw),
            simd: self.simd.byte(raw),
            slot: self.slot.byte(raw),
        }
    }
}

/// Where a wave is on the shader engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Shader array · 128 + WGP.
    pub(crate) location: u8,
    pub(crate) simd: u8,
    pub(crate) slot: u8,
}

impl Place {
    /// Number of different indices.
    pub(crate) const COUNT: usize = 1 << 12;

    /// A small number per place: WGPs count to 16 at most.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        (self.location as usize >> 7) << 11
            | (self.location as usize & 15) << 7
            | (self.simd as usize & 3) << 5
            | self.slot as usize & 31
    }
}

/// Everything whose position depends on the header version.
#[derive(Debug)]
pub(crate) struct Layout {
    /// WAVE_START and WAVE_START_EXT.
    pub(crate) start: PlaceFields,
    pub(crate) start_pipe: Field,
    pub(crate) start_me: Field,
    /// WAVE_START_EXT has a work group behind the plain fields.
    pub(crate) has_extended_start: bool,
    pub(crate) end: PlaceFields,
    pub(crate) inst_slot: Field,
    pub(crate) inst_code: Field,
    pub(crate) imm_slot: Field,
    pub(crate) shader_data: PlaceFields,
    /// First bit of the word of SHADER_DATA and SHADER_DATA_SHORT.
    pub(crate) shader_word: u8,
    /// SHADER_DATA has its privilege in the two bits behind the word.
    pub(crate) has_privilege: bool,
    pub(crate) header_wgp: Field,
}

/// Start token: context-switch code or, outside 66 to 89, a number without effect.
pub(crate) const START_COUNT: Field = Field::new(25, 32);
/// Extended start: LDS form, which has no work group.
pub(crate) const EXT_LDS: Field = Field::new(32, 33);
/// Extended start: work group.
pub(crate) const EXT_WORKGROUP: Field = Field::new(33, 38);
/// VALU_INST on gfx10, gfx11 and gfx12.
pub(crate) const VALU_SLOT: Field = Field::new(7, 12);
/// Waves of IMMEDIATE and WAVE_READY.
pub(crate) const WAVE_MASK: Field = Field::new(8, 24);

const GFX10_START: PlaceFields = PlaceFields::at(7, 8, 10, 3, 13);
const GFX12_START: PlaceFields = PlaceFields::at(7, 8, 10, 4, 15);
const GFX12_SHADER_DATA: PlaceFields = PlaceFields::at(10, 11, 13, 4, 17);

static GFX10: Layout = Layout {
    start: GFX10_START,
    start_pipe: Field::new(21, 23),
    start_me: Field::new(23, 24),
    has_extended_start: false,
    end: PlaceFields::at(8, 9, 11, 3, 15),
    inst_slot: Field::new(8, 13),
    inst_code: Field::new(13, 20),
    imm_slot: Field::new(7, 12),
    shader_data: PlaceFields::at(8, 9, 11, 3, 15),
    shader_word: 20,
    has_privilege: false,
    header_wgp: Field::new(15, 18),
};

static GFX12: Layout = Layout {
    start: GFX12_START,
    start_pipe: Field::new(20, 22),
    start_me: Field::new(22, 23),
    has_extended_start: true,
    end: PlaceFields::at(8, 9, 11, 4, 15),
    inst_slot: Field::new(7, 12),
    inst_code: Field::new(12, 20),
    imm_slot: Field::new(7, 12),
    shader_data: GFX12_SHADER_DATA,
    shader_word: 22,
    has_privilege: true,
    header_wgp: Field::new(15, 18),
};

static GFX1250: Layout = Layout {
    start: GFX12_START,
    start_pipe: Field::new(20, 22),
    start_me: Field::new(22, 23),
    has_extended_start: true,
    end: PlaceFields::at(10, 11, 13, 4, 17),
    inst_slot: Field::new(7, 12),
    inst_code: Field::new(12, 21),
    imm_slot: Field::new(10, 15),
    shader_data: GFX12_SHADER_DATA,
    shader_word: 22,
    has_privilege: true,
    header_wgp: Field::new(15, 19),
};

/// The layout of a header version; versions nobody knows read as gfx10.
pub(crate) fn layout(version: u8) -> &'static Layout {
    match version {
        0..=3 => &GFX10,
        4 => &GFX12,
        _ => &GFX1250,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_an_index_of_its_own() {
        let mut seen = vec![false; Place::COUNT];
        for location in (0..16).chain(128..144) {
            for simd in 0..4 {
                for slot in 0..32 {
                    let index = Place { location, simd, slot }.index();
                    assert!(!std::mem::replace(&mut seen[index], true), "{location} {simd} {slot}");
                }
            }
        }
        assert!(seen.into_iter().all(|seen| seen));
    }
}
