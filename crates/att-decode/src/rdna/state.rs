//! What each token does to the state of a chunk.

use super::codes::{Code, Rule};
use super::form::{BY_HEADER, Form};
use super::header::Header;
use super::layout::{Place, VALU_SLOT, WAVE_MASK};
use super::order::Quiet;
use super::realtime::{Samples, samples};
use super::recent::RecentWaves;
use super::slots::{SLOTS, Slots};
use super::wave::Issue;
use crate::bits::bits;
use crate::emit::Block;
use crate::generation::Generation;
use crate::marker::MarkerStream;
use crate::occupancy::{OccupancyLog, Running};
use crate::options::Options;
use crate::program::{ComputeRegister, MARKER_REGISTER, Program, Queue, Word};
use crate::quirks;
use crate::record::{
    Event, EventFlags, EventKind, Info, Loss, LossKind, OccupancyTags, OtherSimd, Pc, Record, RecordKind,
    ShaderData,
};
use crate::session::Outside;
use crate::stitch::Chip;
use crate::token::{RdnaCursor, TokenKind};

/// A token on its way to the state machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivered {
    pub(super) kind: TokenKind,
    pub(super) raw: u64,
    pub(super) time: i64,
    pub(super) bit: u64,
}

/// Decoder of one RDNA chunk.
#[derive(Debug)]
pub(crate) struct RdnaDecoder {
    pub(super) generation: Generation,
    pub(super) cursor: RdnaCursor,
    pub(super) header: Header,
    pub(super) recent: RecentWaves,
    pub(super) slots: Slots,
    pub(super) running: Running,
    /// Entries of waves whose context is saved, once there is one.
    pub(super) saved: Option<Running>,
    pub(super) program: Program,
    pub(super) occupancy: OccupancyLog,
    pub(super) realtime: Samples,
    shader_data: Block<ShaderData>,
    other_simd: Block<OtherSimd>,
    /// Even a token without an effect of its own has one now: it follows a loss, or samples wait to be handed over.
    pub(super) is_attentive: bool,
    /// A TIMESTAMP said that packets were lost; the next token is the first after the loss.
    pub(super) loss_pending: bool,
    pub(super) is_lossy: bool,
    /// The data at hand end where the chunk ends.
    pub(super) is_last: bool,
    /// Shader markers, where any code object has a map of them.
    pub(super) markers: Option<Box<MarkerStream>>,
    pub(super) cluster: u8,
    pub(super) cluster_ends: bool,
    /// Held back until a later token arrives (gfx10, gfx11).
    pub(super) held: Vec<Delivered>,
    /// A header is among those held back: what it changes is not known to the fast loop yet.
    pub(super) holds_header: bool,
    /// The last quiet token that was stepped over (gfx10, gfx11).
    pub(super) quiet: Quiet,
    /// The first token held back has a quiet one of its own time before it.
    pub(super) follows_quiet: bool,
    /// Nobody looks at waves: only their starts and ends matter.
    pub(super) skips_waves: bool,
    /// Nobody looks at anything but starts and ends of waves.
    pub(super) only_occupancy: bool,
    /// Keep to careful steps, to hold the fast loop against them.
    #[cfg(test)]
    pub(super) is_slow: bool,
}

impl RdnaDecoder {
    pub(crate) fn new(generation: Generation, options: &Options) -> Self {
        RdnaDecoder {
            generation,
            cursor: RdnaCursor::new(generation),
            header: Header::default(),
            recent: RecentWaves::default(),
            slots: Slots::default(),
            running: Running::default(),
            saved: None,
            program: Program::with_limit(options.limits.code_objects),
            occupancy: OccupancyLog::new(options),
            realtime: samples(),
            shader_data: Block::new(RecordKind::ShaderData, |words| Record::ShaderData(words)),
            other_simd: Block::new(RecordKind::OtherSimd, |others| Record::OtherSimd(others)),
            is_attentive: false,
            loss_pending: false,
            is_lossy: false,
            is_last: false,
            markers: None,
            cluster: 0,
            cluster_ends: false,
            held: Vec::new(),
            holds_header: false,
            quiet: Quiet::NONE,
            follows_quiet: false,
            skips_waves: !options.records.needs_waves(),
            only_occupancy: options.records.needs_only_occupancy(),
            #[cfg(test)]
            is_slow: false,
        }
    }

