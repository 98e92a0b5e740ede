//! What the chunks of one decoding share: program lines, once-only records, the way waves leave.

use crate::emit::Emitter;
use crate::options::{Limits, Recovery};
use crate::program::CodeObjects;
use crate::record::{Info, Loss, LossKind, Record, Wave};
use crate::source::InstructionSource;
use crate::stitch::{Chip, Lines, insert_gaps, stitch};
use crate::wave::WaveData;

/// State shared by the chunks of a session.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) lines: Lines,
    told_gfxip: bool,
    told_frequency: bool,
    told_incomplete_wave: bool,
    told_incomplete_stitch: bool,
}

/// What decoding a chunk needs from outside, bundled for the call chain.
pub(crate) struct Outside<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) source: &'a mut dyn InstructionSource,
    pub(crate) emitter: Emitter<'a>,
    pub(crate) limits: Limits,
    pub(crate) recovery: Recovery,
}

impl Outside<'_> {
    /// Delivers the graphics IP version, once.
    pub(crate) fn tell_gfxip(&mut self, gfxip: u32) {
        if !std::mem::replace(&mut self.session.told_gfxip, true) {
            self.emitter.emit(Record::Gfxip(gfxip));
        }
    }

    /// Delivers the clock frequency if it is known, once.
    pub(crate) fn tell_frequency(&mut self, hz: u64) {
        if hz != 0 && !std::mem::replace(&mut self.session.told_frequency, true) {
            self.emitter.emit(Record::RtFrequency(hz));
        }
    }

    /// Gives a wave its program counters and delivers it.
    pub(crate) fn deliver(&mut self, wave: &mut WaveData, slot: u8, code: &CodeObjects, chip: Chip) {
        if wave.is_cut {
            self.emitter.loss(Loss { kind: LossKind::Limit, byte_offset: 0, bytes: 0, time: wave.begin });
        }
        for point in &mut wave.points {
            point.pc = code.resolve_late(point.pc);
        }
        let stitched = stitch(wave, chip, &mut self.session.lines, self.source);
        self.warn(wave, stitched.is_complete);
        if chip.excludes_barrier_wait && chip.gfxip == 12 {
            insert_gaps(wave, &stitched.gaps);
        }
        if !wave.is_complete {
            wave.stretch_incomplete();
        }
        self.emitter.emit(Record::Wave(Wave {
            cu: wave.cu,
            simd: wave.simd,
            wave_id: slot,
            contexts: wave.contexts,
            dispatcher: wave.dispatcher,
            workgroup_id: wave.workgroup,
            cluster_id: wave.cluster,
            begin_time: wave.begin,
            end_time: wave.end,
            timeline: &wave.timeline,
            instructions: &wave.instructions,
        }));
    }

    /// Each warning comes at most once per session.
    fn warn(&mut self, wave: &WaveData, is_stitched: bool) {
        let (told, info) = if !wave.is_complete && !wave.is_trapping {
            (&mut self.session.told_incomplete_wave, Info::WaveIncomplete)
        } else if !is_stitched {
            (&mut self.session.told_incomplete_stitch, Info::StitchIncomplete)
        } else {
            return;
        };
        if !std::mem::replace(told, true) {
            self.emitter.info(info);
        }
    }
}
