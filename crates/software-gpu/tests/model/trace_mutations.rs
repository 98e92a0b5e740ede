//! Each packet of a trace program and each of its dwords matters, or stands on a list with its reason.

use std::time::Duration;

use wavescope_core::AqlPacket;
use wavescope_pm4::{
    CopyData, CopySource, Decoder, Generation, GrbmGfxIndex, Packet, RegisterMap, RegisterName,
};

use crate::rig::stream::{Loaded, Recorded};
use crate::rig::{Rig, commands, dispatch, within_time};

/// A packet of one dword that does nothing.
const NOP: u32 = 0x8000_0000;
/// What memory holds before anything is written.
const UNWRITTEN: u32 = 0xA5A5_A5A5;
/// Where memory lies.
const HOME: u64 = 0x3000_0000_0000;
/// Dwords of an engine's part of the data buffer that are looked at.
const LOOKED_AT: u64 = 16384;

/// Far longer than a run takes; a mutant that waits for ever takes all of it.
const PATIENCE: Duration = Duration::from_secs(3);

/// For the runs that nothing keeps from ending.
const LONG: Duration = Duration::from_secs(60);

/// What a program came to.
#[derive(PartialEq, Eq)]
enum Outcome {
    /// The control buffer, and the beginnings of the engines' parts of the data buffer.
    Traced(Vec<u32>, Vec<Vec<u32>>),
    /// The queue stopped.
    Stopped,
    /// It waits for something that does not come.
    Waits,
}

/// v_add_f32; s_nop; s_endpgm.
fn code(generation: Generation) -> [u32; 3] {
    match generation {
        Generation::Gfx9 | Generation::Gfx10 => [0x0200_0300, 0xBF80_0000, 0xBF81_0000],
        Generation::Gfx11 | Generation::Gfx12 => [0x0600_0300, 0xBF80_0000, 0xBFB0_0000],
    }
}

/// Addresses of the engines' parts: equal ones for the engines of the mask, a page for each other one, as the public
/// builder lays them out.
fn parts(recorded: &Recorded, data: u64, size: u64) -> Vec<u64> {
    let enabled =
        |engine: u64| crate::rig::stream::array(&recorded.json["enabled_se"]).contains(&engine.into());
    let count = (0..64).filter(|&engine| enabled(engine)).count() as u64;
    let step = (size - (64 - count) * 4096) / count / 4096 * 4096;
    let mut next = data;
    let engines = u64::from(recorded.config().shader_engines());
    let place = |engine| {
        let place = next;
        next += if enabled(engine) { step } else { 4096 };
        place
    };
    (0..engines).map(place).collect()
}

/// A command buffer that leaves the first engine selected, as others leave the index anywhere.
fn narrow_index(rig: &Rig) -> AqlPacket {
    let address = rig.arena().allocate(64);
    // SET_UCONFIG_REG of GRBM_GFX_INDEX: engine 1, all arrays and instances.
    rig.arena().store_dwords(address, &[0xC001_7900, 0x200, 0x6001_0000]);
    commands(address, 3, 0)
}

/// Two traces of two kernels each, so that what the first leaves behind shows in the second.
fn run(recorded: &Recorded, patience: Duration, change: impl Fn(&Rig, &Loaded)) -> Outcome {
    let rig = recorded.rig_at(HOME);
    let loaded = recorded.load(&rig);
    let parts = parts(recorded, loaded.bases[1], loaded.sizes[1]);
    let control = loaded.sizes[0] / 4;
    (0..control).for_each(|dword| rig.arena().store_u32(loaded.bases[0] + 4 * dword, UNWRITTEN));
    for part in &parts {
        (0..LOOKED_AT / 4).for_each(|dword| rig.arena().store_u32(part + 4 * dword, UNWRITTEN));
    }
    change(&rig, &loaded);
    let kernel = rig.kernel(3);
    rig.arena().store_dwords(kernel + 0x100, &code(recorded.config().target.generation()));
    let mut queue = rig.queue(64);
    let launch = |waves: u32| dispatch(kernel, [waves * 64, 1, 1], [128, 1, 1], 0);
    for waves in [1400, 900] {
        let signal = rig.signal(1);
        queue.submit(&[narrow_index(&rig), launch(6), loaded.packet("start", 0), launch(waves), launch(8)]);
        queue.submit(&[narrow_index(&rig), loaded.packet("stop", signal)]);
        let stopped = || !rig.host.errors.lock().unwrap().is_empty();
        let done = || stopped() || rig.value(signal) == 0;
        if !within_time(patience, done) {
            return Outcome::Waits;
        }
        if stopped() {
            return Outcome::Stopped;
        }
    }
    let data = parts.iter().map(|&part| rig.arena().dwords(part, LOOKED_AT / 4)).collect();
    Outcome::Traced(rig.arena().dwords(loaded.bases[0], control), data)
}

