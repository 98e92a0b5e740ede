//! Names and numbers of GPU instruction-set targets.
//!
//! ```
//! use wavescope_core::{Generation, GfxTarget};
//!
//! let mi300: GfxTarget = "gfx942".parse()?;
//! assert_eq!(mi300.generation(), Some(Generation::Gfx9));
//! assert_eq!(GfxTarget::from_kfd_version(90010).map(|t| t.to_string()), Some("gfx90a".to_owned()));
//! # Ok::<(), wavescope_core::Error>(())
//! ```

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// A processor of LLVM's AMDGPU backend: `gfx` + major, minor, stepping.
///
/// Parsing accepts only [`KNOWN`](Self::KNOWN) names; a topology may hold others, which still print correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GfxTarget {
    /// Major version, decimal in the name.
    pub major: u8,
    /// Minor version, one hexadecimal digit of the name.
    pub minor: u8,
    /// Stepping, the last hexadecimal digit of the name.
    pub stepping: u8,
}

/// A family of targets that share packet, register and thread-trace formats in outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// GCN 5 and CDNA: waves of 64.
    Gfx9,
    /// RDNA 1 and 2.
    Gfx10,
    /// RDNA 3.
    Gfx11,
    /// RDNA 4 and its relatives.
    Gfx12,
}

impl GfxTarget {
    /// Vega 10.
    pub const GFX900: Self = Self::new(9, 0, 0);
    /// Vega 20.
    pub const GFX906: Self = Self::new(9, 0, 6);
    /// MI100.
    pub const GFX908: Self = Self::new(9, 0, 8);
    /// MI200 series.
    pub const GFX90A: Self = Self::new(9, 0, 10);
    /// MI300 series.
    pub const GFX942: Self = Self::new(9, 4, 2);
    /// MI350 series.
    pub const GFX950: Self = Self::new(9, 5, 0);
    /// Navi 21.
    pub const GFX1030: Self = Self::new(10, 3, 0);
    /// Navi 31.
    pub const GFX1100: Self = Self::new(11, 0, 0);
    /// Navi 32.
    pub const GFX1101: Self = Self::new(11, 0, 1);
    /// Navi 33.
    pub const GFX1102: Self = Self::new(11, 0, 2);
    /// Navi 44.
    pub const GFX1200: Self = Self::new(12, 0, 0);
    /// Navi 48.
    pub const GFX1201: Self = Self::new(12, 0, 1);
    /// The gfx12 compute line.
    pub const GFX1250: Self = Self::new(12, 5, 0);

    /// Every target whose name is accepted.
    pub const KNOWN: [Self; 13] = [
        Self::GFX900,
        Self::GFX906,
        Self::GFX908,
        Self::GFX90A,
        Self::GFX942,
        Self::GFX950,
        Self::GFX1030,
        Self::GFX1100,
        Self::GFX1101,
        Self::GFX1102,
        Self::GFX1200,
        Self::GFX1201,
        Self::GFX1250,
    ];

    /// Puts a target together from its three numbers.
    pub const fn new(major: u8, minor: u8, stepping: u8) -> Self {
        Self { major, minor, stepping }
    }

    /// Takes apart the driver's `gfx_target_version`: major × 10000 + minor × 100 + stepping, all decimal.
    ///
    /// `None` where a part has no single digit in the name, or for 0 (a node without a GPU).
    pub fn from_kfd_version(version: u32) -> Option<Self> {
        let (major, minor, stepping) = (version / 10_000, version / 100 % 100, version % 100);
        let nameable = (1..=99).contains(&major) && minor < 16 && stepping < 16;
        nameable.then(|| Self::new(major as u8, minor as u8, stepping as u8))
    }

    /// The driver's `gfx_target_version` of this target.
    pub const fn kfd_version(self) -> u32 {
        self.major as u32 * 10_000 + self.minor as u32 * 100 + self.stepping as u32
    }

    /// The generation, `None` for one that Wavescope does not support.
    pub const fn generation(self) -> Option<Generation> {
        match self.major {
            9 => Some(Generation::Gfx9),
            10 => Some(Generation::Gfx10),
            11 => Some(Generation::Gfx11),
            12 => Some(Generation::Gfx12),
            _ => None,
        }
    }

    /// The accepted names, separated by commas, for messages.
    pub fn known_names() -> String {
        Self::KNOWN.map(|target| target.to_string()).join(", ")
    }
}

impl fmt::Display for GfxTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gfx{}{:x}{:x}", self.major, self.minor, self.stepping)
    }
}

impl FromStr for GfxTarget {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let known = Self::KNOWN.into_iter().find(|target| target.to_string() == name);
        known.ok_or_else(|| Error::UnknownTarget { name: name.to_owned() })
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gfx9 => "gfx9",
            Self::Gfx10 => "gfx10",
            Self::Gfx11 => "gfx11",
            Self::Gfx12 => "gfx12",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Pairs as the kernel driver reports them (drivers/gpu/drm/amd/amdkfd/kfd_device.c, gfx_target_version).
    #[test]
    fn names_and_driver_versions_belong_together() {
        for (version, name) in [
            (90_006, "gfx906"),
            (90_010, "gfx90a"),
            (90_402, "gfx942"),
            (90_500, "gfx950"),
            (100_300, "gfx1030"),
            (110_000, "gfx1100"),
            (120_001, "gfx1201"),
        ] {
            let target: GfxTarget = name.parse().unwrap();
            assert_eq!(GfxTarget::from_kfd_version(version), Some(target), "{name}");
            assert_eq!(target.kfd_version(), version, "{name}");
            assert_eq!(target.to_string(), name);
        }
    }

    #[test]
    fn unnameable_versions_are_none() {
        for version in [0, 9_999, 91_600, 90_016, u32::MAX] {
            assert_eq!(GfxTarget::from_kfd_version(version), None, "{version}");
        }
    }

    #[test]
    fn unknown_name_lists_what_is_accepted() {
        let message = "gfx941".parse::<GfxTarget>().unwrap_err().to_string();
        assert!(message.contains("`gfx941`") && message.contains("gfx90a, gfx942, gfx950"), "{message}");
        for name in ["", "gfx", "942", "GFX942", "gfx942 ", "gfx９42"] {
            assert!(name.parse::<GfxTarget>().is_err(), "{name:?}");
        }
    }
}
