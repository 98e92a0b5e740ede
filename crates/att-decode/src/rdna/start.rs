//! WAVE_START: waves begin, are saved and restored.

use super::form::{BY_HEADER, Form, GFX1250};
use super::layout::{EXT_LDS, EXT_WORKGROUP, Place, START_COUNT};
use super::state::RdnaDecoder;
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
    fn of_count(count: u64) -> Self {
        match count {
            66 | 67 | 70 | 71 => Switch::Save,
            68 | 69 | 72..=75 => Switch::Restore,
            _ => Switch::Neither,
        }
    }
}

impl RdnaDecoder {
    #[inline(always)]
    pub(super) fn wave_start<const F: Form>(
        &mut self,
        is_ext_token: bool,
        after_loss: bool,
        raw: u64,
        time: i64,
        out: &mut Outside<'_>,
    ) {
        let layout = self.header.layout::<F>();
        let place = layout.start.get(raw);
        if SWITCH_COUNTS.contains(&START_COUNT.get(raw)) {
            let switch = Switch::of_count(START_COUNT.get(raw));
            return self.context_switch(switch, self.start::<F>(is_ext_token, raw, time), out);
        }
        if after_loss && self.running.contains(place.index()) {
            let end = place.occupancy(false, Pc::INVALID, time.wrapping_sub(1), OccupancyTags::default());
            self.occupancy.push(end, &self.program.code, &mut out.emitter);
        }
        let queue = layout.start_queue.byte(raw);
        let mut tags = OccupancyTags::of_start(queue);
        if is_ext_token && layout.has_extended_start && !EXT_LDS.flag(raw) {
            tags = tags.extended(EXT_WORKGROUP.byte(raw));
        }
        let mut cluster = 0;
        if F == BY_HEADER || F == GFX1250 {
            cluster = self.take_cluster();
            tags = tags.in_cluster(cluster);
        }
        let entry = self.program.entry_of_start(queue);
        self.running.insert(place.index(), entry);
        self.occupancy.push(place.occupancy(true, entry, time, tags), &self.program.code, &mut out.emitter);
        if let Some(markers) = &mut self.markers {
            markers.start((place.location(), place.simd(), place.slot), entry, out.source);
        }
        if self.header.is_double_buffered && self.occupancy.is_full() {
            self.occupancy.flush(&self.program.code, &mut out.emitter);
        }
        if self.is_target(place) && !self.skips_waves {
            let start = Start { cluster, ..self.start::<F>(is_ext_token, raw, time) };
            self.begin_wave(start, entry, out);
        }
    }

    /// What a start token says, for the cases that need all of it.
    fn start<const F: Form>(&self, is_ext_token: bool, raw: u64, time: i64) -> Start {
        let layout = self.header.layout::<F>();
        let queue = layout.start_queue.byte(raw);
        let mut tags = OccupancyTags::of_start(queue);
        let mut workgroup = 0;
        if is_ext_token && layout.has_extended_start && !EXT_LDS.flag(raw) {
            workgroup = EXT_WORKGROUP.byte(raw);
            tags = tags.extended(workgroup);
        }
        Start {
            place: layout.start.get(raw),
            tags,
            me: queue >> 2,
            pipe: queue & 3,
            workgroup,
            cluster: 0,
            time,
        }
    }

    /// Complete waves of the slot leave, the new one begins.
    #[inline(never)]
    fn begin_wave(&mut self, start: Start, entry: Pc, out: &mut Outside<'_>) {
        let slot = start.place.slot;
        while self.slots.top(slot).is_some_and(|wave| wave.data.is_complete) {
            if let Some(index) = self.slots.pop(slot) {
                self.deliver(slot, index, out);
            }
        }
        self.push_wave(start, entry, out);
    }

    fn push_wave(&mut self, start: Start, entry: Pc, out: &mut Outside<'_>) {
        let slot = start.place.slot;
        if out.limits.open_waves != u32::MAX
            && let Some(index) = self.slots.pop_lowest_above(slot, out.limits.open_waves)
        {
            self.deliver(slot, index, out);
        }
        let target = self.header.target;
        let data = &mut self.slots.push(slot, start.time).data;
        data.set_limit(out.limits.wave_entries);
        (data.cu, data.simd) = (target.location(), target.simd());
        data.set_dispatcher(start.me, start.pipe);
        data.workgroup = start.workgroup;
        data.cluster = start.cluster;
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
    fn context_switch(&mut self, switch: Switch, start: Start, out: &mut Outside<'_>) {
        let Start { place, tags, time, .. } = start;
        let is_target = self.is_target(place) && !self.skips_waves;
        match switch {
            Switch::Save => {
                if is_target && let Some(wave) = self.slots.top(place.slot) {
                    wave.save(time);
                }
                if let Some(entry) = self.running.get(place.index()) {
                    let end = place.occupancy(false, entry, time, tags);
                    self.occupancy.push(end, &self.program.code, &mut out.emitter);
                    self.saved.get_or_insert_default().insert(place.index(), entry);
                }
            }
            Switch::Restore => {
                if is_target {
                    self.restore_wave(start, out);
                }
                let saved = self.saved.as_mut().and_then(|saved| saved.remove(place.index()));
                let entry = saved.unwrap_or(Pc::INVALID);
                self.running.insert(place.index(), entry);
                let record = place.occupancy(true, entry, time, tags);
                self.occupancy.push(record, &self.program.code, &mut out.emitter);
            }
            Switch::Neither => {}
        }
    }

    fn restore_wave(&mut self, start: Start, out: &mut Outside<'_>) {
        let slot = start.place.slot;
        if self.slots.top(slot).is_none_or(|wave| wave.data.is_complete) {
            self.push_wave(start, Pc::INVALID, out);
        }
        if let Some(wave) = self.slots.top(slot) {
            wave.restore(start.time);
        }
    }
}

/// What a start token says.
#[derive(Debug, Clone, Copy)]
struct Start {
    place: Place,
    tags: OccupancyTags,
    me: u8,
    pipe: u8,
    workgroup: u8,
    cluster: u8,
    time: i64,
}

impl Place {
    #[inline(always)]
    pub(super) fn occupancy(self, start: bool, pc: Pc, time: i64, tags: OccupancyTags) -> Occupancy {
        Occupancy::new(start, pc, time, (self.location(), self.simd(), self.slot), tags)
    }
}
