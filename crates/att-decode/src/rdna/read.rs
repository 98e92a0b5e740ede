//! The fast loop: one pass over the bytes, clock and position in registers.

use super::codes::RECENT;
use super::form::{Form, GFX10, GFX11, GFX12, GFX1250, generation};
use super::order::Quiet;
use super::realtime::{Storing, store};
use super::state::{Delivered, RdnaDecoder};
use crate::bits::{BLOCK_BYTES, Block, Field, Wide, bits, fill, window_padded};
use crate::generation::Generation;
use crate::options::Recovery;
use crate::program::{ComputeRegister, MARKER_REGISTER};
use crate::session::Outside;
use crate::token::timestamp::Timestamp;
use crate::token::{
    Entry, INDEX_BITS, RdnaCursor, Table, TokenKind, WINDOW_BITS, late_delta, lookup, padding, table,
};

/// What the fast loop did with a token that is more than a step.
enum Special {
    /// It is done with.
    Passed,
    /// A MISC token, stepped over but not taken yet.
    Misc,
    /// A TIMESTAMP with a sample of the real-time clock, stepped over.
    Sample(u64),
    /// It needs a careful step.
    Careful,
}

/// Whether a token is stepped over by its table entry.
#[inline(always)]
const fn is_stepped_over<const F: Form, const ONLY_OCCUPANCY: bool>(entry: &Entry) -> bool {
    if !ONLY_OCCUPANCY {
        return entry.kind.is_quiet();
    }
    // Some leftovers of gfx1250 end within a byte.
    let is_odd = F == GFX1250 && entry.is_special();
    !entry.kind.matters_to_occupancy() && !is_odd
}

/// Whether a register write has an effect. Most that a stream holds have none.
#[inline(always)]
fn is_watched_register<const F: Form>(raw: u64) -> bool {
    /// Register and, as the lowest bit, whether it is a compute register.
    const NAME: Field = Field::new(15, 32);
    let name = NAME.get(raw);
    let marker = u64::from(MARKER_REGISTER) << 1;
    let is_marker = name == marker || F == GFX10 && name == marker | 1;
    is_marker || name & 1 == 1 && name <= u64::from(ComputeRegister::LAST) << 1 | 1
}

/// Tokens of one time that wait in the fast loop; more than these are rare.
const PENDING: usize = 4;

/// Not before any token: others are held back outside of the fast loop, and are looked at first.
const NEVER: i64 = i64::MAX;

/// Tokens of one time that wait for a later one, since another may have to go first (gfx10, gfx11).
#[derive(Clone, Copy)]
struct Pending {
    tokens: [Delivered; PENDING],
    count: usize,
    /// A later token sets them free. Their time, or [`NEVER`].
    time: i64,
    /// Time of the last quiet token before them. If it is their own, that token stands first.
    quiet_time: i64,
}

impl Pending {
    const fn none(time: i64) -> Self {
        Pending {
            tokens: [Delivered { kind: TokenKind::Nop, raw: 0, time: 0, bit: 0 }; PENDING],
            count: 0,
            time,
            quiet_time: 0,
        }
    }

    #[inline(always)]
    fn begin(&mut self, token: Delivered, quiet: Quiet) {
        self.tokens[0] = token;
        self.count = 1;
        self.time = token.time;
        self.quiet_time = quiet.time;
    }
}

/// Place and clock of the fast loop.
struct At {
    /// Bit of the chunk at which the block begins.
    origin: u64,
    /// Bit of the next token in the block.
    bit: u64,
    /// Bit of the last token with its padding, or of the last unit of padding; one of an earlier block wraps.
    last: u64,
    time: i64,
    quiet: Quiet,
    pending: Pending,
}

/// Bits in which the tokens of a block begin.
const BLOCK_BITS: u64 = BLOCK_BYTES as u64 * 8;

impl At {
    fn of(cursor: &RdnaCursor, quiet: Quiet, pending: Pending) -> Self {
        let mut at = At { origin: 0, bit: cursor.bit, last: cursor.bit, time: cursor.time, quiet, pending };
        at.next_block();
        at
    }

    /// Begins a block at the byte of the next token.
    fn next_block(&mut self) {
        let done = self.bit & !7;
        self.origin += done;
        self.bit -= done;
        self.last = self.last.wrapping_sub(done);
    }

    /// Bit of the next token in the chunk.
    fn place(&self) -> u64 {
        self.origin + self.bit
    }

