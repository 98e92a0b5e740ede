//! The packets that interception adds, and what it must know of the packets that it passes on.
//!
//! Layout: `hsa.h` (`hsa_barrier_and_packet_t`: five signal handles from byte 8, completion signal at byte 56) and
//! `hsa_ext_amd.h` (`hsa_amd_vendor_packet_header_t`: format at byte 2; `hsa_amd_barrier_value_packet_t`: signal at
//! byte 8).

use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};

/// `HSA_AMD_PACKET_TYPE_BARRIER_VALUE`: waits until a signal meets a condition.
const AMD_FORMAT_BARRIER_VALUE: u8 = 2;

/// Dwords of the dependency signals of a barrier packet: five handles from byte 8.
const DEPENDENCIES: std::ops::Range<usize> = 2..12;

/// A barrier-AND packet of ours: waits for everything before it and for `dependency` (a handle, 0 for none) to
/// be 0, then decrements `completion`.
///
/// Both fences have system scope: what completes with this packet is looked at by the host, and a signal of the
/// application must not fall before its kernel's writes are visible to whoever the application shares it with.
pub(crate) const fn barrier(dependency: u64, completion: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::BARRIER_AND, true, Fence::System, Fence::System));
    packet.0[2] = dependency as u32;
    packet.0[3] = (dependency >> 32) as u32;
    packet.set_completion_signal(completion);
    packet
}

/// As [`barrier`], but without the barrier bit: it waits for nothing but `dependency`, and what comes behind it only waits
/// until it is launched.
pub(crate) const fn launch_barrier(dependency: u64, completion: u64) -> AqlPacket {
    let mut packet = barrier(dependency, completion);
    packet.set_header(PacketHeader::new(PacketType::BARRIER_AND, false, Fence::System, Fence::System));
    packet
}

/// Whether `packet`, which is no kernel dispatch, may keep its queue waiting for something outside the queue.
///
/// A barrier without dependency signals only orders its own queue. HIP sends barrier-value packets with a null
/// signal around timed launches. Every other vendor packet and agent dispatches count as blocking: what they
/// wait for is not known.
pub(crate) fn may_block(packet: &AqlPacket) -> bool {
    match packet.header().kind() {
        PacketType::BARRIER_AND | PacketType::BARRIER_OR => {
            packet.0[DEPENDENCIES].iter().any(|&dword| dword != 0)
        }
        PacketType::VENDOR_SPECIFIC => {
            let format = (packet.0[0] >> 16) as u8;
            format != AMD_FORMAT_BARRIER_VALUE || packet.0[2..4].iter().any(|&dword| dword != 0)
        }
        _ => true,
    }
}

/// Geometry and resources of a kernel dispatch packet, in `hsa_kernel_dispatch_packet_t`'s order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelFields {
    pub(crate) workgroup: [u16; 3],
    pub(crate) grid: [u32; 3],
    pub(crate) private_segment_bytes: u32,
    pub(crate) group_segment_bytes: u32,
    pub(crate) kernel_object: u64,
}

/// Reads the fields of a kernel dispatch packet.
pub(crate) const fn kernel_fields(packet: &AqlPacket) -> KernelFields {
    let dwords = &packet.0;
    KernelFields {
        workgroup: [dwords[1] as u16, (dwords[1] >> 16) as u16, dwords[2] as u16],
        grid: [dwords[3], dwords[4], dwords[5]],
        private_segment_bytes: dwords[6],
        group_segment_bytes: dwords[7],
        kernel_object: dwords[8] as u64 | (dwords[9] as u64) << 32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(kind: PacketType) -> AqlPacket {
        let mut packet = AqlPacket([0; 16]);
        packet.set_header(PacketHeader::new(kind, false, Fence::None, Fence::None));
        packet
    }

    // Bytes written out by hand from hsa.h: header 3 | 1<<8 | 2<<9 | 2<<11, dep_signal[0] at 8, completion at 56.
    #[test]
    fn a_barrier_of_ours_waits_orders_and_completes() {
        let barrier = barrier(0x1_0000_0010, 0x2_0000_0020);
        let mut expected = [0u32; 16];
        expected[0] = 0x1503;
        (expected[2], expected[3]) = (0x10, 1);
        (expected[14], expected[15]) = (0x20, 2);
        assert_eq!(barrier.0, expected);
    }

    #[test]
    fn only_packets_that_wait_for_something_outside_block() {
        let mut barrier = packet(PacketType::BARRIER_AND);
        assert!(!may_block(&barrier));
        barrier.0[11] = 1; // fifth dependency signal, high half
        assert!(may_block(&barrier));

        let mut vendor = packet(PacketType::VENDOR_SPECIFIC);
        vendor.0[0] |= 2 << 16;
        assert!(!may_block(&vendor));
        vendor.0[2] = 0x40;
        assert!(may_block(&vendor));
        assert!(may_block(&packet(PacketType::VENDOR_SPECIFIC)), "a PM4 packet may wait in its commands");
        assert!(may_block(&packet(PacketType::AGENT_DISPATCH)));
    }
}
