//! What a trace of a random program decodes to.

use wavescope_att_decode::{Decoder, Options, Pc, ProgramLine, Record};
use wavescope_isa::{Target, decode};

/// A decoded wave or what the log has of it: begin, place, (PC, category).
pub(crate) type Wave = (i64, (u8, u8, u8), Vec<(u64, u8)>);

/// Waves of a stream; `code` lies at `base`.
pub(crate) fn decode_waves(data: &[u8], target: Target, base: u64, code: &[u8]) -> Vec<Wave> {
    let source = |pc: Pc, _: u32| {
        let offset = usize::try_from(pc.address.checked_sub(base)?).ok()?;
        decode(target, code.get(offset..)?).ok().map(ProgramLine::from_instruction)
    };
    let mut waves = Vec::new();
    let mut decoder = Decoder::new(source, Options::default());
    let outcome = decoder.decode(data, &mut |record: Record<'_>| match record {
        Record::Wave(wave) => {
            let list = wave.instructions.iter().map(|found| (found.pc.address, found.category() as u8));
            waves.push((wave.begin_time, (wave.cu, wave.simd, wave.wave_id), list.collect()));
        }
        Record::Info(info) => panic!("the decoder says {info:?}"),
        Record::Loss(loss) => panic!("{loss:?}"),
        _ => {}
    });
    outcome.unwrap();
    relative(waves)
}

/// Begins relative to the first.
pub(crate) fn relative(mut waves: Vec<Wave>) -> Vec<Wave> {
    waves.sort();
    let first = waves.first().map_or(0, |wave| wave.0);
    waves.iter_mut().for_each(|wave| wave.0 -= first);
    waves
}
