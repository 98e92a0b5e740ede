//! The packets that interception adds, and what it must know of the packets that it passes on.
//!
//! Layout: `hsa.h` (`hsa_barrier_and_packet_t`: five signal handles from byte 8, completion signal at byte 56) and
//! `hsa_ext_amd.h` (`hsa_amd_vendor_packet_header_t`: format at byte 2; `hsa_amd_barrier_value_packet_t`: signal at
//! byte 8; from step 0x0D of the extension table on `hsa_amd_ext_kernel_dispatch_packet_t`: set-up at byte 3, cluster counts at
//! 12, 16 and 18, cluster sizes at 20, 21 and 22, dependency at 48, and the rest where a kernel dispatch packet has it).

use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};

/// `HSA_AMD_PACKET_TYPE_BARRIER_VALUE`: waits until a signal meets a condition.
const AMD_FORMAT_BARRIER_VALUE: u8 = 2;

/// `HSA_AMD_PACKET_TYPE_EXT_KERNEL_DISPATCH`: a kernel dispatch with clusters, and a signal that it waits for. Up to ROCr 7.2 the
/// number was that of a packet for other agents than GPUs.
const AMD_FORMAT_EXTENDED_DISPATCH: u8 = 3;

/// Dwords of the signal that an extended dispatch waits for.
const EXTENDED_DEPENDENCY: std::ops::Range<usize> = 12..14;

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

/// Whether `packet` runs a kernel: a dispatch, plain or extended.
pub(crate) fn is_kernel(packet: &AqlPacket) -> bool {
    match packet.header().kind() {
        PacketType::KERNEL_DISPATCH => true,
        PacketType::VENDOR_SPECIFIC => is_extended(packet),
        _ => false,
    }
}

/// Of a packet that runs a kernel.
const fn is_extended(packet: &AqlPacket) -> bool {
    packet.header().kind().0 == PacketType::VENDOR_SPECIFIC.0
        && (packet.0[0] >> 16) as u8 == AMD_FORMAT_EXTENDED_DISPATCH
}

/// An extended dispatch that waits for a signal, as two packets: a barrier that waits, and the same dispatch without. `None` for
/// every other kernel. A queue must not get its agent before what its kernel waits for, and only for a packet before the
/// kernel can be seen whether that is over.
pub(crate) fn split_dependency(packet: &AqlPacket) -> Option<[AqlPacket; 2]> {
    let waits = is_extended(packet) && packet.0[EXTENDED_DEPENDENCY].iter().any(|&dword| dword != 0);
    waits.then(|| {
        let mut wait = AqlPacket([0; 16]);
        wait.0[2..4].copy_from_slice(&packet.0[EXTENDED_DEPENDENCY]);
        let barrier = packet.header().barrier();
        wait.set_header(PacketHeader::new(PacketType::BARRIER_AND, barrier, Fence::None, Fence::None));
        let mut kernel = *packet;
        kernel.0[EXTENDED_DEPENDENCY].fill(0);
        kernel.set_header(kernel.header().with_barrier());
        [wait, kernel]
    })
}

/// Geometry and resources of a packet that runs a kernel, in `hsa_kernel_dispatch_packet_t`'s order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelFields {
    pub(crate) workgroup: [u16; 3],
    pub(crate) grid: [u32; 3],
    pub(crate) private_segment_bytes: u32,
    pub(crate) group_segment_bytes: u32,
    pub(crate) kernel_object: u64,
}

/// Reads the fields of a packet that runs a kernel.
pub(crate) const fn kernel_fields(packet: &AqlPacket) -> KernelFields {
    let dwords = &packet.0;
    let workgroup = [dwords[1] as u16, (dwords[1] >> 16) as u16, dwords[2] as u16];
    KernelFields {
        workgroup,
        grid: if is_extended(packet) {
            clustered_grid(dwords, workgroup)
        } else {
            [dwords[3], dwords[4], dwords[5]]
        },
        private_segment_bytes: dwords[6],
        group_segment_bytes: dwords[7],
        kernel_object: dwords[8] as u64 | (dwords[9] as u64) << 32,
    }
}

