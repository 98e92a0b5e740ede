//! Fields of AQL packets that the processor acts on.
//!
//! Layouts: `hsa_kernel_dispatch_packet_t`, `hsa_barrier_and_packet_t` of `hsa.h`;
//! `hsa_amd_barrier_value_packet_t` of `hsa_ext_amd.h`; the PM4 packet of `amd_hsa_queue.h` users.

use wavescope_core::{AqlPacket, PacketType};
use wavescope_pm4::{Decoder, IndirectBuffer, Packet as Pm4};

use crate::kernel::Geometry;

/// A packet, taken apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Packet {
    Dispatch(KernelDispatch),
    BarrierAnd([u64; 5]),
    BarrierOr([u64; 5]),
    BarrierValue(BarrierValue),
    Commands(IndirectBuffer),
    /// Nothing the processor knows.
    Invalid,
}

/// A kernel dispatch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct KernelDispatch {
    pub(crate) geometry: Geometry,
    pub(crate) group_segment_bytes: u32,
    pub(crate) kernel_object: u64,
}

/// Waits until `(value & mask) condition reference`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarrierValue {
    pub(crate) signal: u64,
    pub(crate) reference: i64,
    pub(crate) mask: i64,
    pub(crate) condition: u32,
}

/// Vendor formats, byte 2 of the packet (`hsa_amd_packet_type8_t`; 1 is the PM4 indirect buffer).
const FORMAT_PM4: u32 = 1;
const FORMAT_BARRIER_VALUE: u32 = 2;

impl Packet {
    pub(crate) fn parse(packet: &AqlPacket) -> Self {
        match packet.header().kind() {
            PacketType::KERNEL_DISPATCH => Self::Dispatch(kernel_dispatch(packet)),
            PacketType::BARRIER_AND => Self::BarrierAnd(dependencies(packet)),
            PacketType::BARRIER_OR => Self::BarrierOr(dependencies(packet)),
            PacketType::VENDOR_SPECIFIC => vendor(packet),
            _ => Self::Invalid,
        }
    }
}

impl BarrierValue {
    /// Whether the signal's value lets the packet pass; `None` for an unknown condition.
    pub(crate) fn passes(&self, value: i64) -> Option<bool> {
        let masked = value & self.mask;
        match self.condition {
            0 => Some(masked == self.reference),
            1 => Some(masked != self.reference),
            2 => Some(masked < self.reference),
            3 => Some(masked >= self.reference),
            _ => None,
        }
    }
}

fn double(packet: &AqlPacket, dword: usize) -> u64 {
    u64::from(packet.0[dword]) | u64::from(packet.0[dword + 1]) << 32
}

fn kernel_dispatch(packet: &AqlPacket) -> KernelDispatch {
    let words = &packet.0;
    KernelDispatch {
        geometry: Geometry {
            grid: [words[3], words[4], words[5]],
            workgroup: [words[1] & 0xFFFF, words[1] >> 16, words[2] & 0xFFFF],
        },
        group_segment_bytes: words[7],
        kernel_object: double(packet, 8),
    }
}

fn dependencies(packet: &AqlPacket) -> [u64; 5] {
    std::array::from_fn(|index| double(packet, 2 + 2 * index))
}

fn vendor(packet: &AqlPacket) -> Packet {
    match packet.0[0] >> 16 & 0xFF {
        FORMAT_PM4 => match Decoder::new(&packet.0[1..]).next() {
            Some(Ok(located)) => match located.packet {
                Pm4::IndirectBuffer(buffer) if buffer.is_valid() => Packet::Commands(buffer),
                _ => Packet::Invalid,
            },
            _ => Packet::Invalid,
        },
        FORMAT_BARRIER_VALUE => Packet::BarrierValue(BarrierValue {
            signal: double(packet, 2),
            reference: double(packet, 4).cast_signed(),
            mask: double(packet, 6).cast_signed(),
            condition: packet.0[8],
        }),
        _ => Packet::Invalid,
    }
}
