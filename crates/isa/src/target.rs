//! Which GPU an instruction stream was made for.
//!
//! [`Target`] is the chip as LLVM and ROCm name it; [`Generation`] groups the chips that share one set of encoding
//! and opcode tables. Numbers of `EF_AMDGPU_MACH` are those of LLVM's AMDGPU usage guide, "ELF header flags".

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Chips that share one set of instruction tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Generation {
    /// gfx900 to gfx909, gfx90c: Vega and MI100.
    Gfx9,
    /// gfx90a: MI200.
    Gfx90a,
    /// gfx940 to gfx942, gfx950: MI300, MI350.
    Gfx940,
    /// gfx1010 to gfx1013: RDNA 1.
    Gfx10,
    /// gfx1030 to gfx1036: RDNA 2.
    Gfx10_3,
    /// gfx1100 to gfx1103: RDNA 3.
    Gfx11,
    /// gfx1150 to gfx1153: RDNA 3.5.
    Gfx11_5,
    /// gfx1200, gfx1201: RDNA 4.
    Gfx12,
    /// gfx1250, gfx1251: MI400.
    Gfx1250,
}

impl Generation {
    /// All generations, oldest first.
    pub const ALL: [Self; 9] = [
        Self::Gfx9,
        Self::Gfx90a,
        Self::Gfx940,
        Self::Gfx10,
        Self::Gfx10_3,
        Self::Gfx11,
        Self::Gfx11_5,
        Self::Gfx12,
        Self::Gfx1250,
    ];

    /// Major graphics IP version as the trace decoder reports it: 9, 10, 11 or 12 (gfx1250 too).
    pub const fn gfxip(self) -> u8 {
        match self {
            Self::Gfx9 | Self::Gfx90a | Self::Gfx940 => 9,
            Self::Gfx10 | Self::Gfx10_3 => 10,
            Self::Gfx11 | Self::Gfx11_5 => 11,
            Self::Gfx12 | Self::Gfx1250 => 12,
        }
    }
}

/// Declares [`Target`] with one row per chip: variant, name, `EF_AMDGPU_MACH`, generation.
macro_rules! targets {
    ($($variant:ident $name:literal $machine:literal $generation:ident)*) => {
        /// A chip, or a group of chips that LLVM compiles for as one (the `generic` targets).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Target {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Target {
            /// Every supported target.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Name as LLVM and ROCm spell it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Number in the `EF_AMDGPU_MACH` bits of a code object's `e_flags`.
            pub const fn machine(self) -> u32 {
                match self { $(Self::$variant => $machine,)* }
            }

            /// The set of instruction tables that applies.
            pub const fn generation(self) -> Generation {
                match self { $(Self::$variant => Generation::$generation,)* }
            }
        }
    };
}

targets! {
    Gfx900 "gfx900" 0x2c Gfx9
    Gfx902 "gfx902" 0x2d Gfx9
    Gfx904 "gfx904" 0x2e Gfx9
    Gfx906 "gfx906" 0x2f Gfx9
    Gfx908 "gfx908" 0x30 Gfx9
    Gfx909 "gfx909" 0x31 Gfx9
    Gfx90c "gfx90c" 0x32 Gfx9
    Gfx9Generic "gfx9-generic" 0x51 Gfx9
    Gfx90a "gfx90a" 0x3f Gfx90a
    Gfx940 "gfx940" 0x40 Gfx940
    Gfx941 "gfx941" 0x4b Gfx940
    Gfx942 "gfx942" 0x4c Gfx940
    Gfx950 "gfx950" 0x4f Gfx940
    Gfx9_4Generic "gfx9-4-generic" 0x5f Gfx940
    Gfx1010 "gfx1010" 0x33 Gfx10
    Gfx1011 "gfx1011" 0x34 Gfx10
    Gfx1012 "gfx1012" 0x35 Gfx10
    Gfx1013 "gfx1013" 0x42 Gfx10
    Gfx10_1Generic "gfx10-1-generic" 0x52 Gfx10
    Gfx1030 "gfx1030" 0x36 Gfx10_3
    Gfx1031 "gfx1031" 0x37 Gfx10_3
    Gfx1032 "gfx1032" 0x38 Gfx10_3
    Gfx1033 "gfx1033" 0x39 Gfx10_3
    Gfx1034 "gfx1034" 0x3e Gfx10_3
    Gfx1035 "gfx1035" 0x3d Gfx10_3
    Gfx1036 "gfx1036" 0x45 Gfx10_3
    Gfx10_3Generic "gfx10-3-generic" 0x53 Gfx10_3
    Gfx1100 "gfx1100" 0x41 Gfx11
    Gfx1101 "gfx1101" 0x46 Gfx11
    Gfx1102 "gfx1102" 0x47 Gfx11
    Gfx1103 "gfx1103" 0x44 Gfx11
    Gfx11Generic "gfx11-generic" 0x54 Gfx11
    Gfx1150 "gfx1150" 0x43 Gfx11_5
    Gfx1151 "gfx1151" 0x4a Gfx11_5
    Gfx1152 "gfx1152" 0x55 Gfx11_5
    Gfx1153 "gfx1153" 0x58 Gfx11_5
    Gfx1200 "gfx1200" 0x48 Gfx12
    Gfx1201 "gfx1201" 0x4e Gfx12
    Gfx12Generic "gfx12-generic" 0x59 Gfx12
    Gfx1250 "gfx1250" 0x49 Gfx1250
    Gfx1251 "gfx1251" 0x5a Gfx1250
}

impl Target {
    /// Names of all supported targets, separated by a comma.
    pub fn names() -> String {
        Self::ALL.iter().map(|target| target.name()).collect::<Vec<_>>().join(", ")
    }

    /// Target of a code object.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownMachine`] when no supported target has the machine number in `flags`.
    pub fn from_elf_flags(flags: u32) -> Result<Self, Error> {
        /// `EF_AMDGPU_MACH`: the other bits say how xnack and sramecc are set, or which generic version it is.
        const MACHINE: u32 = 0xff;
        let machine = flags & MACHINE;
        let found = Self::ALL.iter().copied().find(|target| target.machine() == machine);
        found.ok_or(Error::UnknownMachine { machine })
    }

    /// Major graphics IP version, see [`Generation::gfxip`].
    pub const fn gfxip(self) -> u8 {
        self.generation().gfxip()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Target {
    type Err = Error;

    /// Reads `gfx942`, with features (`gfx942:sramecc+:xnack-`) or as a full ISA name
    /// (`amdgcn-amd-amdhsa--gfx942:sramecc+`) too.
    fn from_str(name: &str) -> Result<Self, Error> {
        let chip = name.rsplit_once("--").map_or(name, |(_, chip)| chip);
        let chip = chip.split(':').next().unwrap_or(chip);
        let found = Self::ALL.iter().copied().find(|target| target.name() == chip);
        found.ok_or_else(|| Error::UnknownTarget { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_and_triples_are_read_over() {
        assert_eq!("amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-".parse(), Ok(Target::Gfx90a));
        assert_eq!("gfx9-4-generic".parse(), Ok(Target::Gfx9_4Generic));
    }

    #[test]
    fn unknown_target_names_what_is_supported() {
        let message = "gfx803".parse::<Target>().unwrap_err().to_string();
        assert!(message.contains("`gfx803`") && message.contains("gfx1151"), "{message}");
    }

    #[test]
    fn machine_numbers_are_unique_and_found_again() {
        for &target in Target::ALL {
            assert_eq!(Target::from_elf_flags(target.machine() | 0x500), Ok(target));
        }
    }
}
