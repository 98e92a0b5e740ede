//! Every word that a trace's start writes into the SQ's thread-trace registers, chip by chip, against a table made from
//! the register fields.
//!
//! Source of the fields: `aqlprofile` 1.0.0 (`ROCm/rocm-systems`, `projects/aqlprofile/src/pm4/sqtt_builder.h` and the
//! register headers beside it).

#![expect(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a failed check fails the test")]

mod support;

use std::sync::Arc;

use support::TestMemory;
use wavescope_aql_profile::{AgentShape, Builtin, Memory, PacketPrograms, TraceConfig, TraceParameter};
use wavescope_core::AqlPacket;
use wavescope_pm4::RegisterName::{
    SqThreadTraceCtrl, SqThreadTraceHiwater, SqThreadTraceMask, SqThreadTraceMode, SqThreadTraceTokenMask,
    SqThreadTraceTokenMask2,
};
use wavescope_pm4::{CopySource, Decoder, Packet, RegisterMap, RegisterName, print};

const WATCHED: [RegisterName; 6] = [
    SqThreadTraceMask,
    SqThreadTraceTokenMask,
    SqThreadTraceTokenMask2,
    SqThreadTraceMode,
    SqThreadTraceHiwater,
    SqThreadTraceCtrl,
];

/// Unit 1, SIMD 2 of engine 0 alone.
fn config(occupancy: bool) -> TraceConfig {
    let mut parameters = vec![
        TraceParameter::target(1),
        TraceParameter::se_mask(1),
        TraceParameter::simd_selection(2),
        TraceParameter::occupancy_mode(occupancy),
    ];
    parameters.extend(TraceParameter::buffer_size(16 << 20));
    TraceConfig::from(parameters)
}

/// What the start writes into the watched registers, in order.
fn words(agent: &AgentShape, config: &TraceConfig) -> Vec<(RegisterName, u32)> {
    let memory = Arc::new(TestMemory::default());
    let instance =
        Builtin.trace(agent, config).unwrap().instance(&(Arc::clone(&memory) as Arc<dyn Memory>)).unwrap();
    let chip = agent.chip().unwrap();
    let map = RegisterMap::new(chip.target, chip.bases);
    let watched =
        |register: u64| WATCHED.into_iter().find(|&name| map.address(name).map(u64::from) == Some(register));
    let mut words = Vec::new();
    for packet in Decoder::new(&commands(&instance.start(), &memory)) {
        match packet.unwrap().packet {
            Packet::SetRegs(set) => {
                words.extend(
                    set.writes().filter_map(|(register, value)| Some((watched(register.into())?, value))),
                );
            }
            Packet::CopyData(copy) if copy.control.destination().is_register() => {
                let Some(name) = watched(copy.destination) else { continue };
                assert_eq!(copy.control.source(), CopySource::IMMEDIATE, "{copy:?}");
                words.push((name, copy.source as u32));
            }
            _ => {}
        }
    }
    drop(instance);
    assert_eq!(memory.living(), 0);
    words
}

fn commands(packet: &AqlPacket, memory: &TestMemory) -> Vec<u32> {
    let Some(Ok(carried)) = Decoder::new(&packet.0[1..5]).next() else { panic!("{packet:?}") };
    let Packet::IndirectBuffer(buffer) = carried.packet else { panic!("{carried:?}") };
    let bytes = buffer.dwords() as usize * 4;
    let (allocation, offset) = memory.around(buffer.address, bytes as u64).unwrap();
    print::dwords_from_bytes(&allocation.bytes[offset as usize..offset as usize + bytes])
}