    /// Bit of the last token in the chunk, of whose entry the padding is known.
    #[inline(always)]
    fn last_place(&self, pad: u64) -> u64 {
        self.origin.wrapping_add(self.last).wrapping_add(pad)
    }

    /// The same if `window` is what begins where the last token, or its padding, does.
    fn last_place_by(&self, table: &Table, window: u64) -> u64 {
        let entry = lookup(table, window);
        let has_pad = !entry.is_special() && self.last.wrapping_add(u64::from(entry.step)) == self.bit;
        self.last_place(if has_pad { u64::from(entry.pad) } else { 0 })
    }

    /// Remembers a quiet token (gfx10, gfx11).
    #[inline(always)]
    fn note_quiet(&mut self, kind: TokenKind, pad: u8) {
        let mut time = self.time;
        if kind == TokenKind::WaveReady {
            // It takes the time before, and waits for nothing if that is earlier than what waits.
            time = time.wrapping_sub(1);
            if time < self.pending.time && self.pending.count > 0 || time < self.quiet.time {
                return;
            }
        }
        self.quiet = Quiet { time, bit: self.last_place(u64::from(pad)) };
    }

    /// Steps over a token.
    #[inline(always)]
    fn pass(&mut self, entry: &Entry) {
        self.bit += u64::from(entry.step);
        self.time = self.time.wrapping_add(i64::from(entry.delta));
    }

    /// Steps over a token, and remembers it if it is one that others may have to go behind.
    #[inline(always)]
    fn step_over<const F: Form>(&mut self, entry: &Entry) {
        self.pass(entry);
        if F < GFX12 && entry.kind != TokenKind::Time {
            self.note_quiet(entry.kind, entry.pad);
        }
    }

    /// Steps over further tokens without effect on occupancy, as far as `window` reaches, of which `left` bits are known.
    /// They come in runs, and what was loaded once need not be loaded again.
    #[inline(always)]
    fn step_over_run<const F: Form>(&mut self, table: &Table, mut window: u64, mut left: u32, limit: u64) {
        while left >= u32::from(INDEX_BITS) && self.bit < limit {
            let entry = lookup(table, window);
            if !is_stepped_over::<F, true>(entry) {
                return;
            }
            self.last = self.bit;
            self.step_over::<F>(entry);
            window = window.wrapping_shr(u32::from(entry.step));
            left = left.saturating_sub(u32::from(entry.step));
        }
    }

    /// Steps over padding, a plain clock step or a MISC token.
    #[inline(always)]
    fn special<const F: Form>(&mut self, entry: &Entry, raw: u64, resyncs: bool) -> Special {
        let generation = generation::<F>();
        match entry.kind {
            TokenKind::Nop => {
                let unit = RdnaCursor::unit(generation);
                self.bit += padding(raw, unit);
                self.last = self.bit - unit;
                Special::Passed
            }
            TokenKind::Timestamp => {
                let stamp = Timestamp::decode(generation, raw);
                if stamp.lost || resyncs {
                    return Special::Careful;
                }
                self.bit += u64::from(entry.step);
                self.time = self.time.wrapping_add(stamp.step);
                if stamp.sample != 0 { Special::Sample(stamp.sample) } else { Special::Passed }
            }
            TokenKind::Misc => {
                self.bit += u64::from(entry.step);
                self.time = self.time.wrapping_add(late_delta(generation, TokenKind::Misc, raw));
                if F == GFX1250 || bits(raw, 16, 24) != 0 {
                    return Special::Misc;
                }
                if F < GFX12 {
                    self.note_quiet(TokenKind::Misc, 0);
                }
                Special::Passed
            }
            TokenKind::MediumTime => {
                self.bit += u64::from(entry.step);
                self.time = self.time.wrapping_add(late_delta(generation, TokenKind::MediumTime, raw));
                Special::Passed
            }
            _ => Special::Careful,
        }
    }
}

