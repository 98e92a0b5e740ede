//! The HEADER token: version, target and settings.

use super::codes::{Codes, codes};
use super::layout::{Layout, Place, layout};
use crate::bits::bits;

/// Settings of the latest HEADER token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    /// Header version: 1 and 2 are gfx10, 3 gfx11, 4 gfx12, 5 gfx1250; 0 before the first header.
    pub(crate) version: u8,
    /// Where the fields of tokens are.
    pub(crate) layout: &'static Layout,
    /// What INST codes mean.
    pub(crate) codes: &'static Codes,
    /// Shader array, WGP and SIMD whose waves are traced in detail.
    pub(crate) target: Place,
    /// Cycles of a double-precision instruction.
    pub(crate) double_rate: i64,
    /// Factor of derated double-precision instructions.
    pub(crate) derate: i64,
    /// Shift of transcendental instructions (gfx1250).
    pub(crate) trans2: u8,
    /// Occupancy may be handed over before the end.
    pub(crate) is_double_buffered: bool,
    /// The capture leaves `s_barrier_wait` out (gfx12).
    pub(crate) excludes_barrier_wait: bool,
}

impl Default for Header {
    fn default() -> Self {
        Header {
            version: 0,
            layout: layout(0),
            codes: codes(0),
            target: Place { unit: 0, slot: 0 },
            double_rate: 1,
            derate: 1,
            trans2: 0,
            is_double_buffered: false,
            excludes_barrier_wait: false,
        }
    }
}

impl Header {
    /// Takes a HEADER token; settings that its version does not have stay as they were.
    pub(crate) fn update(&mut self, raw: u64) {
        let version = bits(raw, 7, 13) as u8;
        self.version = version;
        self.layout = layout(version);
        self.codes = codes(version);
        let (sa, simd) = (bits(raw, 19, 20) as u8, bits(raw, 13, 15) as u8);
        self.target.unit = Place::unit_of(sa, self.layout.header_wgp.byte(raw), simd);
        if version >= 4 {
            self.is_double_buffered = bits(raw, 43, 44) == 1;
        }
        if version >= 5 {
            self.trans2 = bits(raw, 60, 61) as u8;
            return;
        }
        let rate = if version <= 2 { bits(raw, 28, 32) } else { bits(raw, 28, 31) };
        self.double_rate = if rate == 0 { 1 } else { 1 << (rate - 1) };
        self.derate = 1 << bits(raw, 33, 36);
        if version == 4 {
            self.excludes_barrier_wait = bits(raw, 59, 60) == 1;
        }
    }
}