    /// Takes one token, the first after a loss perhaps.
    #[inline]
    pub(super) fn take(&mut self, token: Delivered, out: &mut Outside<'_>) {
        let after_loss = self.loss_pending;
        if after_loss {
            self.take_loss(token.time, token.bit, out);
        }
        self.apply::<BY_HEADER>(token, after_loss, out);
    }

    /// Does what a token does.
    #[inline(always)]
    pub(super) fn apply<const F: Form>(&mut self, token: Delivered, after_loss: bool, out: &mut Outside<'_>) {
        let Delivered { kind, raw, time, bit } = token;
        match kind {
            TokenKind::Inst => self.inst::<F>(raw, time, out),
            TokenKind::ValuInst => self.valu(raw, time),
            TokenKind::ImmOne => {
                if let Some(wave) = self.slots.top(self.header.layout::<F>().imm_slot.byte(raw)) {
                    wave.immediate(time);
                }
            }
            TokenKind::Immediate => self.for_each_wave(raw, |wave| wave.immediate(time)),
            TokenKind::WaveReady => self.for_each_wave(raw, |wave| wave.ready(time)),
            TokenKind::Reg => self.reg::<F>(raw, time, out),
            TokenKind::Misc => self.misc::<F>(raw, time, bit, out),
            TokenKind::WaveStart => self.wave_start::<F>(false, after_loss, raw, time, out),
            TokenKind::WaveStartExt => self.wave_start::<F>(true, after_loss, raw, time, out),
            TokenKind::WaveEnd => self.wave_end::<F>(raw, time, out),
            TokenKind::NewPc => self.new_pc(bits(raw, 11, 16) as u8, bits(raw, 16, 62), time),
            // The first eight bits are gone already.
            TokenKind::NewPc12 => self.new_pc(bits(raw, 3, 8) as u8, bits(raw, 8, 63), time),
            TokenKind::Event => self.event(raw, time, out),
            TokenKind::RegInit => self.reg_init(raw, time, out),
            TokenKind::ShaderData => self.shader_data(false, raw, time, out),
            TokenKind::ShaderDataShort => self.shader_data(true, raw, time, out),
            TokenKind::Header => {
                self.header.update(raw);
                self.holds_header = false;
            }
            _ => self.flush_samples(out),
        }
    }

    /// Samples are handed over with a token that does nothing else.
    #[cold]
    fn flush_samples(&mut self, out: &mut Outside<'_>) {
        self.realtime.flush_full(&mut out.emitter);
        self.is_attentive = self.loss_pending;
    }

    /// Decodes shader markers too.
    pub(crate) fn with_markers(mut self, markers: Option<Box<MarkerStream>>) -> Self {
        self.markers = markers;
        self
    }

    /// Graphics IP version.
    pub(crate) fn gfxip(&self) -> u32 {
        self.generation.gfxip()
    }

    /// The rules of the stitcher that hold now.
    pub(super) fn chip(&self) -> Chip {
        Chip { gfxip: self.generation.gfxip(), excludes_barrier_wait: self.header.excludes_barrier_wait }
    }

    /// Packets were lost before the token at `time`.
    #[cold]
    pub(super) fn take_loss(&mut self, time: i64, bit: u64, out: &mut Outside<'_>) {
        self.loss_pending = false;
        self.is_attentive = self.realtime.is_full();
        self.is_lossy = true;
        self.lost(time, bit, out);
    }

    fn lost(&mut self, time: i64, bit: u64, out: &mut Outside<'_>) {
        if let Some(markers) = &mut self.markers {
            markers.lose();
        }
        out.emitter.global_event(EventKind::PacketLoss, time);
        let loss = Loss { kind: LossKind::PacketLoss, byte_offset: bit / 8, bytes: 0, time };
        out.emitter.loss(loss);
    }

