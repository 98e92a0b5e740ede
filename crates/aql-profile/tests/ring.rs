//! Several trace buffers: what the packets write, and which buffer is read when.
//!
//! No golden exists for them; the expectations are the rules of upstream's later sources (ROCm/rocm-systems, develop:
//! `projects/aqlprofile/src/core/threadtrace.cpp`, `src/pm4/sqtt_builder.cpp`).

#![expect(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a failed check fails the test")]

mod support;

use std::sync::Arc;

use support::TestMemory;
use wavescope_aql_profile::{
    AgentShape, Builtin, Error, Memory, PacketPrograms, Status, TraceConfig, TraceInstance, TraceParameter,
};
use wavescope_core::AqlPacket;
use wavescope_pm4::{Decoder, Packet, RegisterMap, RegisterName, Target};

/// Bytes of an engine's record; offsets of its status, STATUS2 and the polled status.
const RECORD: u64 = 40;
const POLLED: u64 = 32;

struct Ring {
    memory: Arc<TestMemory>,
    instance: Box<dyn TraceInstance>,
    map: RegisterMap,
    se: u32,
}

fn ring(agent: &AgentShape, se: u32, buffers: u32) -> Ring {
    let mut parameters = vec![TraceParameter::se_mask(1 << se)];
    parameters.extend(TraceParameter::buffer_size(1 << 20));
    let program = Builtin.trace(agent, &TraceConfig { parameters, buffers }).unwrap();
    let recorder = Arc::new(TestMemory::default());
    let memory: Arc<dyn Memory> = Arc::clone(&recorder) as Arc<dyn Memory>;
    let instance = program.instance(&memory).unwrap();
    let map = RegisterMap::with_fixed_bases(Target::from_gfxip(&agent.gfxip).unwrap());
    Ring { memory: recorder, instance, map, se }
}

impl Ring {
    fn commands(&self, packet: &AqlPacket) -> Vec<u32> {
        let carried = Decoder::new(&packet.0[1..5]).next().unwrap().unwrap();
        let Packet::IndirectBuffer(buffer) = carried.packet else { panic!("{carried:?}") };
        let bytes = u64::from(buffer.dwords()) * 4;
        let (allocation, offset) = self.memory.around(buffer.address, bytes).unwrap();
        wavescope_pm4::print::dwords_from_bytes(&allocation.bytes[offset as usize..(offset + bytes) as usize])
    }

    /// Every register write of a packet's commands, in order.
    fn writes(&self, packet: &AqlPacket) -> Vec<(RegisterName, u32)> {
        let mut writes = Vec::new();
        for located in Decoder::new(&self.commands(packet)) {
            match located.unwrap().packet {
                Packet::SetRegs(set) => writes.extend(set.writes()),
                Packet::CopyData(copy) if copy.control.destination().is_register() => {
                    writes.push((copy.destination as u32, copy.source as u32));
                }
                _ => {}
            }
        }
        writes.into_iter().filter_map(|(address, value)| Some((self.map.fixed(address)?, value))).collect()
    }

    /// The values written to one register.
    fn values(&self, packet: &AqlPacket, name: RegisterName) -> Vec<u32> {
        self.writes(packet)
            .into_iter()
            .filter(|(written, _)| *written == name)
            .map(|(_, value)| value)
            .collect()
    }

    /// Addresses of the buffers in ring order: the further ones, then the first.
    fn order(&self) -> Vec<u64> {
        let mut data: Vec<_> = self.instance.data().into_iter().map(|(address, _)| address).collect();
        data.rotate_left(1);
        data
    }

    fn poll(&self, status: u32) {
        let record = self.instance.control().0 + RECORD * u64::from(self.se);
        self.memory.copy_in(record + POLLED, &status.to_le_bytes());
    }
}

fn page(address: u64) -> u32 {
    (address >> 12) as u32
}

#[test]
fn gfx9_start_hands_over_two_buffers_and_wraps() {
    let ring = ring(&AgentShape::new("gfx942", 8, 32, 304, 1), 5, 3);
    let start = ring.instance.start();
    let order = ring.order();
    let bases = ring.values(&start, RegisterName::SqThreadTraceBase);
    assert_eq!(bases, [page(order[2]), page(order[0])], "the first buffer, then the ring's next");
    let modes = ring.values(&start, RegisterName::SqThreadTraceMode);
    assert_eq!(modes, [0x0204_0000, 0x8224_0000]);
    let sizes = ring.values(&start, RegisterName::SqThreadTraceSize);
    assert_eq!(sizes, [(1 << 20) >> 12], "the engine has the whole buffer");
}

#[test]
fn gfx12_start_sets_double_buffer_and_programs_one_engine() {
    let ring = ring(&AgentShape::new("gfx1201", 1, 4, 64, 2), 2, 4);
    let start = ring.instance.start();
    let order = ring.order();
    assert_eq!(ring.values(&start, RegisterName::SqThreadTraceBuf0BaseLo), [page(order[3])]);
    assert_eq!(ring.values(&start, RegisterName::SqThreadTraceBuf1BaseLo), [page(order[0])]);
    assert_eq!(ring.values(&start, RegisterName::SqThreadTraceCtrl), [0xA040_5941 | 1 << 5]);
    assert_eq!(ring.values(&ring.instance.stop(), RegisterName::SqThreadTraceCtrl), [0xA040_5940]);
    let selected = ring.values(&start, RegisterName::GrbmGfxIndex);
    assert!(selected.contains(&0x4002_0000), "{selected:x?}");
    assert!(!selected.contains(&0x4000_0000), "engines that are not traced are left alone");
}

