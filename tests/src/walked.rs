//! Instructions of waves: those that a trace decodes to, and those that the placement log says were walked.

use wavescope_att_decode::{CodeObjects, Decoder, Options, Record};
use wavescope_isa::CodeObject;
use wavescope_workload::{Launch, kernels};

use crate::{Bed, Place, PlacedWave, place};

/// A wave: begin, place, (PC, category number) of its instructions. Addresses are absolute.
pub type WalkedWave = (i64, Place, Vec<(u64, u8)>);

/// Loads of the code objects of kernels of the workload: bytes and address, from where their descriptors lie.
pub fn loaded(bed: &Bed, launches: &[Launch]) -> Vec<(&'static [u8], u64)> {
    let target = bed.gpu(0).target();
    let files = [kernels::vectors(target), kernels::tiles(target)];
    let mut found = Vec::new();
    for file in files.map(|file| file.expect("kernels of the target")) {
        let object = CodeObject::parse(file).expect("a code object");
        for launch in launches {
            let kernel = object.kernels().iter().find(|kernel| kernel.name == launch.name());
            if let Some(kernel) = kernel {
                found.push((file, launch.kernel_object() - kernel.descriptor_vaddr));
            }
        }
    }
    found.sort_by_key(|(_, address)| *address);
    found.dedup_by_key(|(_, address)| *address);
    found
}

/// Waves with instructions that a stream shows. Code objects are known by their load addresses, as they are when the
/// stream announces none.
pub fn decode_walks(data: &[u8], code: &[(&[u8], u64)]) -> Vec<WalkedWave> {
    let mut objects = CodeObjects::new();
    code.iter().for_each(|(file, address)| objects.add(file, Some(*address), None).expect("a code object"));
    let mut waves = Vec::new();
    let mut decoder = Decoder::new(objects, Options::default());
    let outcome = decoder.decode(data, &mut |record: Record<'_>| match record {
        Record::Wave(wave) => {
            let instructions = wave.instructions.iter();
            let list = instructions.map(|found| (found.pc.address, found.category() as u8)).collect();
            waves.push((wave.begin_time, (wave.cu, wave.simd, wave.wave_id), list));
        }
        Record::Info(info) => panic!("the decoder says {info:?}"),
        Record::Loss(loss) => panic!("{loss:?}"),
        _ => {}
    });
    outcome.expect("a whole trace");
    waves.sort();
    waves
}

/// What the log has of the waves in detail, in the same terms.
pub fn walked(bed: &Bed, placed: &[PlacedWave], detailed: impl Fn(&PlacedWave) -> bool) -> Vec<WalkedWave> {
    let wave =
        |wave: &PlacedWave| (wave.start as i64, place(bed.agent(0), wave), bed.placement.instructions(wave));
    let mut waves: Vec<_> = placed.iter().filter(|wave| detailed(wave)).map(wave).collect();
    waves.sort();
    waves
}

/// Begins relative to the first.
pub fn relative(mut waves: Vec<WalkedWave>) -> Vec<WalkedWave> {
    let first = waves.first().map_or(0, |wave| wave.0);
    waves.iter_mut().for_each(|wave| wave.0 -= first);
    waves
}
