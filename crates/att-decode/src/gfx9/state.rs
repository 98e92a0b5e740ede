//! What each gfx9 token does to the state of a chunk.

use super::clock::Clock;
use super::perf::PerfLog;
use super::wave::{Gfx9Wave, Status};
use crate::bits::bits;
use crate::emit::Block;
use crate::error::Error;
use crate::marker::MarkerStream;
use crate::occupancy::{OccupancyLog, Running};
use crate::options::Options;
use crate::program::{CLOCK_REGISTER, ComputeRegister, MARKER_REGISTER, Program, Queue, Word};
use crate::quirks;
use crate::record::{
    Event, EventFlags, EventKind, Info, Loss, LossKind, Occupancy, OccupancyTags, Pc, PerfEvent,
    RealtimeSample, Record, RecordKind, ShaderData,
};
use crate::session::Outside;
use crate::stitch::Chip;

/// SIMDs of a compute unit.
const SIMDS: u8 = 4;
/// Wave slots of a SIMD.
const SLOTS: usize = 10;
/// Waves of the target; tokens can name 16 slots of each SIMD.
const WAVES: usize = SIMDS as usize * 16;

/// Where the wave of a slot is kept.
#[inline(always)]
const fn wave_index(simd: u8, slot: u8) -> usize {
    (simd as usize * 16 + slot as usize) % WAVES
}

/// What the stitcher needs to know.
const CHIP: Chip = Chip { gfxip: 9, excludes_barrier_wait: false };

/// An unfinished instruction is not where it was.
#[derive(Debug, Clone, Copy)]
pub(super) struct StaleIssue {
    pub(super) index: u32,
    pub(super) len: u32,
}

/// Why a token is refused: it names what does not exist.
#[derive(Debug, Clone, Copy)]
pub(super) enum Refusal {
    /// A wave slot.
    Slot(u8),
    /// An instruction.
    Issue(StaleIssue),
}

impl Refusal {
    /// The error, for a token at a place.
    pub(super) const fn at(self, byte_offset: u64) -> Error {
        match self {
            Refusal::Slot(slot) => Error::WaveSlot { byte_offset, slot },
            Refusal::Issue(StaleIssue { index, len }) => Error::StaleIssue { byte_offset, index, len },
        }
    }
}

/// Where a wave is on the shader engine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    sh: u8,
    cu: u8,
    simd: u8,
    slot: u8,
}

impl Place {
    /// The place that a start, end, allocation or shader-data token names.
    #[inline(always)]
    pub(super) const fn of(raw: u64) -> Self {
        Place {
            sh: bits(raw, 5, 6) as u8,
            cu: bits(raw, 6, 10) as u8,
            simd: bits(raw, 14, 16) as u8,
            slot: bits(raw, 10, 14) as u8,
        }
    }

    /// A small number per place. The shader array does not count.
    #[inline(always)]
    const fn index(self) -> usize {
        (self.cu as usize) << 6 | (self.simd as usize) << 4 | self.slot as usize
    }

    fn occupancy(self, start: bool, pc: Pc, time: i64, tags: OccupancyTags) -> Occupancy {
        Occupancy::new(start, pc, time, (self.cu, self.simd, self.slot), tags)
    }
}

/// Tags of every record that has no queue.
const NO_QUEUE: OccupancyTags = OccupancyTags::of_queue(0, 0).extended(0);

/// Decoder of one gfx9 chunk.
#[derive(Debug)]
pub(crate) struct Gfx9Decoder {
    /// Byte offset of the next token.
    pub(super) byte: u64,
    pub(super) clock: Clock,
    /// A TIME or reset token that a reset has used up already.
    pub(super) used_up: u64,
    /// Where looking ahead from the reset at hand goes on.
    pub(super) scanned_to: u64,
    target_cu: u8,
    is_double_buffered: bool,
    /// By [`wave_index`].
    waves: Box<[Gfx9Wave; WAVES]>,
    running: Running,
    program: Program,
    occupancy: OccupancyLog,
    shader_data: Block<ShaderData>,
    realtime: Block<RealtimeSample>,
    perf: PerfLog,
    /// Shader markers, where any code object has a map of them.
    markers: Option<Box<MarkerStream>>,
    phase: u32,
    is_lossy: bool,
    /// Why the last token was refused.
    pub(super) refused: Option<Refusal>,
    /// Nobody looks at waves. They are followed all the same, since starts and ends depend on what they do.
    skips_waves: bool,
    wave_entries: u32,
}

