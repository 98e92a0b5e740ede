//! Each dword of a counter program matters, or stands on a list with its reason.

use std::time::Duration;

use wavescope_core::AqlPacket;
use wavescope_pm4::{CounterPart, Decoder, Generation, GrbmGfxIndex, Packet, RegisterMap, RegisterName};

use crate::rig::stream::{Loaded, Recorded};
use crate::rig::{Rig, dispatch, within_time};

/// A packet of one dword that does nothing.
const NOP: u32 = 0x8000_0000;

/// Where memory lies, so that no address is by chance a NOP.
const HOME: u64 = 0x3100_0100_0000;

/// What a program came to.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The output buffer.
    Values(Vec<u32>),
    /// The queue stopped.
    Stopped,
}

/// What an output dword holds before anything is written.
const UNWRITTEN: u32 = 0xA5A5_A5A5;

/// Dispatches between start and read, from a seed.
fn kernels(rig: &Rig, seed: u32) -> Vec<AqlPacket> {
    let kernel = rig.kernel(3);
    let mut state = seed;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    (0..20)
        .map(|_| {
            let (groups, size) = (1 + next(13), 64 * (1 + next(8)));
            dispatch(kernel, [groups * size, 1, 1], [size as u16, 1, 1], 0)
        })
        .collect()
}

/// XCC, then engine, array and WGP; the latter two are 0 where the engine has one sequencer.
type Sequencer = (u8, (u8, u8, u8));

/// A seed with which a sequencer runs another number of waves than those that a wrong selection shows instead: the one
/// read before it, the first of its XCC, the same one of the last XCC.
fn telling_seed(recorded: &Recorded) -> u32 {
    let tells = |&seed: &u32| {
        let rig = Rig::new(recorded.config());
        let mut queue = rig.queue(64);
        queue.submit(&kernels(&rig, seed));
        let done = rig.signal(1);
        queue.submit(&[crate::rig::barrier(wavescope_core::PacketType::BARRIER_AND, &[], done)]);
        rig.wait(done, 0);
        let gfx9 = recorded.config().target.generation() == Generation::Gfx9;
        let mut counts = std::collections::BTreeMap::new();
        for wave in rig.waves() {
            let unit = if gfx9 { (0, 0) } else { (wave.sa, wave.cu / 2) };
            *counts.entry((wave.xcc, (wave.se, unit.0, unit.1))).or_insert(0) += 1;
        }
        let counts: Vec<(Sequencer, i32)> = counts.into_iter().collect();
        let last = counts[counts.len() - 1].0.0;
        counts.iter().enumerate().all(|(index, &((xcc, unit), count))| {
            let shown_instead = |&(place, other): &(Sequencer, i32)| {
                let first = place == (xcc, counts[0].0.1) && unit != place.1;
                let same_of_last = place == (last, unit) && xcc != last;
                (first || same_of_last) && other == count
            };
            (index == 0 || counts[index - 1].1 != count) && !counts.iter().any(shown_instead)
        })
    };
    (1..2_000).find(tells).unwrap_or_else(|| panic!("{}: no seed keeps the sequencers apart", recorded.name))
}

fn run(recorded: &Recorded, seed: u32, change: impl Fn(&Rig, &Loaded)) -> Outcome {
    let rig = recorded.rig_at(HOME);
    let loaded = recorded.load(&rig);
    let dwords = loaded.sizes[0] / 4;
    (0..dwords).for_each(|dword| rig.arena().store_u32(loaded.bases[0] + 4 * dword, UNWRITTEN));
    change(&rig, &loaded);
    let signal = rig.signal(1);
    let mut queue = rig.queue(64);
    queue.submit(&[loaded.packet("start", 0)]);
    queue.submit(&kernels(&rig, seed));
    queue.submit(&[loaded.packet("read", signal)]);
    let stopped = || !rig.host.errors.lock().unwrap().is_empty();
    assert!(
        within_time(Duration::from_secs(20), || stopped() || rig.value(signal) == 0),
        "neither ended nor stopped"
    );
    if stopped() { Outcome::Stopped } else { Outcome::Values(rig.arena().dwords(loaded.bases[0], dwords)) }
}

