//! The 64-byte AQL packet as the queue holds it, and the parts of it that every packet type shares.
//!
//! Layout: HSA Platform System Architecture Specification 1.2, section 2.9 (`hsa.h`:
//! `hsa_kernel_dispatch_packet_t`, `hsa_barrier_and_packet_t`; `hsa_ext_amd.h` for vendor packets).

/// One AQL packet, as sixteen little-endian dwords.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AqlPacket(pub [u32; 16]);

const _: () = assert!(size_of::<AqlPacket>() == 64);
const _: () = assert!(align_of::<AqlPacket>() == 64);

/// The type field of a packet header (`hsa_packet_type_t`), unknown values kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketType(pub u8);

impl PacketType {
    /// Vendor-specific, `HSA_PACKET_TYPE_VENDOR_SPECIFIC`.
    pub const VENDOR_SPECIFIC: Self = Self(0);
    /// Not yet written by its producer, or consumed: `HSA_PACKET_TYPE_INVALID`.
    pub const INVALID: Self = Self(1);
    /// A kernel dispatch, `HSA_PACKET_TYPE_KERNEL_DISPATCH`.
    pub const KERNEL_DISPATCH: Self = Self(2);
    /// Waits for all of up to five signals, `HSA_PACKET_TYPE_BARRIER_AND`.
    pub const BARRIER_AND: Self = Self(3);
    /// An agent dispatch, `HSA_PACKET_TYPE_AGENT_DISPATCH`.
    pub const AGENT_DISPATCH: Self = Self(4);
    /// Waits for any of up to five signals, `HSA_PACKET_TYPE_BARRIER_OR`.
    pub const BARRIER_OR: Self = Self(5);
}

/// Scope of a packet's acquire or release fence (`hsa_fence_scope_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fence {
    /// No fence.
    None = 0,
    /// Caches of the agent.
    Agent = 1,
    /// Visible to every agent and the host.
    System = 2,
}

/// The first 16 bits of a packet: type, barrier bit, fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader(pub u16);

impl PacketHeader {
    const BARRIER: u16 = 1 << 8;

    /// Builds a header; `barrier` makes the packet wait for all packets before it.
    pub const fn new(kind: PacketType, barrier: bool, acquire: Fence, release: Fence) -> Self {
        let barrier = if barrier { Self::BARRIER } else { 0 };
        Self(kind.0 as u16 | barrier | (acquire as u16) << 9 | (release as u16) << 11)
    }

    /// The packet type, bits 7:0.
    pub const fn kind(self) -> PacketType {
        PacketType(self.0 as u8)
    }

    /// Whether the barrier bit is set.
    pub const fn barrier(self) -> bool {
        self.0 & Self::BARRIER != 0
    }

    /// The same header with the barrier bit set.
    pub const fn with_barrier(self) -> Self {
        Self(self.0 | Self::BARRIER)
    }
}

impl AqlPacket {
    /// The first two bytes.
    pub const fn header(&self) -> PacketHeader {
        PacketHeader(self.0[0] as u16)
    }

    /// Replaces the first two bytes and keeps the two behind them.
    pub const fn set_header(&mut self, header: PacketHeader) {
        self.0[0] = self.0[0] & 0xFFFF_0000 | header.0 as u32;
    }

    /// The packet of a packet program with its header: vendor-specific, system scope on both sides, since the host
    /// reads what the commands write. With `barrier` it waits for all packets before it.
    #[must_use]
    pub const fn into_vendor_specific(mut self, barrier: bool) -> Self {
        let kind = PacketType::VENDOR_SPECIFIC;
        self.set_header(PacketHeader::new(kind, barrier, Fence::System, Fence::System));
        self
    }

    /// The completion signal's handle (bytes 56 to 63 of every packet type), 0 for none.
    pub const fn completion_signal(&self) -> u64 {
        self.0[14] as u64 | (self.0[15] as u64) << 32
    }

    /// Replaces the completion signal's handle.
    pub const fn set_completion_signal(&mut self, handle: u64) {
        self.0[14] = handle as u32;
        self.0[15] = (handle >> 32) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Values written out by hand from hsa.h: type in bits 7:0, barrier 8, acquire 10:9, release 12:11.
    #[test]
    fn header_bits_are_those_of_hsa_h() {
        let header = PacketHeader::new(PacketType::BARRIER_AND, true, Fence::System, Fence::Agent);
        assert_eq!(header.0, 3 | 1 << 8 | 2 << 9 | 1 << 11);
        assert_eq!(header.kind(), PacketType::BARRIER_AND);
        assert!(header.barrier());
    }

    #[test]
    fn vendor_specific_packet_has_system_scope_and_keeps_its_format() {
        let packet = AqlPacket([0x0001_FFFF; 16]).into_vendor_specific(true);
        assert_eq!(packet.0[0], 1 << 16 | 1 << 8 | 2 << 9 | 2 << 11);
        assert_eq!(packet.0[1..], [0x0001_FFFF; 15]);
        assert!(!packet.into_vendor_specific(false).header().barrier());
    }

    #[test]
    fn completion_signal_lies_at_byte_56() {
        let mut packet = AqlPacket([0; 16]);
        packet.set_completion_signal(0x1122_3344_5566_7788);
        assert_eq!(packet.0[14], 0x5566_7788);
        assert_eq!(packet.0[15], 0x1122_3344);
        assert_eq!(packet.completion_signal(), 0x1122_3344_5566_7788);
    }

    #[test]
    fn set_header_keeps_the_setup_field() {
        let mut packet = AqlPacket([0; 16]);
        packet.0[0] = 0x0003_0001;
        packet.set_header(PacketHeader::new(PacketType::KERNEL_DISPATCH, false, Fence::None, Fence::None));
        assert_eq!(packet.0[0], 0x0003_0002);
    }
}