impl Gfx9Decoder {
    /// A decoder behind the software header.
    pub(crate) fn new(header: u64, options: &Options) -> Self {
        Gfx9Decoder {
            byte: 8,
            clock: Clock::default(),
            used_up: 0,
            scanned_to: 0,
            target_cu: bits(header, 20, 25) as u8,
            is_double_buffered: bits(header, 32, 33) == 1,
            waves: Box::new(std::array::from_fn(|_| Gfx9Wave::new())),
            running: Running::default(),
            program: Program::with_limit(options.limits.code_objects),
            occupancy: OccupancyLog::new(options),
            shader_data: Block::new(RecordKind::ShaderData, |words| Record::ShaderData(words)),
            realtime: Block::new(RecordKind::Realtime, |samples| Record::Realtime(samples)),
            perf: PerfLog::default(),
            markers: None,
            phase: FIRST_PHASE,
            is_lossy: false,
            refused: None,
            skips_waves: !options.records.needs_waves(),
            wave_entries: options.limits.wave_entries,
        }
    }

    /// Decodes shader markers too.
    pub(crate) fn with_markers(mut self, markers: Option<Box<MarkerStream>>) -> Self {
        self.markers = markers;
        self
    }

    /// Whether the hardware has the slot that a token names in the four bits from `from` on.
    #[inline(always)]
    fn has_slot(&mut self, raw: u64, from: u8) -> bool {
        let slot = bits(raw, from, from + 4) as u8;
        let has = usize::from(slot) < SLOTS;
        if !has {
            self.refused = Some(Refusal::Slot(slot));
        }
        has
    }

    /// The same for the tokens that name a place.
    #[inline(always)]
    pub(super) fn has_place(&mut self, raw: u64) -> bool {
        self.has_slot(raw, 10)
    }

    /// The wave in a slot.
    #[inline(always)]
    fn wave(&mut self, simd: u8, slot: u8) -> Option<&mut Gfx9Wave> {
        Some(&mut self.waves[wave_index(simd, slot)]).filter(|wave| wave.status != Status::Absent)
    }

    /// Starts a wave in a slot that holds none.
    #[inline(never)]
    fn begin_wave(&mut self, simd: u8, slot: u8, time: i64) -> &mut Gfx9Wave {
        let cu = self.target_cu;
        let wave = &mut self.waves[wave_index(simd, slot)];
        wave.reset(time);
        wave.data.set_limit(self.wave_entries);
        (wave.data.cu, wave.data.simd) = (cu, simd);
        wave
    }

    /// A MISC token that says what happened.
    pub(super) fn misc_event(&mut self, raw: u64, time: i64, byte: u64, out: &mut Outside<'_>) {
        let kind = match bits(raw, 13, 16) {
            2 => EventKind::PacketLoss,
            4 => EventKind::TtStallBegin,
            5 => EventKind::TtStallEnd,
            6 => EventKind::SaveContext,
            _ => return,
        };
        out.emitter.global_event(kind, time);
        match kind {
            EventKind::PacketLoss => {
                self.is_lossy = true;
                if let Some(markers) = &mut self.markers {
                    markers.lose();
                }
                out.emitter.loss(Loss { kind: LossKind::PacketLoss, byte_offset: byte, bytes: 0, time });
            }
            EventKind::SaveContext => {
                for wave in self.waves.iter_mut().filter(|wave| wave.status != Status::Absent) {
                    wave.status = Status::SaveRequested;
                }
            }
            _ => {}
        }
    }

    #[inline(always)]
    pub(super) fn issue(&mut self, raw: u64, time: i64) -> bool {
        let simd = bits(raw, 5, 7) as u8;
        let mut fields = bits(raw, 8, 28);
        while fields != 0 {
            let bit = fields.trailing_zeros() & !1;
            let wave = &mut self.waves[wave_index(simd, (bit / 2) as u8)];
            if wave.status == Status::Normal {
                wave.issue(fields >> bit & 3, time);
            }
            fields &= !(3 << bit);
        }
        true
    }

    #[inline(always)]
    pub(super) fn inst(&mut self, raw: u64, time: i64) -> bool {
        if !self.has_slot(raw, 5) {
            return false;
        }
        let (slot, simd, code) = (bits(raw, 5, 9) as u8, bits(raw, 9, 11) as u8, bits(raw, 11, 16) as u8);
        let wave = &mut self.waves[wave_index(simd, slot)];
        if wave.status != Status::Normal {
            self.inst_out_of_turn(code, simd, slot, time);
            return true;
        }
        let done = wave.inst(code, simd, time, &mut self.phase);
        if let Err(stale) = done {
            self.refused = Some(Refusal::Issue(stale));
        }
        done.is_ok()
    }

    /// INST of a wave that is not known yet, whose context is away, or that is in a trap.
    #[cold]
    fn inst_out_of_turn(&mut self, code: u8, simd: u8, slot: u8, time: i64) {
        match self.wave(simd, slot) {
            Some(wave) => wave.inst_in_switch(code, time),
            // It has issued nothing.
            None => {
                self.begin_wave(simd, slot, time);
            }
        }
    }