impl RdnaDecoder {
    /// Decodes what can be decoded of `data`, the chunk from its byte `base` on. Unless `is_last`, the end of the
    /// data is not the end of the chunk, and the last bytes are left for the next call. Returns the number of bytes
    /// that are not needed any more.
    pub(crate) fn run(&mut self, data: &[u8], base: u64, is_last: bool, out: &mut Outside<'_>) -> usize {
        self.is_last = is_last;
        loop {
            if !self.is_careful() {
                if self.only_occupancy {
                    self.run_generation::<true>(data, base, out);
                } else {
                    self.run_generation::<false>(data, base, out);
                }
            }
            if !self.step(data, base, out) {
                break;
            }
        }
        if is_last {
            if RdnaCursor::is_strict(self.generation) {
                self.run_tail(data, base, out);
            } else {
                self.run_tail_in_order(data, base, out);
            }
        }
        // The window of the last token is looked at once more in the tail.
        let needed = self.cursor.window_end.saturating_sub(WINDOW_BITS) / 8;
        (needed.saturating_sub(base) as usize).min(data.len())
    }

    fn run_generation<const ONLY_OCCUPANCY: bool>(&mut self, data: &[u8], base: u64, out: &mut Outside<'_>) {
        match self.generation {
            Generation::Gfx10 | Generation::Gfx9 => self.run_fast::<GFX10, ONLY_OCCUPANCY>(data, base, out),
            Generation::Gfx11 => self.run_fast::<GFX11, ONLY_OCCUPANCY>(data, base, out),
            Generation::Gfx12 => self.run_fast::<GFX12, ONLY_OCCUPANCY>(data, base, out),
            Generation::Gfx1250 => self.run_fast::<GFX1250, ONLY_OCCUPANCY>(data, base, out),
        }
    }

    /// Whether the next token is more than the fast loop can take.
    fn is_careful(&self) -> bool {
        #[cfg(test)]
        if self.is_slow {
            return true;
        }
        self.cursor.continues
            || self.is_attentive
            || self.holds_header
            // Left over from a header of gfx1250, the only generation that has clusters.
            || self.cluster != 0 && self.generation != Generation::Gfx1250
            || !self.header.is_native_to(self.generation)
    }

    /// Takes tokens up to one that needs a careful step, or the end of the data.
    fn run_fast<const F: Form, const ONLY_OCCUPANCY: bool>(
        &mut self,
        data: &[u8],
        base: u64,
        out: &mut Outside<'_>,
    ) {
        let pending = Pending::none(if self.held.is_empty() { i64::MIN } else { NEVER });
        let mut at = At::of(&self.cursor, self.quiet, pending);
        let start = at.place();
        let origin = base * 8;
        let end = origin + RdnaCursor::fast_end(data.len());
        let resyncs = out.recovery == Recovery::Resync;
        let mut block = [0; BLOCK_BYTES + 16];
        while at.place() < end {
            fill(&mut block, data, ((at.origin - origin) >> 3) as usize);
            let limit = (end - at.origin).min(BLOCK_BITS);
            if !self.run_block::<F, ONLY_OCCUPANCY>(&block, limit, resyncs, &mut at, out) {
                break;
            }
            at.next_block();
        }
        self.hold_pending(&mut at);
        if at.place() != start {
            let last = window_padded(data, at.last_place(0) - origin);
            self.cursor.window_end = at.last_place_by(table(self.generation), last) + WINDOW_BITS;
        }
        self.cursor.bit = at.place();
        self.cursor.time = at.time;
        self.quiet = at.quiet;
    }

    /// Takes the tokens that begin in the first `limit` bits of a block; false if one needs a careful step.
    #[inline(always)]
    fn run_block<const F: Form, const ONLY_OCCUPANCY: bool>(
        &mut self,
        block: &Block,
        limit: u64,
        resyncs: bool,
        at: &mut At,
        out: &mut Outside<'_>,
    ) -> bool {
        let table = table(generation::<F>());
        while at.bit < limit {
            let wide = Wide::in_block(block, at.bit);
            let shift = (at.bit & 7) as u32;
            let entry = lookup(table, wide.low(shift));
            at.last = at.bit;
            if is_stepped_over::<F, ONLY_OCCUPANCY>(entry) {
                at.step_over::<F>(entry);
                if ONLY_OCCUPANCY {
                    let step = u32::from(entry.step);
                    let rest = wide.low(shift).wrapping_shr(step);
                    at.step_over_run::<F>(table, rest, (64 - shift).saturating_sub(step), limit);
                }
                continue;
            }
            let mut token = Delivered { kind: entry.kind, raw: 0, time: 0, bit: 0 };
            let mut pad = 0;
            if entry.is_special() {
                token.raw = wide.window(shift);
                match at.special::<F>(entry, token.raw, resyncs) {
                    Special::Passed => continue,
                    Special::Careful => return false,
                    Special::Misc => {}
                    Special::Sample(value) if self.fills_samples(generation::<F>(), value, at.time, out) => {
                        return false;
                    }
                    Special::Sample(_) => continue,
                }
            } else {
                pad = entry.pad;
                token.raw = wide.window(shift + u32::from(pad));
                at.pass(entry);
                if entry.kind == TokenKind::Reg && !is_watched_register::<F>(token.raw) {
                    if F < GFX12 {
                        at.note_quiet(TokenKind::Reg, pad);
                    }
                    continue;
                }
            }
            token.time = at.time;
            if F < GFX12 {
                token.bit = at.last_place(u64::from(pad));
                self.take_in_order::<F>(token, at, out);
                continue;
            }
            match token.kind {
                TokenKind::ValuInst if F == GFX1250 => token.raw = self.recent_slot(token.raw),
                TokenKind::Inst if F == GFX1250 => self.touch_recent(token.raw),
                _ => {}
            }
            self.apply::<F>(token, false, out);
        }
        true
    }

