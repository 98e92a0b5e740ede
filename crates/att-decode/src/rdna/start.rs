//! WAVE_START: waves begin, are saved and restored.

use super::layout::{EXT_LDS, EXT_WORKGROUP, Place, START_COUNT};
use super::state::RdnaDecoder;
use crate::occupancy::Running;
use crate::program::Queue;
use crate::record::{Occupancy, OccupancyTags, Pc};
use crate::session::Outside;

/// What a start token with a context-switch count says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Switch {
    Save,
    Restore,
    Neither,
}

/// Counts that make a start token a context switch.
const SWITCH_COUNTS: std::ops::Range<u64> = 66..90;

impl Switch {
    fn of_count(count: u64) -> Option<Self> {
        match count {
            66 | 67 | 70 | 71 => Some(Switch::Save),
            68 | 69 | 72..=75 => Some(Switch::Restore),
            count if SWITCH_COUNTS.contains(&count) => Some(Switch::Neither),
            _ => None,
        }
    }
}

impl RdnaDecoder {
    #[inline]
    pub(super) fn wave_start(
        &mut self,
        is_ext_token: bool,
        after_loss: bool,
        raw: u64,
        time: i64,
        out: &mut Outside<'_>,
    ) {
        let layout = self.header.layout;
        let place = layout.start.get(raw);
        let (me, pipe) = (layout.start_me.byte(raw), layout.start_pipe.byte(raw));
        let is_ext = is_ext_token && layout.has_extended_start && !EXT_LDS.flag(raw);
        let workgroup = if is_ext { EXT_WORKGROUP.byte(raw) } else { 0 };
        let mut tags = OccupancyTags { me, pipe, is_ext, workgroup, cluster: 0 };
        if let Some(switch) = Switch::of_count(START_COUNT.get(raw)) {
            return self.context_switch(switch, place, tags, time, out);
        }
        if after_loss && self.running.contains(place.index()) {
            let end = place.occupancy(false, Pc::INVALID, time.wrapping_sub(1), OccupancyTags::default());
            self.occupancy.push(end, &self.program.code, &mut out.emitter);
        }
        tags.cluster = self.take_cluster();
        let entry = self.program.entry(Queue::new(me, pipe));
        self.running.insert(place.index(), entry);
        self.occupancy.push(place.occupancy(true, entry, time, tags), &self.program.code, &mut out.emitter);
        if self.header.is_double_buffered && self.occupancy.is_full() {
            self.occupancy.flush(&self.program.code, &mut out.emitter);
        }
        if self.is_target(place) && !self.skips_waves {
            self.begin_wave(place.slot, entry, tags, time, out);
        }
    }

    /// Complete waves of the slot leave, the new one begins.
    fn begin_wave(&mut self, slot: u8, entry: Pc, tags: OccupancyTags, time: i64, out: &mut Outside<'_>) {
        while self.slots.top(slot).is_some_and(|wave| wave.data.is_complete) {
            if let Some(index) = self.slots.pop(slot) {
                self.deliver(slot, index, out);
            }
        }
        self.push_wave(slot, entry, tags, time, out);
    }

    fn push_wave(&mut self, slot: u8, entry: Pc, tags: OccupancyTags, time: i64, out: &mut Outside<'_>) {
        if out.limits.open_waves != u32::MAX
            && let Some(index) = self.slots.pop_lowest_above(slot, out.limits.open_waves)
        {
            self.deliver(slot, index, out);
        }
        let (cu, simd) = (self.header.target_location, self.header.target_simd);
        let data = &mut self.slots.push(slot, time).data;
        data.set_limit(out.limits.wave_entries);
        (data.cu, data.simd) = (cu, simd);
        data.set_dispatcher(tags.me, tags.pipe);
        data.workgroup = tags.workgroup;
        data.cluster = tags.cluster;
        if entry.is_valid() {
            data.add_point(entry);
        }
    }

    /// The cluster of a starting wave; it ends with the wave that the stream called its last.
    fn take_cluster(&mut self) -> u8 {
        let cluster = self.cluster;
        if self.cluster_ends {
            (self.cluster, self.cluster_ends) = (0, false);
        }
        cluster
    }

    #[cold]
    fn context_switch(
        &mut self,
        switch: Switch,
        place: Place,
        tags: OccupancyTags,
        time: i64,
        out: &mut Outside<'_>,
    ) {
        let is_target = self.is_target(place) && !self.skips_waves;
        match switch {
            Switch::Save => {
                if is_target && let Some(wave) = self.slots.top(place.slot) {
                    wave.save(time);
                }
                if let Some(entry) = self.running.get(place.index()) {
                    let end = place.occupancy(false, entry, time, tags);
                    self.occupancy.push(end, &self.program.code, &mut out.emitter);
                    let saved = self.saved.get_or_insert_with(|| Running::new(Place::COUNT));
                    saved.insert(place.index(), entry);
                }
            }
            Switch::Restore => {
                if is_target {
                    self.restore_wave(place.slot, tags, time, out);
                }
                let saved = self.saved.as_mut().and_then(|saved| saved.remove(place.index()));
                let entry = saved.unwrap_or(Pc::INVALID);
                self.running.insert(place.index(), entry);
                let start = place.occupancy(true, entry, time, tags);
                self.occupancy.push(start, &self.program.code, &mut out.emitter);
            }
            Switch::Neither => {}
        }
    }

    fn restore_wave(&mut self, slot: u8, tags: OccupancyTags, time: i64, out: &mut Outside<'_>) {
        if self.slots.top(slot).is_none_or(|wave| wave.data.is_complete) {
            self.push_wave(slot, Pc::INVALID, tags, time, out);
        }
        if let Some(wave) = self.slots.top(slot) {
            wave.restore(time);
        }
    }
}

impl Place {
    pub(super) fn occupancy(self, start: bool, pc: Pc, time: i64, tags: OccupancyTags) -> Occupancy {
        Occupancy::new(start, pc, time, (self.location, self.simd, self.slot), tags)
    }
}