    #[inline(never)]
    pub(super) fn inst_pc(&mut self, raw: u64) -> bool {
        if !self.has_slot(raw, 5) {
            return false;
        }
        let pc = self.program.code.translate(bits(raw, 16, 64) << 2);
        if let Some(wave) = self.wave(bits(raw, 9, 11) as u8, bits(raw, 5, 9) as u8) {
            wave.new_pc(pc);
        }
        true
    }

    #[inline(never)]
    pub(super) fn wave_start(&mut self, raw: u64, time: i64, out: &mut Outside<'_>) -> bool {
        /// Counts above this are context switches.
        const LAST_COUNT: u8 = 64;
        if !self.has_place(raw) {
            return false;
        }
        let place = Place::of(raw);
        let (pipe, me) = (bits(raw, 16, 18) as u8, bits(raw, 18, 20) as u8);
        let (count, workgroup) = (bits(raw, 22, 29) as u8, bits(raw, 29, 32) as u8);
        let entry = self.program.entry(Queue::new(me, pipe));
        if self.is_target(place) {
            let is_busy = self.wave(place.simd, place.slot).is_some();
            if count > LAST_COUNT {
                if let Some(wave) = self.wave(place.simd, place.slot) {
                    wave.switch_context(time);
                }
                return true;
            }
            if !is_busy {
                let data = &mut self.begin_wave(place.simd, place.slot, time).data;
                data.set_dispatcher(me, pipe);
                data.workgroup = count;
                if entry.is_valid() {
                    data.add_point(entry);
                }
            }
        }
        if !self.running.contains(place.index()) {
            let tags = OccupancyTags::of_queue(me, pipe).extended(workgroup);
            let start = place.occupancy(true, entry, time, tags);
            self.occupancy.push(start, &self.program.code, &mut out.emitter);
        }
        self.running.insert(place.index(), entry);
        if let Some(markers) = &mut self.markers {
            markers.start((place.cu, place.simd, place.slot), entry, out.source);
        }
        true
    }

    #[inline(always)]
    fn is_target(&self, place: Place) -> bool {
        place.cu == self.target_cu && place.sh == 0
    }

    #[inline(never)]
    pub(super) fn wave_end(&mut self, raw: u64, time: i64, out: &mut Outside<'_>) -> bool {
        if !self.has_place(raw) {
            return false;
        }
        let place = Place::of(raw);
        if self.is_target(place) {
            match self.wave(place.simd, place.slot) {
                Some(wave) if wave.status == Status::Normal => {
                    wave.finish(time);
                    self.deliver(place.simd, place.slot, out);
                }
                _ if quirks::TARGET_END_NEEDS_RUNNING_WAVE => return true,
                _ => {}
            }
        }
        if let Some(entry) = self.running.remove(place.index()) {
            let entry = self.program.code.resolve_end(entry);
            let end = place.occupancy(false, entry, time, NO_QUEUE);
            self.occupancy.push(end, &self.program.code, &mut out.emitter);
        } else if !self.is_lossy {
            let (start, end) = (
                place.occupancy(true, Pc::INVALID, 0, NO_QUEUE),
                place.occupancy(false, Pc::INVALID, 0, NO_QUEUE),
            );
            self.occupancy.push_in_front(start, &self.program.code, &mut out.emitter);
            self.occupancy.push(end, &self.program.code, &mut out.emitter);
        }
        if let Some(markers) = &mut self.markers {
            markers.end((place.cu, place.simd, place.slot), &self.program.code, out.source);
        }
        if self.is_double_buffered && self.occupancy.is_full() {
            self.occupancy.flush(&self.program.code, &mut out.emitter);
        }
        true
    }

    fn deliver(&mut self, simd: u8, slot: u8, out: &mut Outside<'_>) {
        let wave = &mut self.waves[wave_index(simd, slot)];
        wave.status = Status::Absent;
        if !self.skips_waves {
            out.deliver(&mut wave.data, slot, &self.program.code, CHIP);
        }
    }

    #[inline(never)]
    pub(super) fn reg_cs(&mut self, raw: u64, time: i64, out: &mut Outside<'_>) -> bool {
        /// What the event register is written with for a partial flush.
        const PARTIAL_FLUSH: u32 = 7;
        let queue = queue(raw);
        let (register, data) = (ComputeRegister(bits(raw, 9, 16) as u16), bits(raw, 16, 48) as u32);
        self.program.write(register, data, queue);
        match register {
            ComputeRegister::DISPATCH_INITIATOR if data & 1 == 1 => {
                out.emitter.emit(Record::Dispatch(self.program.dispatch(
                    time,
                    queue,
                    quirks::GFX9_AS_VERSION,
                )));
            }
            ComputeRegister::GFX9_EVENT if data == PARTIAL_FLUSH => {
                let kind = EventKind::CsPartialFlush;
                out.emitter.event(Event::of_pipe(kind, time, queue.me, queue.pipe, EventFlags(0)));
            }
            _ => {}
        }
        true
    }

