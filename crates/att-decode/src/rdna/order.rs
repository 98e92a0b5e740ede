//! Order of delivery on gfx10 and gfx11.
//!
//! WAVE_READY comes one clock late there: it takes the time before. Tokens of one time are held back until a later
//! one arrives, so that a WAVE_READY of the time before can overtake them.

use std::collections::VecDeque;

use super::form::{BY_HEADER, Form};
use super::realtime::Storing;
use super::state::{Delivered, RdnaDecoder};
use crate::bits::window_padded;
use crate::quirks;
use crate::record::{Loss, LossKind};
use crate::session::Outside;
use crate::token::{RdnaCursor, TokenKind, WINDOW_BITS, is_padding, late_delta, lookup, table};

/// The last token read that does nothing on its own. The public decoder holds it back like any other, which shows
/// when a loss follows it; here it is stepped over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quiet {
    pub(super) time: i64,
    pub(super) bit: u64,
}

/// Earlier than any token.
const BEFORE_TIME: i64 = i64::MIN;

impl Quiet {
    /// None was read yet.
    pub(super) const NONE: Quiet = Quiet { time: BEFORE_TIME, bit: 0 };
}

impl RdnaDecoder {
    /// Holds a token back, or delivers what it shows to be due. A WAVE_READY has its earlier time. `quiet_time` is that of the last quiet token.
    #[inline(never)]
    pub(super) fn hold<const F: Form>(&mut self, token: Delivered, quiet_time: i64, out: &mut Outside<'_>) {
        match self.held.last() {
            Some(last) if token.time < last.time => return self.due::<F>(token, out),
            Some(last) if token.time > last.time => self.release::<F>(out),
            _ if self.held.len() >= out.limits.held_tokens as usize => self.release::<F>(out),
            _ => {}
        }
        if self.held.is_empty() {
            self.follows_quiet = quiet_time == token.time;
        }
        self.held.push(token);
    }

    /// Puts the last quiet token among those held back, where the public decoder has it: the loss just met belongs to
    /// the first of them.
    #[cold]
    pub(super) fn hold_quiet(&mut self, out: &mut Outside<'_>) {
        let Quiet { time, bit } = self.quiet;
        let token = Delivered { kind: TokenKind::EventSync, raw: 0, time, bit };
        match self.held.last() {
            Some(last) if time > last.time => {
                // These were due before the loss.
                self.loss_pending = false;
                self.release::<BY_HEADER>(out);
                (self.loss_pending, self.is_attentive) = (true, true);
                self.held.push(token);
            }
            None if time > BEFORE_TIME => self.held.push(token),
            _ if self.follows_quiet => self.held.insert(0, token),
            _ => {}
        }
    }

    /// Delivers one token. In the fast loop none follows a loss.
    #[inline(always)]
    fn due<const F: Form>(&mut self, token: Delivered, out: &mut Outside<'_>) {
        if F == BY_HEADER { self.take(token, out) } else { self.apply::<F>(token, false, out) }
    }

    /// Delivers everything held back.
    #[inline(never)]
    pub(super) fn release<const F: Form>(&mut self, out: &mut Outside<'_>) {
        let mut at = 0;
        while let Some(&token) = self.held.get(at) {
            self.due::<F>(token, out);
            at += 1;
        }
        self.held.clear();
    }

    /// The last bytes: what lies behind the end reads as zero, a token cut off is taken all the same.
    pub(super) fn run_tail_in_order(&mut self, data: &[u8], base: u64, out: &mut Outside<'_>) {
        let mut tail =
            Tail { data, base, end: (base + data.len() as u64) * 8, queue: self.held.drain(..).collect() };
        loop {
            let is_padding_ahead =
                !self.cursor.is_in_main(tail.end) && tail.queue.is_empty() && tail.window_before(self) == 0;
            if quirks::GIVES_UP_BEHIND_PADDING && is_padding_ahead {
                return;
            }
            let Some(token) = tail.next(self, out) else { return };
            self.take(token, out);
        }
    }
}

/// The careful reader of the last bytes.
struct Tail<'a> {
    data: &'a [u8],
    base: u64,
    end: u64,
    queue: VecDeque<Delivered>,
}

impl Tail<'_> {
    /// Window of the token read last; empty before the first.
    fn window_before(&self, decoder: &RdnaDecoder) -> u64 {
        match decoder.cursor.window_end {
            0 => 0,
            end => window_padded(self.data, (end - WINDOW_BITS).saturating_sub(self.base * 8)),
        }
    }

    /// The next token due.
    fn next(&mut self, decoder: &mut RdnaDecoder, out: &mut Outside<'_>) -> Option<Delivered> {
        while decoder.cursor.is_in_main(self.end) || !self.queue.is_empty() {
            if self.is_due() || !self.queue.is_empty() && !decoder.cursor.is_in_main(self.end) {
                return self.queue.pop_front();
            }
            self.read(decoder, out);
        }
        loop {
            let has_more = decoder.cursor.window_end < self.end || self.window_before(decoder) != 0;
            if self.is_due() || !has_more {
                return self.queue.pop_front();
            }
            self.read(decoder, out);
        }
    }

    /// Whether the first token is earlier than the last.
    fn is_due(&self) -> bool {
        matches!((self.queue.front(), self.queue.back()), (Some(first), Some(last)) if first.time < last.time)
    }

    /// Reads one token; it enters the queue unless it is padding or time.
    fn read(&mut self, decoder: &mut RdnaDecoder, out: &mut Outside<'_>) {
        let cursor = &mut decoder.cursor;
        let is_in_main = cursor.is_in_main(self.end);
        let (at, raw) = (cursor.bit, window_padded(self.data, cursor.bit - self.base * 8));
        cursor.window_end = at + WINDOW_BITS;
        if is_padding(raw) {
            cursor.bit += RdnaCursor::unit(decoder.generation);
            return;
        }
        let entry = *lookup(table(decoder.generation), raw);
        cursor.bit += u64::from(entry.step);
        let step = i64::from(entry.delta) + late_delta(decoder.generation, entry.kind, raw);
        cursor.time = cursor.time.wrapping_add(step);
        let mut token = Delivered { kind: entry.kind, raw, time: cursor.time, bit: at };
        if cursor.bit > self.end {
            let (byte_offset, bytes) = (at / 8, (self.end / 8).saturating_sub(at / 8));
            out.emitter.loss(Loss { kind: LossKind::CutOff, byte_offset, bytes, time: token.time });
        }
        match entry.kind {
            TokenKind::Time => return,
            TokenKind::Timestamp => {
                let storing = Storing::at(decoder.generation, is_in_main);
                decoder.cursor.time = decoder.timestamp(raw, token.time, storing, out);
                return;
            }
            TokenKind::WaveReady => token.time = token.time.wrapping_sub(1),
            _ => {}
        }
        match self.queue.back() {
            Some(last) if token.time < last.time => self.queue.push_front(token),
            _ => self.queue.push_back(token),
        }
    }
}