/// Why replacing this dword of a packet by a NOP may change nothing.
fn excuse(map: &RegisterMap, packet: &Packet<'_>, dword: usize) -> Option<&'static str> {
    match packet {
        Packet::CopyData(copy) if matches!(dword, 2 | 3) => {
            let register = map.counter(copy.source as u32)?;
            (register.part == CounterPart::Hi)
                .then_some("reads the upper half of a small count, and no register is 0 too")
        }
        Packet::PredExec(pred) if pred.xcc_mask() == 0x80 => {
            Some("lets all XCCs write one place, where the last one's data stay: these")
        }
        Packet::EventWrite(_) => Some("orders work that is in order already"),
        Packet::AcquireMem(_) => Some("orders memory that is coherent already"),
        Packet::SetRegs(set) => match (map.fixed(set.register()), set.values) {
            (Some(RegisterName::GrbmGfxIndex), _) if selects_first(map, set.values[0]) => {
                Some("selects copy 0, which a broadcast index shows too")
            }
            (Some(RegisterName::CpPerfmonCntl), [0]) => Some("clears what is clear or will be cleared again"),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a read with this index shows the same copy as a read with all indices broadcast.
fn selects_first(map: &RegisterMap, value: u32) -> bool {
    let index = GrbmGfxIndex::decode(map.generation(), value);
    [index.se, index.sa, index.instance].iter().all(|part| part.unwrap_or(0) == 0)
}

/// Replaces each dword of a buffer and returns how many of how many changed the result.
fn mutate(recorded: &Recorded, seed: u32, buffer: &str, expected: &Outcome) -> (usize, usize) {
    let rig = Rig::new(recorded.config());
    let dwords = recorded.load(&rig).buffer(buffer).dwords.clone();
    let map = RegisterMap::new(recorded.config().target, recorded.config().bases);
    let mut seen = 0;
    for located in Decoder::new(&dwords).map(Result::unwrap) {
        let length = 2 + (located.header >> 16 & 0x3FFF) as usize;
        for dword in located.offset..located.offset + length {
            let mutant = run(recorded, seed, |rig, loaded| {
                let address = loaded.buffer(buffer).address + 4 * dword as u64;
                assert_ne!(rig.arena().load_u32(address), NOP, "{buffer} dword {dword} stays what it is");
                rig.arena().store_u32(address, NOP);
            });
            let silent = mutant == *expected;
            assert!(
                !silent || excuse(&map, &located.packet, dword - located.offset).is_some(),
                "{}: {buffer} dword {dword} of {:?} changes nothing in {expected:?}",
                recorded.name,
                located.packet
            );
            seen += usize::from(!silent);
        }
    }
    (seen, dwords.len())
}

/// Every dword of start and read matters or is excused.
fn check(target: &str) {
    let recorded = Recorded::own(target, "pmc-mix-grbm-sq.json");
    let seed = telling_seed(&recorded);
    let expected = run(&recorded, seed, |_, _| {});
    assert!(matches!(expected, Outcome::Values(_)));
    for buffer in ["start", "read"] {
        let (seen, all) = mutate(&recorded, seed, buffer, &expected);
        println!("{target} {buffer}: {seen} of {all} dwords matter");
        assert!(seen * 2 > all, "{target} {buffer}: {seen} of {all}");
    }
}

#[test]
fn every_dword_matters_on_gfx90a() {
    check("gfx90a");
}

#[test]
fn every_dword_matters_on_gfx942() {
    check("gfx942");
}

#[test]
fn every_dword_matters_on_gfx950() {
    check("gfx950");
}

#[test]
fn every_dword_matters_on_gfx1100() {
    check("gfx1100");
}

#[test]
fn every_dword_matters_on_gfx1201() {
    check("gfx1201");
}