    #[inline(never)]
    pub(super) fn reg(&mut self, raw: u64, time: i64, out: &mut Outside<'_>) -> bool {
        let is_valid = bits(raw, 15, 16) == 1;
        if !is_valid {
            return true;
        }
        let (register, data) = (bits(raw, 16, 32) as u16, (raw >> 32) as u32);
        match register {
            MARKER_REGISTER => self.marker_word(data, queue(raw), time, out),
            CLOCK_REGISTER => {
                if let Some(sample) = self.program.user_data.clock_word(data, time) {
                    self.realtime.push(sample, &mut out.emitter);
                }
            }
            _ => {}
        }
        true
    }

    fn marker_word(&mut self, data: u32, queue: Queue, time: i64, out: &mut Outside<'_>) {
        let word = self.program.marker_word(data, queue);
        let (kind, id) = match word {
            Word::Loaded { id, address, size } => {
                out.source.code_object_loaded(id, address, size);
                (EventKind::CodeObjectLoad, id)
            }
            Word::Unloaded { id } => (EventKind::CodeObjectUnload, id),
            Word::Interval => return self.perf.set_interval(self.program.user_data.counter_interval),
            Word::Nothing => return,
        };
        let event = Event::of_pipe(kind, time, queue.me, queue.pipe, EventFlags::PER_PIPE);
        out.emitter.event(Event { payload: id & 0xffff_ffff, ..event });
    }

    #[inline(never)]
    pub(super) fn shader_data(&mut self, raw: u64, time: i64, out: &mut Outside<'_>) -> bool {
        if !self.has_place(raw) {
            return false;
        }
        let Place { cu, simd, slot, .. } = Place::of(raw);
        let value = bits(raw, 16, 48);
        let record = ShaderData { time, value, cu, simd, wave_id: slot, flags: 0, reserved: 0 };
        self.shader_data.push(record, &mut out.emitter);
        self.shader_data.flush_full(&mut out.emitter);
        if let Some(markers) = &mut self.markers {
            markers.word(record, &mut out.emitter);
        }
        true
    }

    #[inline(never)]
    pub(super) fn perf(&mut self, raw: u64, time: i64, out: &mut Outside<'_>) -> bool {
        let sh = bits(raw, 5, 6);
        if sh != 0 || !out.emitter.wants(RecordKind::PerfEvent) {
            return true;
        }
        let (cu, bank) = (bits(raw, 6, 10) as u8, bits(raw, 10, 12) as u8);
        let counter = |from: u8| bits(raw, from, (from + 13).min(64)) as u16;
        let events = [counter(12), counter(25), counter(38), counter(51)];
        self.perf.push(PerfEvent { time: time - 4 * i64::from(cu), events, cu, bank });
        self.perf.flush_above(out.limits.counter_samples, &mut out.emitter);
        true
    }

    /// Data is missing from here on.
    pub(super) fn mark_lossy(&mut self) {
        self.is_lossy = true;
    }

    /// Hands everything over that waits for the end of the chunk.
    pub(crate) fn finish(&mut self, out: &mut Outside<'_>) {
        if let Some(markers) = &mut self.markers {
            markers.finish(&self.program.code, out.source);
        }
        self.occupancy.flush(&self.program.code, &mut out.emitter);
        self.realtime.flush(&mut out.emitter);
        self.shader_data.flush(&mut out.emitter);
        if let Some(markers) = &mut self.markers {
            markers.flush(&mut out.emitter);
        }
        self.perf.finish();
        for (simd, slot) in (0..SIMDS).flat_map(|simd| (0..SLOTS as u8).map(move |slot| (simd, slot))) {
            if self.wave(simd, slot).is_some() {
                self.deliver(simd, slot, out);
            }
        }
        if self.is_lossy {
            out.emitter.info(Info::DataLost);
        }
        out.tell_frequency(self.program.user_data.realtime_hz);
        if !self.perf.events.is_empty() {
            out.emitter.emit(Record::PerfEvents(&self.perf.events));
        }
    }
}

/// Phase of the first instruction of a chunk.
const FIRST_PHASE: u32 = 15;

/// Queue of a register write: the micro-engine is coded one off.
fn queue(raw: u64) -> Queue {
    Queue::new((bits(raw, 7, 9) as u8 + 1) & 1, bits(raw, 5, 7) as u8)
}