#[test]
fn gfx9_writes_the_reviewed_words() {
    for (gfx, xcc, se) in [
        ("gfx900", 1, 4),
        ("gfx906", 1, 4),
        ("gfx908", 1, 8),
        ("gfx90a", 1, 8),
        ("gfx942", 8, 32),
        ("gfx950", 8, 32),
    ] {
        let agent = AgentShape::new(gfx, xcc, se, se * 10, 1);
        for (occupancy, tokens) in [(false, 0xF_BC6F), (true, 0xF_906F)] {
            // CU_SEL 1, REG_STALL_EN, SIMD_EN 0b0010, SPI_STALL_EN, SQ_STALL_EN.
            let mask = 1 | 1 << 7 | 2 << 8 | 1 << 14 | 1 << 15;
            // MASK_CS 1, AUTOFLUSH_EN, and MODE 1 while it runs.
            let off = 1 << 18 | 1 << 25;
            let expected = [
                (SqThreadTraceMask, mask),
                (SqThreadTraceTokenMask, tokens),
                (SqThreadTraceMode, off),
                (SqThreadTraceHiwater, 6),
                (SqThreadTraceTokenMask2, u32::MAX),
                (SqThreadTraceCtrl, 1 << 31), // RESET_BUFFER
                (SqThreadTraceMode, off | 1 << 21),
            ];
            assert_eq!(words(&agent, &config(occupancy)), expected, "{gfx}");
        }
    }
}

/// The words of gfx10 and later: mask, tokens of a traced engine in normal and occupancy mode, tokens of another, control.
struct Later {
    chips: &'static [&'static str],
    mask: u32,
    tokens: [u32; 2],
    silent: u32,
    control: u32,
}

/// MODE 1, HIWATER 5, LOWATER_OFFSET 4, AUTO_FLUSH_MODE, DRAW_EVENT_EN.
const CONTROL: u32 = 1 | 5 << 6 | 4 << 20 | 1 << 29 | 1 << 31;

const LATER: [Later; 3] = [
    Later {
        chips: &["gfx1030", "gfx1031", "gfx1036"],
        // SIMD_SEL 2, WGP_SEL 1, WTYPE_INCLUDE compute.
        mask: 2 | 1 << 4 | 1 << 16,
        tokens: [0x0008_0683, 0x0308_07CF],
        silent: 0x0300_07FF,
        // REG_, SPI_ and SQ_STALL_EN, REG_DROP_ON_STALL, UTIL_TIMER, RT_FREQ 2.
        control: CONTROL | 0b1_1111 << 9 | 2 << 16,
    },
    Later {
        chips: &["gfx1100", "gfx1101", "gfx1102"],
        // And EXCLUDE_NONDETAIL_SHADERDATA.
        mask: 2 | 1 << 4 | 1 << 16 | 1 << 17,
        tokens: [0x0C08_0683, 0x0308_07CF],
        silent: 0x0F00_07FF,
        // SPI_ and SQ_STALL_EN, UTIL_TIMER, RT_FREQ 2.
        control: CONTROL | 0b111 << 11 | 2 << 16,
    },
    Later {
        chips: &["gfx1200", "gfx1201"],
        mask: 2 | 1 << 4 | 1 << 16 | 1 << 17,
        tokens: [0x8C1F_4003, 0x0308_07FF],
        silent: 0x1F00_07FF,
        // SPI_ and SQ_STALL_EN, UTIL_TIMER.
        control: CONTROL | 0b1011 << 11,
    },
];

#[test]
fn gfx10_and_later_write_the_reviewed_words() {
    for Later { chips, mask, tokens, silent, control } in &LATER {
        for (gfx, (occupancy, tokens)) in
            chips.iter().flat_map(|gfx| [false, true].into_iter().zip(tokens).map(move |mode| (gfx, mode)))
        {
            let agent = AgentShape::new(gfx, 1, 2, 40, 2);
            let of_engine = |tokens| {
                [(SqThreadTraceMask, *mask), (SqThreadTraceTokenMask, tokens), (SqThreadTraceCtrl, *control)]
            };
            let expected = [of_engine(*tokens), of_engine(*silent)].concat();
            assert_eq!(words(&agent, &config(occupancy)), expected, "{gfx}");
        }
    }
}