    #[inline(always)]
    fn inst<const F: Form>(&mut self, raw: u64, time: i64, out: &mut Outside<'_>) {
        let layout = self.header.layout::<F>();
        let number = layout.inst_code.get(raw) as u16;
        let code = self.header.codes::<F>()[usize::from(number) % 512];
        let slot = layout.inst_slot.byte(raw);
        if code.rule == Rule::Fixed {
            if let Some(wave) = self.slots.top(slot) {
                wave.plain_inst(code.category, i64::from(code.cycles), time);
            }
            return;
        }
        self.odd_inst::<F>(number, code, slot, time, out);
    }

    /// INST of a code that does more than issue an instruction of so many cycles.
    #[inline(never)]
    fn odd_inst<const F: Form>(
        &mut self,
        number: u16,
        code: Code,
        slot: u8,
        time: i64,
        out: &mut Outside<'_>,
    ) {
        if code.rule == Rule::Other {
            return self.other_simd(code, time, out);
        }
        let cycles = self.cycles(code);
        let opens_barrier = self.header.version::<F>() <= 3;
        let Some(wave) = self.slots.top(slot) else { return };
        match code.rule {
            Rule::Rated | Rule::Derated | Rule::Transcendental => {
                wave.plain_inst(code.category, cycles, time)
            }
            Rule::Scale => wave.scale(),
            Rule::Rewind => wave.rewind(),
            _ => wave.inst(Issue { code: number, category: code.category, cycles, opens_barrier }, time),
        }
    }

    fn cycles(&self, code: Code) -> i64 {
        let cycles = i64::from(code.cycles);
        match code.rule {
            Rule::Rated => cycles * self.header.double_rate,
            Rule::Derated => cycles * self.header.double_rate * self.header.derate,
            Rule::Transcendental => cycles >> self.header.trans2,
            _ => cycles,
        }
    }

    fn other_simd(&mut self, code: Code, time: i64, out: &mut Outside<'_>) {
        let record = OtherSimd {
            size: size_of::<OtherSimd>() as u64,
            time,
            cycles: code.cycles,
            wgp: self.header.target.location(),
            category: code.category as u8,
        };
        self.other_simd.push(record, &mut out.emitter);
        self.other_simd.flush_full(&mut out.emitter);
    }

    /// On gfx1250 the reading loop has put the slot where the other generations have it.
    #[inline(always)]
    fn valu(&mut self, raw: u64, time: i64) {
        if let Some(wave) = self.slots.top(VALU_SLOT.byte(raw)) {
            wave.valu(time);
        }
    }

    #[inline(always)]
    fn for_each_wave(&mut self, raw: u64, mut apply: impl FnMut(&mut super::wave::RdnaWave)) {
        let mut mask = WAVE_MASK.get(raw);
        while mask != 0 {
            if let Some(wave) = self.slots.top(mask.trailing_zeros() as u8) {
                apply(wave);
            }
            mask &= mask - 1;
        }
    }

    fn new_pc(&mut self, slot: u8, words: u64, time: i64) {
        if let Some(wave) = self.slots.top(slot) {
            wave.new_pc(self.program.code.translate(words << 2), time);
        }
    }

    #[inline]
    pub(super) fn reg<const F: Form>(&mut self, raw: u64, time: i64, out: &mut Outside<'_>) {
        let queue = Queue::new(bits(raw, 9, 11) as u8, bits(raw, 7, 9) as u8);
        let (register, data) = (bits(raw, 16, 32) as u16, (raw >> 32) as u32);
        let is_compute = bits(raw, 15, 16) == 1;
        if is_compute {
            self.program.write(ComputeRegister(register), data, queue);
        }
        // Up to header version 2 the bit says nothing.
        if register == MARKER_REGISTER && (!is_compute || self.header.version::<F>() <= 2) {
            self.marker_word(data, queue, time, out);
        }
    }

    #[cold]
    fn marker_word(&mut self, data: u32, queue: Queue, time: i64, out: &mut Outside<'_>) {
        let word = self.program.marker_word(data, queue);
        let (kind, id) = match word {
            Word::Loaded { id, address, size } => {
                out.source.code_object_loaded(id, address, size);
                (EventKind::CodeObjectLoad, id)
            }
            Word::Unloaded { id } => (EventKind::CodeObjectUnload, id),
            Word::Nothing | Word::Interval => return,
        };
        let event = Event::of_pipe(kind, time, queue.me, queue.pipe, EventFlags(0));
        out.emitter.event(Event { payload: id & 0xffff_ffff, ..event });
    }

