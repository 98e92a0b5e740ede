//! Every stream, for agents and sets that no golden has, is well formed and stays in its program's memory.

#![expect(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a failed check fails the test")]

mod support;

use std::sync::Arc;

use proptest::prelude::*;
use support::TestMemory;
use wavescope_aql_profile::{
    AgentShape, Builtin, Error, Event, Memory, PacketPrograms, TraceConfig, TraceParameter,
};
use wavescope_core::AqlPacket;
use wavescope_pm4::{
    Decoder, IndirectBuffer, IpBases, Opcode, Packet, RegisterMap, RegisterName, SetRegs, Target,
};

/// Chips, whole or as a partition. Harvesting leaves any number of compute units, so arrays differ.
fn agents() -> impl Strategy<Value = AgentShape> {
    let shapes = prop_oneof![
        (
            prop_oneof![Just("gfx906"), Just("gfx908"), Just("gfx90a"), Just("gfx900")],
            Just(1u32),
            1u32..9,
            Just(1u32)
        ),
        (prop_oneof![Just("gfx942"), Just("gfx950")], 1u32..9, 1u32..5, Just(1u32))
            .prop_map(|(gfx, xcc, per_xcc, sa)| (gfx, xcc, per_xcc * xcc, sa)),
        (
            prop_oneof![Just("gfx1030"), Just("gfx1100"), Just("gfx1102"), Just("gfx1200"), Just("gfx1201")],
            Just(1u32),
            1u32..7,
            1u32..3
        ),
    ];
    let harvested = any::<prop::sample::Index>();
    (shapes, 2u32..21, harvested, any::<bool>(), 0u32..8).prop_map(
        |((gfx, xcc, se, sa), cus, off, moved, by)| {
            let harvested = off.index((se * sa) as usize) as u32;
            let mut agent = AgentShape::new(gfx, xcc, se, cus * se * sa - harvested, sa);
            if moved {
                let gc = [0x1260 + 0x20 * by, 0xA000 + 0x100 * by, 0x1_C000, 0x240_2C00];
                agent.bases = Some(IpBases::new(&gc, &[0xC00 + 0x10 * by]));
            }
            agent
        },
    )
}

/// Events of blocks that the agent has, with instances that exist.
fn events(agent: &AgentShape) -> impl Strategy<Value = Vec<Event>> + use<> {
    let blocks = Target::from_gfxip(&agent.gfxip).map_or(&[][..], Target::blocks);
    let event =
        (0..blocks.len(), any::<prop::sample::Index>(), 0u32..512).prop_map(move |(at, index, id)| {
            let block = &blocks[at];
            Event::new(block.id, id).with_instance(index.index(block.instances as usize) as u32)
        });
    proptest::collection::vec(event, 1..12)
}

fn map(agent: &AgentShape) -> RegisterMap {
    let chip = agent.chip().expect("a possible agent");
    RegisterMap::new(chip.target, chip.bases)
}

/// Follows a packet to its commands and checks all of them.
fn check_packet(packet: &AqlPacket, memory: &TestMemory, map: &RegisterMap) {
    assert_eq!(packet.0[0], 1 << 16, "header and format");
    let carried: Vec<_> = Decoder::new(&packet.0[1..5]).collect::<Result<_, _>>().unwrap();
    let Packet::IndirectBuffer(buffer) = carried[0].packet else { panic!("{carried:?}") };
    assert!(buffer.is_valid());
    let bytes = u64::from(buffer.dwords()) * 4;
    let (allocation, offset) = memory.around(buffer.address, bytes).expect("commands lie in an allocation");
    assert!(allocation.request.flags.host_access() && allocation.request.flags.device_access());
    let commands = &allocation.bytes[offset as usize..(offset + bytes) as usize];
    let dwords = wavescope_pm4::print::dwords_from_bytes(commands);
    check_stream(&dwords, buffer, memory, map);
}

fn check_stream(dwords: &[u32], buffer: IndirectBuffer, memory: &TestMemory, map: &RegisterMap) {
    let in_memory = |address: u64, bytes: u64| {
        let found = memory.around(address, bytes);
        assert!(found.is_some(), "{address:#x} + {bytes:#x} in {buffer:?} is outside every allocation");
    };
    let packets: Vec<_> = Decoder::new(dwords).collect::<Result<_, _>>().expect("well formed");
    let starts: Vec<_> = packets.iter().map(|located| located.offset).chain([dwords.len()]).collect();
    for located in &packets {
        match located.packet {
            Packet::SetRegs(set) => check_registers(set, map),
            Packet::CopyData(copy) => {
                if copy.control.source().is_memory() {
                    in_memory(copy.source, copy.control.bytes().into());
                }
                if copy.control.destination().is_memory() {
                    in_memory(copy.destination, copy.control.bytes().into());
                }
                if copy.control.source().is_register() {
                    let local = (copy.source & 0x3FFF_FFFF) as u32;
                    assert!(map.name(local).is_some(), "{copy:?} reads no known register");
                }
            }
            // The last unit of 256 bytes may reach past the end of a buffer, whose pages it shares.
            Packet::AcquireMem(acquire) => in_memory(acquire.address(), 1),
            Packet::PredExec(predicate) => {
                let end = located.offset + 2 + predicate.dwords() as usize;
                assert!(starts.contains(&end), "{predicate:?} ends inside a packet");
                assert_eq!(predicate.xcc_mask().count_ones(), 1);
            }
            Packet::EventWrite(_) | Packet::WaitRegMem(_) => {}
            Packet::IndirectBuffer(_) | Packet::Unknown(_) => panic!("{located:?} is never emitted"),
        }
    }
}

