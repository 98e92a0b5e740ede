//! A trace in a few numbers: how many waves, how many at a time, how long they lived.

use wavescope_att_decode::{CodeObjects, Decoder, Info, Occupancy, Options, Record};

use super::hottest::Heat;
use super::results::Lifetime;

/// What decoding one chunk gives.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) waves: usize,
    pub(super) detailed_waves: usize,
    pub(super) peak_waves: usize,
    pub(super) lifetime: Option<Lifetime>,
    pub(super) heat: Heat,
    pub(super) remarks: Vec<String>,
}

/// Decodes a chunk.
pub(super) fn summarize(chunk: &[u8], code: &CodeObjects) -> Summary {
    let mut summary = Summary::default();
    let mut occupancy = Vec::new();
    let mut decoder = Decoder::new(code.clone(), Options::default());
    let result = decoder.decode(chunk, &mut |record: Record<'_>| match record {
        Record::Occupancy(records) => occupancy.extend_from_slice(records),
        Record::Wave(wave) => {
            summary.detailed_waves += 1;
            summary.heat.take(wave.instructions);
        }
        Record::Info(info) => summary.remarks.push(remark(info).to_owned()),
        _ => {}
    });
    if let Err(error) = result {
        summary.remarks.push(error.to_string());
    }
    let mut lives = Lives::default();
    occupancy.iter().for_each(|record| lives.take(record));
    summary.waves = lives.started;
    summary.peak_waves = lives.peak;
    summary.lifetime = lives.lifetime();
    summary
}

const fn remark(info: Info) -> &'static str {
    match info {
        Info::DataLost => "data were lost",
        Info::StitchIncomplete => "some instructions have no address",
        Info::WaveIncomplete => "some waves lack their beginning or end",
    }
}

/// Waves between start and end.
#[derive(Debug, Default)]
struct Lives {
    /// Place (CU, SIMD, slot) and start.
    running: Vec<((u8, u8, u8), u64)>,
    ended: Vec<u64>,
    started: usize,
    peak: usize,
}

impl Lives {
    fn take(&mut self, record: &Occupancy) {
        let place = (record.cu, record.simd, record.wave_id);
        if record.is_start() {
            self.running.push((place, record.time));
            self.started += 1;
            self.peak = self.peak.max(self.running.len());
        } else if let Some(index) = self.running.iter().position(|(running, _)| *running == place) {
            let (_, start) = self.running.swap_remove(index);
            self.ended.push(record.time.saturating_sub(start));
        }
    }

    fn lifetime(mut self) -> Option<Lifetime> {
        self.ended.sort_unstable();
        let (shortest, longest) = (*self.ended.first()?, *self.ended.last()?);
        Some(Lifetime { shortest, median: self.ended[self.ended.len() / 2], longest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_decoded_is_said_and_invents_no_wave() {
        let summary = summarize(&[0; 16], &CodeObjects::new());
        assert_eq!((summary.waves, summary.peak_waves, summary.lifetime), (0, 0, None));
        assert_eq!(summary.remarks.len(), 1);
    }
}