/// Why leaving a packet out may change nothing, where one engine is traced: the first.
fn excuse(map: &RegisterMap, packet: &Packet<'_>) -> Option<&'static str> {
    match packet {
        Packet::EventWrite(_) => Some("orders work that is in order already"),
        Packet::AcquireMem(_) => Some("orders memory that is coherent already"),
        Packet::WaitRegMem(_) => Some("waits for what the model has done by then"),
        Packet::PredExec(pred) if pred.xcc_mask() == 1 => Some("keeps other XCCs out, which trace nothing"),
        Packet::CopyData(copy) => register_excuse(map.fixed(copy.destination as u32)?, copy.source as u32),
        Packet::SetRegs(set) => match map.fixed(set.register())? {
            RegisterName::GrbmGfxIndex => index_excuse(GrbmGfxIndex::decode(map.generation(), set.values[0])),
            name => register_excuse(name, set.values[0]),
        },
        _ => None,
    }
}

/// Why a NOP in the place of one dword of a packet may change nothing.
fn dword_excuse(map: &RegisterMap, packet: &Packet<'_>, dword: usize) -> Option<&'static str> {
    const OFF: u32 = 0;
    let control = |name| name == Some(RegisterName::SqThreadTraceCtrl);
    match packet {
        Packet::SetRegs(set) if control(map.fixed(set.register())) && set.values[0] & 3 == OFF => {
            Some("turns the trace off, as the NOP's lowest bits do")
        }
        Packet::CopyData(copy) => copy_excuse(map, copy, dword),
        _ => None,
    }
}

fn copy_excuse(map: &RegisterMap, copy: &CopyData, dword: usize) -> Option<&'static str> {
    let to_control = map.fixed(copy.destination as u32) == Some(RegisterName::SqThreadTraceCtrl);
    let name = map.fixed(copy.source as u32);
    match (copy.control.source(), dword) {
        (CopySource::GPU_CLOCK, 2 | 3) => Some("the clock has no address"),
        (CopySource::IMMEDIATE, 1 | 2) if to_control && copy.source & 3 == 0 => {
            Some("turns the trace off, as the NOP's lowest bits do, or an unknown register's")
        }
        (CopySource::IMMEDIATE, 3) => Some("the upper half of a value of which one dword is copied"),
        (CopySource::MEMORY, 1 | 2) if copy.source % 8 == 4 => {
            Some("the clock's upper half is 0 so early, as is an unknown register")
        }
        (source, 2 | 3) if source.is_register() && name != Some(RegisterName::SqThreadTraceWptr) => {
            Some("nothing went wrong: the register is 0, as is an unknown one")
        }
        _ => None,
    }
}

fn index_excuse(index: GrbmGfxIndex) -> Option<&'static str> {
    match index.se {
        None => Some("what follows concerns the traced engine only, which is still selected"),
        Some(0) => Some("copy 0 is what a broadcast index shows"),
        // Not in the mask.
        Some(_) => Some("reads an engine that traces nothing, as the one before"),
    }
}

fn register_excuse(name: RegisterName, value: u32) -> Option<&'static str> {
    match (name, value) {
        (RegisterName::SqThreadTraceStatus, 0) => Some("clears what is clear"),
        (RegisterName::SqThreadTraceMode, 0x0204_0000) => Some("turns off what is off"),
        (RegisterName::SqThreadTraceHiwater, _) => Some("says when to stall, which the model never does"),
        (RegisterName::SqThreadTraceCtrl, 0x8000_0000) => Some("start and stop both reset the buffer"),
        (RegisterName::SqThreadTraceSize, 0) => Some("the next start gives the size anew"),
        (RegisterName::ComputeThreadTraceEnable, 0) => {
            Some("nothing runs between it and the end of the trace")
        }
        (RegisterName::SpiSqgEventCtl, _) => Some("lets events through that the model always reports"),
        (RegisterName::SqThreadTraceWptr, 0) => Some("the pointer of an engine that traces nothing stays 0"),
        _ => None,
    }
}

/// Leaves out each packet, and each of its dwords; returns how many of how many changed the result.
fn mutate(recorded: &Recorded, buffer: &str, expected: &Outcome) -> (usize, usize) {
    let rig = Rig::new(recorded.config());
    let dwords = recorded.load(&rig).buffer(buffer).dwords.clone();
    let map = RegisterMap::new(recorded.config().target, recorded.config().bases);
    let (mut seen, mut all) = (0, 0);
    for located in Decoder::new(&dwords).map(Result::unwrap) {
        let length = 2 + (located.header >> 16 & 0x3FFF) as usize;
        let whole = std::iter::once(0..length);
        for left_out in whole.chain((0..length).map(|dword| dword..dword + 1)) {
            let mutant = run(recorded, PATIENCE, |rig, loaded| {
                let address = loaded.buffer(buffer).address + 4 * (located.offset + left_out.start) as u64;
                rig.arena().store_dwords(address, &vec![NOP; left_out.len()]);
            });
            let silent = mutant == *expected;
            let of_dword = || dword_excuse(&map, &located.packet, left_out.start);
            let excused = excuse(&map, &located.packet).or_else(|| (left_out.len() == 1).then(of_dword)?);
            assert!(
                !silent || excused.is_some(),
                "{}: {buffer}, dword {}: leaving out {left_out:?} of {:?} changes nothing",
                recorded.name,
                located.offset,
                located.packet
            );
            seen += usize::from(!silent);
            all += 1;
        }
    }
    (seen, all)
}

fn check(target: &str) {
    let recorded = Recorded::own(target, "att-se-mask-1.json");
    let expected = run(&recorded, LONG, |_, _| {});
    assert!(matches!(expected, Outcome::Traced(..)));
    assert!(expected == run(&recorded, LONG, |_, _| {}), "two runs differ");
    for buffer in ["start", "stop"] {
        let (seen, all) = mutate(&recorded, buffer, &expected);
        println!("{target} {buffer}: {seen} of {all} packets and dwords matter");
        assert!(seen * 3 > all, "{target} {buffer}: {seen} of {all}");
    }
}

#[test]
fn every_packet_matters_on_gfx90a() {
    check("gfx90a");
}

#[test]
fn every_packet_matters_on_gfx942() {
    check("gfx942");
}

#[test]
fn every_packet_matters_on_gfx950() {
    check("gfx950");
}

#[test]
fn every_packet_matters_on_gfx1030() {
    check("gfx1030");
}

#[test]
fn every_packet_matters_on_gfx1100() {
    check("gfx1100");
}

#[test]
fn every_packet_matters_on_gfx1201() {
    check("gfx1201");
}
