//! Where registers lie: IP blocks, their segments, and the segments' base addresses.

use crate::target::Generation;

/// An IP block that owns registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ip {
    /// The graphics core.
    Gc,
    /// The address-translation hub (RPB, ATC).
    Athub,
}

/// A register as an IP block, a segment of it, and an offset in the segment (all dword addresses).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register {
    /// The IP block.
    pub ip: Ip,
    /// Which of its segments.
    pub segment: u8,
    /// Dwords from the segment's base.
    pub offset: u32,
}

impl Register {
    /// A register of the graphics core.
    pub const fn gc(segment: u8, offset: u32) -> Self {
        Self { ip: Ip::Gc, segment, offset }
    }

    /// A register of the address-translation hub.
    pub const fn athub(segment: u8, offset: u32) -> Self {
        Self { ip: Ip::Athub, segment, offset }
    }

    /// Its absolute dword address.
    pub const fn address(self, bases: &IpBases) -> u32 {
        let segments = match self.ip {
            Ip::Gc => &bases.gc,
            Ip::Athub => &bases.athub,
        };
        let segment = self.segment as usize;
        let base = if segment < IpBases::SEGMENTS { segments[segment] } else { 0 };
        base.wrapping_add(self.offset)
    }
}

/// Segment bases of one chip, as dword addresses. A segment that the chip does not have is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpBases {
    /// Graphics core.
    pub gc: [u32; Self::SEGMENTS],
    /// Address-translation hub.
    pub athub: [u32; Self::SEGMENTS],
}

impl IpBases {
    /// Segments kept for each IP block; IP discovery lists at most five for those used here.
    pub const SEGMENTS: usize = 8;

    /// The fixed table of a generation: Vega 20's on gfx9 (`vega20_ip_offset.h`), Sienna Cichlid's
    /// (`sienna_cichlid_ip_offset.h`) where later chips have no IP discovery.
    pub const fn fixed(generation: Generation) -> Self {
        match generation {
            Generation::Gfx9 => {
                Self { gc: [0x2000, 0xA000, 0, 0, 0, 0, 0, 0], athub: [0xC20, 0, 0, 0, 0, 0, 0, 0] }
            }
            Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12 => Self {
                gc: [0x1260, 0xA000, 0x1_C000, 0x240_2C00, 0, 0, 0, 0],
                athub: [0xC00, 0, 0, 0, 0, 0, 0, 0],
            },
        }
    }

    /// Bases found by IP discovery; segments beyond [`Self::SEGMENTS`] are dropped, missing ones are 0.
    pub fn new(gc: &[u32], athub: &[u32]) -> Self {
        let fill = |from: &[u32]| std::array::from_fn(|index| from.get(index).copied().unwrap_or(0));
        Self { gc: fill(gc), athub: fill(athub) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_moves_with_its_segment_only() {
        let index = Register::gc(1, 0x2200);
        let rpb = Register::athub(0, 0xE3);
        let fixed = IpBases::fixed(Generation::Gfx9);
        assert_eq!((index.address(&fixed), rpb.address(&fixed)), (0xC200, 0xD03));
        let moved = IpBases::new(&[0x1280, 0xA100], &[0xC20]);
        assert_eq!((index.address(&moved), rpb.address(&moved)), (0xC300, 0xD03));
    }
}
