//! Waves that a decoded trace shows, and those that the placement log has, in the same terms.

use wavescope_att_decode::{CodeObjects, Decoder, EventKind, Options, Pc, Record};
use wavescope_core::Agent;

use crate::PlacedWave;

/// A wave's place on its shader engine: unit (with the shader array as on the wire), SIMD, slot.
pub type Place = (u8, u8, u8);

/// What one shader engine's trace shows.
#[derive(Debug, Default)]
pub struct Decoded {
    /// Starts anywhere on the engine, in stream order: shader clock and place.
    pub starts: Vec<(u64, Place)>,
    /// Kernel entries of these starts.
    pub entries: Vec<Pc>,
    /// Ends likewise.
    pub ends: Vec<(u64, Place)>,
    /// Waves of the unit in detail, with their starts.
    pub waves: Vec<(u64, Place)>,
    /// Ids of code objects that were announced.
    pub code_objects: Vec<u64>,
    /// Frequencies of the real-time clock that were stated, in Hz.
    pub frequencies: Vec<u64>,
}

/// Decodes the bytes of one engine; they must be whole.
pub fn decode(data: &[u8]) -> Decoded {
    let mut decoded = Decoded::default();
    let mut decoder = Decoder::new(CodeObjects::new(), Options::default());
    let outcome = decoder.decode(data, &mut |record: Record<'_>| match record {
        Record::Occupancy(records) => {
            for record in records {
                let change = (record.time, (record.cu, record.simd, record.wave_id));
                if record.is_start() {
                    decoded.starts.push(change);
                    decoded.entries.push(record.pc);
                } else {
                    decoded.ends.push(change);
                }
            }
        }
        Record::Wave(wave) => {
            decoded.waves.push((wave.begin_time as u64, (wave.cu, wave.simd, wave.wave_id)));
        }
        Record::Event(event) if event.kind == EventKind::CodeObjectLoad => {
            decoded.code_objects.push(event.payload);
        }
        Record::RtFrequency(frequency) => decoded.frequencies.push(frequency),
        Record::Loss(loss) => panic!("a trace that was not full lost data: {loss:?}"),
        _ => {}
    });
    outcome.expect("a whole trace");
    decoded
}

/// The waves of `all` on shader engine `engine`, counted over all XCCs, in order of their starts.
pub fn on_engine(agent: &Agent, all: &[PlacedWave], engine: u32) -> Vec<PlacedWave> {
    let per_xcc = agent.shader_engines / agent.xcc_count;
    let here = |wave: &&PlacedWave| wave.xcc * per_xcc + wave.se == engine;
    let mut waves: Vec<_> = all.iter().filter(here).copied().collect();
    waves.sort_by_key(|wave| wave.start);
    waves
}

/// A placed wave's place as a decoded trace names it: from gfx10 on, units are WGPs, numbered within their array.
pub fn place(agent: &Agent, wave: &PlacedWave) -> Place {
    let unit = if agent.target.major == 9 { wave.cu } else { wave.sa * 128 + wave.cu / 2 };
    (unit, wave.simd, wave.slot)
}

/// Whether a trace that takes unit `target` in detail, and all SIMDs as far as the chip can, shows a placed wave in detail.
/// From gfx10 on the selection has one array, one WGP and one SIMD (kernel `gc_11_0_0_sh_mask.h`,
/// `SQ_THREAD_TRACE_MASK__SIMD_SEL`), of which the low bits of `0xF` name the last.
pub fn is_detailed(agent: &Agent, target: u8, wave: &PlacedWave) -> bool {
    if agent.target.major == 9 {
        return wave.cu == target;
    }
    (wave.sa, wave.cu / 2, wave.simd) == (0, target, 3)
}