fn check_registers(set: SetRegs<'_>, map: &RegisterMap) {
    for (address, _) in set.writes() {
        assert!(map.name(address).is_some(), "{set:?} writes no known register");
    }
    if set.space.opcode() == Opcode::SET_SH_REG {
        let enables = [RegisterName::ComputePerfcountEnable, RegisterName::ComputeThreadTraceEnable];
        assert!(enables.iter().any(|name| map.address(*name) == Some(set.register())));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn counter_streams_stay_in_their_memory(
        (agent, events) in agents().prop_flat_map(|agent| { let events = events(&agent); (Just(agent), events) }),
    ) {
        let program = match Builtin.counters(&agent, &events) {
            Ok(program) => program,
            // A set may ask too much of one block; nothing else may be wrong with it.
            Err(Error::TooManyCounters { .. } | Error::NoCounterRegisters { .. }) => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let recorder = Arc::new(TestMemory::default());
        let memory: Arc<dyn Memory> = Arc::clone(&recorder) as Arc<dyn Memory>;
        let instance = program.instance(&memory).unwrap();
        let sibling = instance.sibling().unwrap();
        let map = map(&agent);
        for one in [&instance, &sibling] {
            for packet in [one.start(), one.read(), one.stop()] {
                check_packet(&packet, &recorder, &map);
            }
        }
        let slots = instance.output().1 / 8;
        prop_assert!(program.samples().iter().all(|sample| u64::from(sample.slot) < slots));
        prop_assert!(instance.output().0 != sibling.output().0);
        drop((instance, sibling));
        prop_assert_eq!(recorder.living(), 0);
    }

    #[test]
    fn trace_streams_stay_in_their_memory(
        agent in agents(), mask in 1u32..=u32::MAX, target in 0u32..16, simd in any::<u32>(),
        megabytes in 1u64..2000, occupancy in any::<bool>(), timestamps in any::<bool>(), counters in 0u32..9,
    ) {
        let mut parameters = vec![
            TraceParameter::se_mask(mask),
            TraceParameter::target(target),
            TraceParameter::simd_selection(simd),
            TraceParameter::occupancy_mode(occupancy),
            TraceParameter::rt_timestamp(timestamps),
            TraceParameter::perfcounter_ctrl(5),
        ];
        parameters.extend(TraceParameter::buffer_size(megabytes << 20));
        parameters.extend((0..counters).map(|id| TraceParameter::perfcounter(id, 0xF)));
        let program = match Builtin.trace(&agent, &TraceConfig::from(parameters)) {
            Ok(program) => program,
            Err(Error::TraceBufferSize { .. }) => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let layout = program.layout();
        let end = layout.engines.iter().map(|engine| engine.offset + engine.capacity).max();
        prop_assert!(end <= Some(layout.data_bytes), "{layout:?}");
        let recorder = Arc::new(TestMemory::default());
        let memory: Arc<dyn Memory> = Arc::clone(&recorder) as Arc<dyn Memory>;
        let instance = program.instance(&memory).unwrap();
        for packet in [instance.start(), instance.stop()] {
            check_packet(&packet, &recorder, &map(&agent));
        }
        drop(instance);
        prop_assert_eq!(recorder.living(), 0);
    }

    #[test]
    fn several_buffers_stay_in_their_memory(agent in agents(), se in 0u32..8, buffers in 2u32..8) {
        let mut config = TraceConfig::from(vec![TraceParameter::se_mask(1 << se)]);
        config.buffers = buffers;
        let has_rings = agent.gfxip.starts_with("gfx9") || agent.gfxip.starts_with("gfx12");
        let program = match Builtin.trace(&agent, &config) {
            Ok(program) => program,
            Err(Error::TraceBuffers { .. }) => {
                prop_assert!(!has_rings || se >= agent.se);
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert!(has_rings && se < agent.se);
        let recorder = Arc::new(TestMemory::default());
        let memory: Arc<dyn Memory> = Arc::clone(&recorder) as Arc<dyn Memory>;
        let mut instance = program.instance(&memory).unwrap();
        prop_assert_eq!(instance.data().len(), buffers as usize);
        let packets = instance.buffer_packets(se).unwrap();
        prop_assert!((packets.swaps.len() as u32).is_multiple_of(buffers));
        let all = [instance.start(), instance.stop(), packets.query];
        for packet in all.iter().chain(&packets.swaps) {
            check_packet(packet, &recorder, &map(&agent));
        }
        drop(instance);
        prop_assert_eq!(recorder.living(), 0);
    }
}