#[test]
fn gfx12_swaps_alternate_between_the_two_buffer_registers() {
    let mut ring = ring(&AgentShape::new("gfx1201", 1, 4, 64, 2), 0, 4);
    let packets = ring.instance.buffer_packets(0).unwrap();
    let order = ring.order();
    assert_eq!((packets.swaps.len(), packets.header), (4, 0));
    for (at, swap) in packets.swaps.iter().enumerate() {
        let name = [RegisterName::SqThreadTraceBuf0BaseLo, RegisterName::SqThreadTraceBuf1BaseLo][at % 2];
        let other = [RegisterName::SqThreadTraceBuf1BaseLo, RegisterName::SqThreadTraceBuf0BaseLo][at % 2];
        assert_eq!(ring.values(swap, name), [page(order[(at + 1) % 4])]);
        assert_eq!(ring.values(swap, other), []);
    }
}

#[test]
fn an_odd_ring_is_turned_twice_except_on_the_first_gfx9_parts() {
    for (gfxip, swaps) in [("gfx906", 3), ("gfx90a", 6), ("gfx1201", 6)] {
        let mut ring = ring(&AgentShape::new(gfxip, 1, 4, 60, 1), 1, 3);
        assert_eq!(ring.instance.buffer_packets(1).unwrap().swaps.len(), swaps, "{gfxip}");
    }
}

#[test]
fn full_buffers_are_handed_out_in_the_order_in_which_they_are_written() {
    let mut ring = ring(&AgentShape::new("gfx1201", 1, 4, 64, 2), 1, 3);
    let order = ring.order();
    assert!(!ring.instance.buffer_status(1).unwrap().needs_swap);
    // Written in turn: the first buffer, then the ring from its start.
    let written = [order[2], order[0], order[1], order[2], order[0]];
    for (swaps, buffer) in (0..).zip(written) {
        ring.poll(1 << (swaps % 2));
        let status = ring.instance.buffer_status(1).unwrap();
        assert!(status.needs_swap && !status.is_too_late);
        assert_eq!((status.swaps, status.data, status.bytes), (swaps, buffer, 1 << 20));
    }
    ring.poll(1 << 4 | 3);
    assert!(ring.instance.buffer_status(1).unwrap().is_too_late);
}

#[test]
fn gfx9_reads_fullness_from_its_status() {
    let mut ring = ring(&AgentShape::new("gfx90a", 1, 8, 104, 1), 3, 2);
    ring.poll(3);
    assert!(!ring.instance.buffer_status(3).unwrap().needs_swap, "bits 0 and 1 are STATUS2's on gfx12");
    ring.poll(1 << 31);
    assert!(ring.instance.buffer_status(3).unwrap().needs_swap);
    let header = ring.instance.buffer_packets(3).unwrap().header;
    assert_eq!(header, 0x11 | 4 << 13 | 0xF << 16 | 3 << 26 | 1 << 32);
}

#[test]
fn the_last_buffer_is_read_when_the_trace_ends_and_counting_begins_anew() {
    let mut ring = ring(&AgentShape::new("gfx1201", 1, 4, 64, 2), 0, 2);
    let order = ring.order();
    ring.poll(1);
    ring.instance.buffer_status(0).unwrap();
    // After one swap the engine writes the ring's first entry; 2 units of 32 bytes are in it.
    ring.memory.copy_in(order[0], &[0xAB; 64]);
    ring.memory.copy_in(ring.instance.control().0 + 8, &2u32.to_le_bytes());
    let mut handed = Vec::new();
    let status = ring.instance.iterate(&mut |se, bytes| handed.push((se, bytes.to_vec())));
    assert_eq!((status, handed), (Status::SUCCESS, vec![(0, vec![0xAB; 64])]));
    let status = ring.instance.buffer_status(0).unwrap();
    assert_eq!((status.swaps, status.data), (0, order[1]));
}

#[test]
fn the_rings_memory_and_commands_are_freed_with_the_instance() {
    let mut ring = ring(&AgentShape::new("gfx942", 8, 32, 304, 1), 31, 4);
    ring.instance.buffer_packets(31).unwrap();
    // Control, four buffers, start and stop, four swaps, a query.
    assert_eq!(ring.memory.living(), 1 + 4 + 1 + 4 + 1);
    drop(ring.instance);
    assert_eq!(ring.memory.living(), 0);
}

#[test]
fn rings_are_refused_where_the_hardware_has_none() {
    let refused = |gfxip: &str, mask: u32| {
        let agent = AgentShape::new(gfxip, 1, 4, 60, 1);
        let config = TraceConfig { parameters: vec![TraceParameter::se_mask(mask)], buffers: 2 };
        let error = Builtin.trace(&agent, &config).err().expect("refused");
        assert_eq!(error.status(), Status::INVALID_ARGUMENT);
        matches!(error, Error::TraceBuffers { .. })
    };
    assert!(refused("gfx1030", 1) && refused("gfx1100", 1), "gfx10 and gfx11 have one buffer");
    assert!(refused("gfx90a", 3) && refused("gfx90a", 0x10), "one engine must be selected");
    let single = TraceConfig::from(vec![TraceParameter::se_mask(1)]);
    let program = Builtin.trace(&AgentShape::new("gfx90a", 1, 4, 60, 1), &single).unwrap();
    let memory: Arc<dyn Memory> = Arc::new(TestMemory::default());
    let error = program.instance(&memory).unwrap().buffer_packets(0).unwrap_err();
    assert!(matches!(error, Error::NoBufferRing { se: 0 }));
}
