//! Header versions as compile-time constants.
//!
//! The reading loop exists once per generation, with the field layouts of that generation's own header version as
//! constants in it. Where the latest header names another version, as only damaged streams do, the careful reader
//! goes by tables at run time: [`BY_HEADER`].

use super::codes::{self, Codes};
use super::header::Header;
use super::layout::{self, Layout};
use crate::generation::Generation;

/// A generation, or [`BY_HEADER`].
pub(super) type Form = u8;

/// Whatever the latest header says.
pub(super) const BY_HEADER: Form = 0;
/// Header versions 1 and 2.
pub(super) const GFX10: Form = 10;
/// Header version 3.
pub(super) const GFX11: Form = 11;
/// Header version 4.
pub(super) const GFX12: Form = 12;
/// Header version 5.
pub(super) const GFX1250: Form = 13;

/// The generation of a form that is one.
pub(super) const fn generation<const F: Form>() -> Generation {
    match F {
        GFX10 => Generation::Gfx10,
        GFX11 => Generation::Gfx11,
        GFX12 => Generation::Gfx12,
        _ => Generation::Gfx1250,
    }
}

impl Header {
    /// Whether its version is the one that a generation writes.
    pub(super) const fn is_native_to(&self, generation: Generation) -> bool {
        match generation {
            Generation::Gfx9 => false,
            Generation::Gfx10 => matches!(self.version, 1 | 2),
            Generation::Gfx11 => self.version == 3,
            Generation::Gfx12 => self.version == 4,
            Generation::Gfx1250 => self.version >= 5,
        }
    }

    /// Where fields are.
    #[inline(always)]
    pub(super) fn layout<const F: Form>(&self) -> &'static Layout {
        match F {
            GFX10 | GFX11 => &layout::GFX10,
            GFX12 => &layout::GFX12,
            GFX1250 => &layout::GFX1250,
            _ => self.layout,
        }
    }

    /// What INST codes mean.
    #[inline(always)]
    pub(super) fn codes<const F: Form>(&self) -> &'static Codes {
        match F {
            GFX10 => &codes::GFX10,
            GFX11 => &codes::GFX11,
            GFX12 => &codes::GFX12,
            GFX1250 => &codes::GFX1250,
            _ => self.codes,
        }
    }

    /// Version, the two of gfx10 taken as one.
    #[inline(always)]
    pub(super) fn version<const F: Form>(&self) -> u8 {
        match F {
            GFX10 => 2,
            GFX11 => 3,
            GFX12 => 4,
            GFX1250 => 5,
            _ => self.version,
        }
    }
}
