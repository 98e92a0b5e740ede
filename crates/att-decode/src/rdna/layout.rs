//! Where the fields of RDNA tokens are: one table per header version.
//!
//! Facts: `gfx10/gfx10token.h`, `gfx11/gfx11token.h`, `gfx12/gfx12token.h`, `mi400/mi400token.h` below
//! `projects/rocprof-trace-decoder/source` of ROCm/rocm-systems.

use crate::bits::Field;

/// Fields that say where a wave is: shader array, SIMD and WGP side by side, and the slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceFields {
    unit: Field,
    slot: Field,
}

impl PlaceFields {
    /// Shader array (one bit), SIMD (two) and WGP (`wgp_bits`) from bit `unit` on, and the slot from bit `slot` on.
    const fn at(unit: u8, wgp_bits: u8, slot: u8) -> Self {
        PlaceFields { unit: Field::new(unit, unit + 3 + wgp_bits), slot: Field::new(slot, slot + 5) }
    }

    /// The place a token names.
    #[inline(always)]
    pub(crate) const fn get(&self, raw: u64) -> Place {
        Place { unit: self.unit.byte(raw), slot: self.slot.byte(raw) }
    }
}

/// Where a wave is on the shader engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Shader array in bit 0, SIMD in bits 1 and 2, WGP above, as tokens have them.
    pub(crate) unit: u8,
    pub(crate) slot: u8,
}

impl Place {
    /// A small number per place: units have seven bits, slots five.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        self.unit as usize & 0x7f | (self.slot as usize & 0x1f) << 7
    }

    /// The unit of a shader array, WGP and SIMD.
    pub(crate) const fn unit_of(sa: u8, wgp: u8, simd: u8) -> u8 {
        sa & 1 | (simd & 3) << 1 | wgp << 3
    }

    /// Shader array · 128 + WGP, and the SIMD, by unit: a look-up costs less than taking units apart.
    const NAMES: [[u8; 2]; 128] = {
        let mut names = [[0; 2]; 128];
        let mut unit = 0;
        while unit < 128 {
            names[unit as usize] = [unit << 7 | unit >> 3, unit >> 1 & 3];
            unit += 1;
        }
        names
    };

    /// Shader array · 128 + WGP.
    #[inline(always)]
    pub(crate) fn location(self) -> u8 {
        Self::NAMES[usize::from(self.unit) % 128][0]
    }

    /// The SIMD.
    #[inline(always)]
    pub(crate) fn simd(self) -> u8 {
        Self::NAMES[usize::from(self.unit) % 128][1]
    }
}

/// Everything whose position depends on the header version.
#[derive(Debug)]
pub(crate) struct Layout {
    /// WAVE_START and WAVE_START_EXT.
    pub(crate) start: PlaceFields,
    /// Pipe (two bits) and micro-engine (one).
    pub(crate) start_queue: Field,
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

const GFX10_START: PlaceFields = PlaceFields::at(7, 3, 13);
const GFX12_START: PlaceFields = PlaceFields::at(7, 4, 15);
const GFX12_SHADER_DATA: PlaceFields = PlaceFields::at(10, 4, 17);

pub(super) static GFX10: Layout = Layout {
    start: GFX10_START,
    start_queue: Field::new(21, 24),
    has_extended_start: false,
    end: PlaceFields::at(8, 3, 15),
    inst_slot: Field::new(8, 13),
    inst_code: Field::new(13, 20),
    imm_slot: Field::new(7, 12),
    shader_data: PlaceFields::at(8, 3, 15),
    shader_word: 20,
    has_privilege: false,
    header_wgp: Field::new(15, 18),
};

pub(super) static GFX12: Layout = Layout {
    start: GFX12_START,
    start_queue: Field::new(20, 23),
    has_extended_start: true,
    end: PlaceFields::at(8, 4, 15),
    inst_slot: Field::new(7, 12),
    inst_code: Field::new(12, 20),
    imm_slot: Field::new(7, 12),
    shader_data: GFX12_SHADER_DATA,
    shader_word: 22,
    has_privilege: true,
    header_wgp: Field::new(15, 18),
};

pub(super) static GFX1250: Layout = Layout {
    start: GFX12_START,
    start_queue: Field::new(20, 23),
    has_extended_start: true,
    end: PlaceFields::at(10, 4, 17),
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
    fn every_place_has_an_index_of_its_own_and_is_read_back() {
        let mut seen = vec![false; 1 << 12];
        for (sa, wgp) in (0..2).flat_map(|sa| (0..16).map(move |wgp| (sa, wgp))) {
            for (simd, slot) in (0..4).flat_map(|simd| (0..32).map(move |slot| (simd, slot))) {
                let place = Place { unit: Place::unit_of(sa, wgp, simd), slot };
                assert_eq!((place.location(), place.simd()), (sa << 7 | wgp, simd));
                assert!(!std::mem::replace(&mut seen[place.index()], true), "{place:?}");
            }
        }
        assert!(seen.into_iter().all(|seen| seen));
    }

    #[test]
    fn start_fields_stand_where_the_format_has_them() {
        // sa 7, simd [8:10), wgp [10:14), slot [15:20) on gfx12
        let raw = 1 << 7 | 2 << 8 | 9 << 10 | 17 << 15;
        assert_eq!(GFX12.start.get(raw), Place { unit: Place::unit_of(1, 9, 2), slot: 17 });
        // sa 10, simd [11:13), wgp [13:17), slot [17:22): WAVE_END of gfx1250
        let raw = 1 << 10 | 3 << 11 | 12 << 13 | 30 << 17;
        assert_eq!(GFX1250.end.get(raw), Place { unit: Place::unit_of(1, 12, 3), slot: 30 });
        // sa 8, simd [9:11), wgp [11:14), slot [15:20): WAVE_END of gfx10 and gfx11
        let raw = 1 << 8 | 1 << 9 | 5 << 11 | 1 << 14 | 3 << 15;
        assert_eq!(GFX10.end.get(raw), Place { unit: Place::unit_of(1, 5, 1), slot: 3 });
    }
}
