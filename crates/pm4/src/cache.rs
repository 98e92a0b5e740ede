//! ACQUIRE_MEM: makes a range coherent before later commands, or the host, read it.

use std::fmt;

use crate::target::Generation;

/// An ACQUIRE_MEM packet: seven dwords on gfx9, eight from gfx10 on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AcquireMem {
    /// CP_COHER_CNTL: gfx9's cache actions; 0 later.
    pub coher_cntl: u32,
    /// Units of 256 bytes (dwords 2 and 3; 40 bits are used).
    pub size: u64,
    /// The start in units of 256 bytes (dwords 4 and 5; 40 bits are used).
    pub base: u64,
    /// Clocks between polls.
    pub poll_interval: u32,
    /// GCR_CNTL, the cache actions from gfx10 on; `None` in the gfx9 form.
    pub gcr_cntl: Option<u32>,
}

impl AcquireMem {
    /// L2 write-back (18), vector L1 (22), L2 (23), scalar (27) and instruction cache (29).
    const GFX9_COHER_CNTL: u32 = 1 << 18 | 1 << 22 | 1 << 23 | 1 << 27 | 1 << 29;
    /// GL2 write-back (15), forward sequence (16).
    const GFX10_GCR_CNTL: u32 = 1 << 15 | 1 << 16;
    const POLL_INTERVAL: u32 = 0x10;

    /// Covers `bytes` bytes from `address`, as upstream's builders compute it.
    pub const fn for_range(generation: Generation, address: u64, bytes: u64) -> Self {
        let size = Self::units(address % 256, bytes) & 0xFF_FFFF_FFFF;
        let base = address >> 8 & 0xFF_FFFF_FFFF;
        let poll_interval = Self::POLL_INTERVAL;
        match generation {
            Generation::Gfx9 => {
                Self { coher_cntl: Self::GFX9_COHER_CNTL, size, base, poll_interval, gcr_cntl: None }
            }
            Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12 => {
                Self { coher_cntl: 0, size, base, poll_interval, gcr_cntl: Some(Self::GFX10_GCR_CNTL) }
            }
        }
    }

    /// Units of 256 bytes that a range touches when it begins `misalignment` bytes into one.
    const fn units(misalignment: u64, bytes: u64) -> u64 {
        let whole = bytes.wrapping_add(255) >> 8;
        (misalignment.wrapping_add(bytes) >> 8).wrapping_add(whole).wrapping_sub(bytes >> 8)
    }

    /// First byte covered.
    pub const fn address(&self) -> u64 {
        (self.base & 0xFF_FFFF_FFFF) << 8
    }

    /// Bytes covered.
    pub const fn bytes(&self) -> u64 {
        (self.size & 0xFF_FFFF_FFFF) << 8
    }
}

impl fmt::Debug for AcquireMem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ACQUIRE_MEM({:#x} + {:#x})", self.address(), self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // 9 bytes at 0x21_1000_0000 need one unit; the recorded buffers show the same for 8 bytes.
    #[test]
    fn a_short_range_is_one_unit() {
        let packet = AcquireMem::for_range(Generation::Gfx9, 0x2100_1000_0000, 8);
        assert_eq!((packet.size, packet.base, packet.coher_cntl), (1, 0x21_0010_0000, 0x28C4_0000));
        assert_eq!(packet.address(), 0x2100_1000_0000);
    }

    #[test]
    fn a_range_over_a_boundary_covers_both_units() {
        let packet = AcquireMem::for_range(Generation::Gfx11, 0x10F0, 0x20);
        assert_eq!((packet.address(), packet.bytes()), (0x1000, 0x200));
    }
}