    fn reg_init(&mut self, raw: u64, time: i64, out: &mut Outside<'_>) {
        /// REG_INIT type of a dispatch.
        const DISPATCH: u64 = 2;
        if bits(raw, 18, 20) == DISPATCH && bits(raw, 20, 21) == 1 {
            let queue = Queue::new(bits(raw, 16, 18) as u8, bits(raw, 14, 16) as u8);
            let dispatch = self.program.dispatch(time, queue, self.header.version);
            out.emitter.emit(Record::Dispatch(dispatch));
        }
    }

    fn event(&mut self, raw: u64, time: i64, out: &mut Outside<'_>) {
        if let Some(event) = pipeline_event(raw, time) {
            out.emitter.event(event);
        }
    }

    #[inline]
    pub(super) fn misc<const F: Form>(&mut self, raw: u64, time: i64, bit: u64, out: &mut Outside<'_>) {
        let flags = if self.header.version::<F>() >= 5 { self.misc_gfx1250(raw) } else { bits(raw, 16, 24) };
        if flags != 0 {
            self.misc_flags(flags, time, bit, out);
        }
    }

    /// Cluster fields of gfx1250; the flags, moved to where the other generations have them.
    fn misc_gfx1250(&mut self, raw: u64) -> u64 {
        let (first, last, id) = (bits(raw, 17, 18), bits(raw, 18, 19), bits(raw, 19, 23) as u8);
        if first == 1 {
            (self.cluster, self.cluster_ends) = (id, false);
        }
        if last == 1 {
            (self.cluster, self.cluster_ends) = (id, true);
        }
        let flags = bits(raw, 10, 17);
        flags & 3 | (flags & !3) << 1
    }

    fn misc_flags(&mut self, mut flags: u64, time: i64, bit: u64, out: &mut Outside<'_>) {
        /// Packet loss up to header version 2, SPM sample from 3 on.
        const LOSS_OR_SPM: u64 = 1;
        /// By bit of the flags turned by three, which is the order of delivery; bit 2 of the flags is reserved.
        const EVENTS: [EventKind; 8] = [
            EventKind::SaveContext,
            EventKind::TtStallBegin,
            EventKind::TtStallEnd,
            EventKind::DidtStallBegin,
            EventKind::DidtStallEnd,
            EventKind::SpmSample,
            EventKind::GcRinse,
            EventKind::GcRinse,
        ];
        const RESERVED: u64 = 1 << 2;
        if self.header.version <= 2 && flags & LOSS_OR_SPM != 0 {
            flags &= !LOSS_OR_SPM;
            self.is_lossy = true;
            self.lost(time, bit, out);
        }
        flags &= !RESERVED;
        let has_both = flags & 3 == 3;
        let mut turned = u32::from((flags as u8).rotate_right(3));
        while turned != 0 {
            let mut kind = EVENTS[turned.trailing_zeros() as usize];
            if has_both {
                // The rinse goes before the sample.
                kind = match kind {
                    EventKind::SpmSample => EventKind::GcRinse,
                    EventKind::GcRinse => EventKind::SpmSample,
                    kind => kind,
                };
            }
            out.emitter.global_event(kind, time);
            if kind == EventKind::SaveContext {
                self.suspend_all();
            }
            turned &= turned - 1;
        }
    }

    /// Every wave of the target saves its context.
    #[cold]
    #[inline(never)]
    fn suspend_all(&mut self) {
        for slot in 0..SLOTS as u8 {
            if let Some(wave) = self.slots.top(slot) {
                wave.suspend();
            }
        }
    }