    /// Stores a sample of the real-time clock; says whether samples must be handed over now.
    #[inline(never)]
    fn fills_samples(
        &mut self,
        generation: Generation,
        value: u64,
        time: i64,
        out: &mut Outside<'_>,
    ) -> bool {
        store(&mut self.realtime, Storing::at(generation, true), time, value, &mut out.emitter);
        self.is_attentive = self.realtime.is_full();
        self.is_attentive
    }

    /// Takes a token on gfx10 and gfx11: those before it are due if their time is earlier.
    #[inline(always)]
    fn take_in_order<const F: Form>(&mut self, mut token: Delivered, at: &mut At, out: &mut Outside<'_>) {
        // One clock late: it takes the time before its own.
        token.time = token.time.wrapping_sub(i64::from(token.kind == TokenKind::WaveReady));
        let pending = &mut at.pending;
        if token.time > pending.time {
            for due in 0..pending.count {
                self.apply::<F>(pending.tokens[due % PENDING], false, out);
            }
            pending.begin(token, at.quiet);
        } else if token.time == pending.time && (1..PENDING).contains(&pending.count) {
            pending.tokens[pending.count] = token;
            pending.count += 1;
        } else {
            self.collide::<F>(token, at, out);
        }
    }

    /// Takes a token that is earlier than the pending ones, or one of too many of one time.
    #[inline(never)]
    fn collide<const F: Form>(&mut self, token: Delivered, at: &mut At, out: &mut Outside<'_>) {
        if at.pending.count > 0 && token.time < at.pending.time {
            // It overtakes those that wait.
            return self.apply::<F>(token, false, out);
        }
        self.hold_pending(at);
        if self.held.last().is_some_and(|last| last.time < token.time) {
            self.release::<F>(out);
            at.pending.begin(token, at.quiet);
        } else {
            self.hold::<F>(token, at.quiet.time, out);
            at.pending.time = NEVER;
        }
    }

    /// Puts the pending tokens among those held back.
    fn hold_pending(&mut self, at: &mut At) {
        if at.pending.count > 0 {
            self.follows_quiet = at.pending.quiet_time == at.pending.time;
            self.held.extend_from_slice(&at.pending.tokens[..at.pending.count]);
        }
        (at.pending.count, at.pending.time) = (0, if self.held.is_empty() { i64::MIN } else { NEVER });
    }

    /// Takes a TIMESTAMP; returns the clock after it.
    #[inline]
    pub(super) fn timestamp(&mut self, raw: u64, time: i64, storing: Storing, out: &mut Outside<'_>) -> i64 {
        let stamp = Timestamp::decode(self.generation, raw);
        let time = time.wrapping_add(stamp.step);
        self.loss_pending |= stamp.lost;
        store(&mut self.realtime, storing, time, stamp.sample, &mut out.emitter);
        self.is_attentive = self.loss_pending || self.realtime.is_full();
        time
    }

    /// A gfx1250 VALU_INST in the form of the other generations.
    #[inline]
    pub(super) fn recent_slot(&mut self, raw: u64) -> u64 {
        u64::from(self.recent.take(raw)) << 7
    }

    /// An INST of gfx1250 that makes its wave a recent one.
    #[inline]
    pub(super) fn touch_recent(&mut self, raw: u64) {
        let code = bits(raw, 12, 20) as u8;
        if (RECENT.0..=RECENT.1).contains(&code) {
            self.recent.touch(bits(raw, 7, 12) as u8);
        }
    }
}
