//! The vendor-specific AQL packet whose body is a PM4 INDIRECT_BUFFER.
//!
//! Layout: ROCm/rocm-systems `projects/aqlprofile/src/core/amd_aql_pm4_ib_packet.h`.

use wavescope_core::AqlPacket;
use wavescope_pm4::{Generation, IndirectBuffer, Packet};

/// `pm4_ib_format` in the upper half of dword 0.
const FORMAT_PM4_IB: u32 = 1 << 16;
/// `dw_count_remain`: dwords of the packet after this one.
const DWORDS_REMAINING: u32 = 10;

/// A packet that runs `dwords` dwords at `address`. Header and completion signal are 0, the caller's to set.
pub(crate) fn carrier(generation: Generation, address: u64, dwords: u32) -> AqlPacket {
    let mut body = Vec::with_capacity(4);
    Packet::IndirectBuffer(IndirectBuffer::new(generation, address, dwords)).encode(&mut body);
    let mut packet = [0; 16];
    packet[0] = FORMAT_PM4_IB;
    packet[1..5].copy_from_slice(&body);
    packet[5] = DWORDS_REMAINING;
    AqlPacket(packet)
}