    fn shader_data(&mut self, is_short: bool, raw: u64, time: i64, out: &mut Outside<'_>) {
        let layout = self.header.layout;
        let is_invalid = bits(raw, 14, 15) == 1;
        if is_invalid && self.header.version == 3 {
            return;
        }
        let width = if is_short { 8 } else { 32 };
        let end = layout.shader_word + width;
        let is_privileged = layout.has_privilege && bits(raw, end, end + 2) != 0;
        let place = layout.shader_data.get(raw);
        let record = ShaderData {
            time,
            value: bits(raw, layout.shader_word, end),
            cu: place.location(),
            simd: place.simd(),
            wave_id: place.slot,
            flags: (is_short as u8 * ShaderData::IMMEDIATE) | (is_privileged as u8 * ShaderData::PRIVILEGED),
            reserved: 0,
        };
        self.shader_data.push(record, &mut out.emitter);
        self.shader_data.flush_full(&mut out.emitter);
        if let Some(markers) = &mut self.markers {
            markers.word(record, &mut out.emitter);
        }
    }

    #[inline(always)]
    pub(super) fn wave_end<const F: Form>(&mut self, raw: u64, time: i64, out: &mut Outside<'_>) {
        let place = self.header.layout::<F>().end.get(raw);
        if self.is_target(place) {
            self.finish_wave(place.slot, time);
        }
        let entry = match self.running.remove(place.index()) {
            Some(entry) => self.program.code.resolve_end(entry),
            None => self.missing_start(place, out),
        };
        let end = place.occupancy(false, entry, time, OccupancyTags::default());
        self.occupancy.push(end, &self.program.code, &mut out.emitter);
        if let Some(markers) = &mut self.markers {
            markers.end((place.location(), place.simd(), place.slot), &self.program.code, out.source);
        }
    }

    #[inline(never)]
    fn finish_wave(&mut self, slot: u8, time: i64) {
        if let Some(wave) = self.slots.top(slot) {
            wave.finish(time);
        }
    }

    /// A wave ends whose start the stream does not have.
    #[cold]
    fn missing_start(&mut self, place: Place, out: &mut Outside<'_>) -> Pc {
        let start = place.occupancy(true, Pc::INVALID, 0, OccupancyTags::default());
        self.occupancy.push_in_front(start, &self.program.code, &mut out.emitter);
        Pc::INVALID
    }

    #[inline(always)]
    pub(super) fn is_target(&self, place: Place) -> bool {
        place.unit == self.header.target.unit
    }

    /// Hands everything over that waits for the end of the chunk.
    pub(crate) fn finish(&mut self, out: &mut Outside<'_>) {
        if self.loss_pending {
            self.take_loss(quirks::CLOSING_LOSS_TIME, self.cursor.bit, out);
        }
        if let Some(markers) = &mut self.markers {
            markers.finish(&self.program.code, out.source);
        }
        self.occupancy.flush(&self.program.code, &mut out.emitter);
        self.realtime.flush(&mut out.emitter);
        self.shader_data.flush(&mut out.emitter);
        if let Some(markers) = &mut self.markers {
            markers.flush(&mut out.emitter);
        }
        self.other_simd.flush(&mut out.emitter);
        for slot in 0..SLOTS as u8 {
            for index in self.slots.stack(slot) {
                self.deliver(slot, index, out);
            }
        }
        if self.is_lossy {
            out.emitter.info(Info::DataLost);
        }
        out.tell_frequency(self.program.user_data.realtime_hz);
    }

    pub(super) fn deliver(&mut self, slot: u8, index: u32, out: &mut Outside<'_>) {
        let chip = self.chip();
        out.deliver(&mut self.slots.wave(index).data, slot, &self.program.code, chip);
    }
}

/// Event of an EVENT token, if its id has one.
pub(crate) fn pipeline_event(raw: u64, time: i64) -> Option<Event> {
    let kind = match bits(raw, 18, 24) {
        0x07 => EventKind::CsPartialFlush,
        0x04 | 0x06 | 0x14 | 0x16 => EventKind::CacheFlush,
        0x28 => EventKind::BottomOfPipeTs,
        0x36 => EventKind::TtFlush,
        _ => return None,
    };
    let flags = EventFlags(EventFlags::PER_PIPE.0 | (EventFlags::BOP.0 * bits(raw, 11, 12) as u16));
    let (me, pipe) = (bits(raw, 16, 18) as u8, bits(raw, 14, 16) as u8);
    Some(Event::of_pipe(kind, time, me, pipe, flags))
}