/// Clusters, times work-groups of a cluster, times work-items of a work-group.
const fn clustered_grid(dwords: &[u32; 16], workgroup: [u16; 3]) -> [u32; 3] {
    let [clusters, sizes] = [
        [dwords[3], dwords[4] & 0xffff, dwords[4] >> 16],
        [dwords[5] & 0xff, dwords[5] >> 8 & 0xff, dwords[5] >> 16 & 0xff],
    ];
    let [x, y, z] = workgroup;
    [
        clusters[0].saturating_mul(sizes[0]).saturating_mul(x as u32),
        clusters[1].saturating_mul(sizes[1]).saturating_mul(y as u32),
        clusters[2].saturating_mul(sizes[2]).saturating_mul(z as u32),
    ]
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

    /// The bytes of an extended dispatch, field by field from hsa_ext_amd.h: 7 clusters of 2 work-groups of 64 in x, 3 of 4 of
    /// 2 in y, 5 of 1 of 1 in z.
    fn extended(dependency: u64) -> AqlPacket {
        let mut bytes = [0_u8; 64];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &0x1500_u16.to_le_bytes()); // vendor-specific, barrier, both fences: system
        put(2, &[3, 3]); // format, set-up: three dimensions
        put(4, &64_u16.to_le_bytes());
        put(6, &2_u16.to_le_bytes());
        put(8, &1_u16.to_le_bytes());
        put(12, &7_u32.to_le_bytes());
        put(16, &3_u16.to_le_bytes());
        put(18, &5_u16.to_le_bytes());
        put(20, &[2, 4, 1, 9]); // the last is a hint
        put(24, &16_u32.to_le_bytes());
        put(28, &1024_u32.to_le_bytes());
        put(32, &0x7_0000_1040_u64.to_le_bytes());
        put(40, &0x7_0000_2000_u64.to_le_bytes());
        put(48, &dependency.to_le_bytes());
        put(56, &0x7_0000_3000_u64.to_le_bytes());
        let dword = |index: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * index + byte]));
        AqlPacket(std::array::from_fn(dword))
    }

    #[test]
    fn an_extended_dispatch_is_a_kernel() {
        let fields = kernel_fields(&extended(0));
        assert_eq!((fields.workgroup, fields.grid), ([64, 2, 1], [7 * 2 * 64, 3 * 4 * 2, 5]));
        assert_eq!((fields.private_segment_bytes, fields.group_segment_bytes), (16, 1024));
        assert_eq!(fields.kernel_object, 0x7_0000_1040);
        assert!(is_kernel(&extended(0)) && is_kernel(&packet(PacketType::KERNEL_DISPATCH)));
        for format in [1, 2, 4] {
            let mut vendor = packet(PacketType::VENDOR_SPECIFIC);
            vendor.0[0] |= format << 16;
            assert!(!is_kernel(&vendor), "format {format}");
        }
        let mut other = packet(PacketType::AGENT_DISPATCH);
        other.0[0] |= 3 << 16;
        assert!(!is_kernel(&other));
        let mut plain = packet(PacketType::KERNEL_DISPATCH);
        plain.0[0] |= 3 << 16;
        plain.0[3..6].copy_from_slice(&[10, 20, 30]);
        assert_eq!(kernel_fields(&plain).grid, [10, 20, 30], "its set-up is no format");
    }

    #[test]
    fn what_an_extended_dispatch_waits_for_becomes_a_packet() {
        assert_eq!(split_dependency(&extended(0)), None);
        let mut plain = packet(PacketType::KERNEL_DISPATCH);
        plain.0[12] = 1; // reserved there
        assert_eq!(split_dependency(&plain), None);
        let [wait, kernel] = split_dependency(&extended(0x1_0000_0010)).unwrap();
        assert_eq!(kernel, extended(0));
        let mut expected = [0u32; 16];
        expected[0] = 0x0103; // barrier-AND with the kernel's barrier bit
        (expected[2], expected[3]) = (0x10, 1);
        assert_eq!(wait.0, expected);
        assert!(may_block(&wait));
    }
}
