//! Events to the gfx10, gfx11 and gfx12 token streams, with time.
//!
//! A step of time rides on its token if it is small; else a TIME, MISC or TIMESTAMP token comes before it, as in
//! captures.

use wavescope_pm4::EventWrite;

use super::event::{Event, Instruction, Location, compute};
use crate::sqtt::BitWriter;
use crate::sqtt::rdna::{Header, Layout, Pipe, Stamp, Token};
use crate::walk::{ONE_PASS, Unit};

/// Every compute queue appears as the second micro-engine's first pipe, as captures show it.
const PIPE: Pipe = Pipe { me: 1, pipe: 0 };
/// REG_INIT's type for a dispatch, and the dispatch initiator as captures show it.
const REG_INIT_DISPATCH: u8 = 2;
const INITIATE: u32 = 0x8045;
/// Pseudo register that announces an event; its data is the event type.
const REG_EVENT: u16 = 0xFF;

/// Bits of SQ_THREAD_TRACE_TOKEN_MASK (kernel `gc_*_sh_mask.h`, `SQ_TT_TOKEN_MASK_TOKEN_EXCLUDE`, `_REG_INCLUDE`).
mod mask {
    pub(super) const EXCLUDE_VALU: u32 = 1 << 2;
    pub(super) const EXCLUDE_READY: u32 = 1 << 3;
    pub(super) const EXCLUDE_WAVES: u32 = 1 << 4;
    pub(super) const EXCLUDE_IMMEDIATE: u32 = 1 << 5;
    pub(super) const EXCLUDE_REG: u32 = 1 << 6;
    pub(super) const EXCLUDE_EVENT: u32 = 1 << 7;
    pub(super) const EXCLUDE_INST: u32 = 1 << 8;
    /// gfx12.
    pub(super) const EXCLUDE_BARRIER_WAIT: u32 = 1 << 14;
    pub(super) const INCLUDE_COMPUTE: u32 = 1 << 19;
}

/// Zero bits behind the last token, so that no rule about the end of a buffer touches it.
const TAIL_BITS: u32 = 64;

/// Encoder state of one shader engine.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    layout: Layout,
    /// Cycle up to which the tokens have told time.
    cycle: u64,
    token_mask: u32,
    real_time: Option<RealTime>,
}

/// Samples of the real-time clock in the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RealTime {
    /// Engine cycles of one tick.
    pub(crate) cycles_per_tick: u64,
    /// Cycles after which the next token is followed by a sample.
    pub(crate) interval: u64,
    /// Cycle of the last one.
    pub(crate) last: Option<u64>,
}

impl Stream {
    /// Begins a stream at `cycle` with its header.
    pub(crate) fn begin(
        layout: Layout,
        header: Header,
        cycle: u64,
        token_mask: u32,
        real_time: Option<RealTime>,
        out: &mut BitWriter,
    ) -> Self {
        Token::Header(header).write(layout, 0, out);
        Self { layout, cycle, token_mask, real_time }
    }

    /// Writes an event's tokens. A cycle before the last token's counts as that token's.
    pub(crate) fn event(&mut self, cycle: u64, event: &Event, out: &mut BitWriter) {
        let shows = |bit| self.token_mask & bit == 0;
        let registers = shows(mask::EXCLUDE_REG);
        let compute = registers && !shows(mask::INCLUDE_COMPUTE);
        match *event {
            // The initiator is seen as REG_INIT.
            Event::Compute { register: compute::DISPATCH_INITIATOR, .. } => {}
            Event::Compute { register, value } if compute => self.compute(cycle, register.into(), value, out),
            Event::DispatchStart if registers => self.token(cycle, &DISPATCH_START, out),
            Event::UserData { register, value } if registers => {
                self.register(cycle, register, value, false, out)
            }
            Event::WaveStart { location, lanes, wave_size } if shows(mask::EXCLUDE_WAVES) => {
                self.token(cycle, &wave_start(location, lanes, wave_size), out);
            }
            Event::WaveEnd { location } if shows(mask::EXCLUDE_WAVES) => {
                self.token(cycle, &Token::WaveEnd { location }, out);
            }
            Event::Ready { location } => self.ready(cycle, &location, out),
            Event::Issue { location, instruction } => self.issue(cycle, &location, &instruction, out),
            Event::NewPc { location, pc } if shows(mask::EXCLUDE_INST) => {
                self.token(cycle, &Token::NewPc { slot: location.slot, pc, error: false }, out);
            }
            Event::Idle => self.command_event(cycle, EventWrite::CS_PARTIAL_FLUSH, out),
            Event::Other(event) => self.command_event(cycle, event, out),
            Event::Compute { .. }
            | Event::DispatchStart
            | Event::UserData { .. }
            | Event::WaveStart { .. }
            | Event::WaveEnd { .. }
            | Event::Done { .. }
            | Event::Sample { .. }
            | Event::NewPc { .. } => {}
        }
    }

    /// Ends the stream.
    pub(crate) fn end(&self, out: &mut BitWriter) {
        (0..TAIL_BITS / 4).for_each(|_| Token::Nop.write(self.layout, 0, out));
    }

    fn ready(&mut self, cycle: u64, location: &Location, out: &mut BitWriter) {
        /// Slots that the token has a bit for.
        const SLOTS: u8 = 16;
        if self.token_mask & mask::EXCLUDE_READY == 0 && location.slot < SLOTS {
            self.token(cycle, &Token::WaveReady { slots: 1 << location.slot }, out);
        }
    }

    fn issue(&mut self, cycle: u64, location: &Location, instruction: &Instruction, out: &mut BitWriter) {
        let slot = location.slot;
        let (token, exclude) = match instruction.unit {
            // WAVE_END says it.
            Unit::Skip | Unit::End => return,
            Unit::Immediate => (Token::ImmOne { slot }, mask::EXCLUDE_IMMEDIATE),
            Unit::Valu if instruction.code == ONE_PASS => {
                (Token::ValuInst { half: false, slot }, mask::EXCLUDE_VALU)
            }
            Unit::BarrierWait if self.layout == Layout::Gfx12 => {
                (inst(slot, instruction), mask::EXCLUDE_INST | mask::EXCLUDE_BARRIER_WAIT)
            }
            _ => (inst(slot, instruction), mask::EXCLUDE_INST),
        };
        if self.token_mask & exclude == 0 {
            self.token(cycle, &token, out);
        }
    }

    fn command_event(&mut self, cycle: u64, event: EventWrite, out: &mut BitWriter) {
        let id = event.event_type();
        let excluded = |bit| self.token_mask & bit != 0;
        let (registers, events) = (!excluded(mask::EXCLUDE_REG), !excluded(mask::EXCLUDE_EVENT));
        if registers && excluded(mask::INCLUDE_COMPUTE) {
            self.register(cycle, REG_EVENT, id.into(), true, out);
        }
        if events {
            /// Events of a compute queue.
            const COMPUTE: u8 = 2;
            self.token(cycle, &Token::Event { bottom: false, kind: COMPUTE, pipe: PIPE, id }, out);
        }
    }

    fn compute(&mut self, cycle: u64, register: u16, value: u32, out: &mut BitWriter) {
        self.register(cycle, register, value, true, out);
    }

    fn register(&mut self, cycle: u64, register: u16, data: u32, compute: bool, out: &mut BitWriter) {
        self.token(cycle, &Token::Reg { pipe: PIPE, rdp: false, context: 0, compute, register, data }, out);
    }

    fn token(&mut self, cycle: u64, token: &Token, out: &mut BitWriter) {
        let step = cycle.saturating_sub(self.cycle);
        self.cycle += step;
        let own = if step <= token.steps(self.layout).1 {
            step
        } else {
            self.pass(step, out);
            0
        };
        token.write(self.layout, own, out);
        self.sample_clock(out);
    }

    fn sample_clock(&mut self, out: &mut BitWriter) {
        let (layout, cycle) = (self.layout, self.cycle);
        let Some(clock) = &mut self.real_time else { return };
        if clock.last.is_none_or(|last| cycle - last >= clock.interval) {
            clock.last = Some(cycle);
            let value = cycle / clock.cycles_per_tick;
            Token::Timestamp { stamp: Stamp::RealTime, lost: false, tag: false, value }.write(layout, 0, out);
        }
    }

    /// Tells that tokens were lost before `cycle`.
    pub(crate) fn lost(&mut self, cycle: u64, out: &mut BitWriter) {
        /// Flag of MISC.
        const LOST: u8 = 1;
        if self.layout == Layout::Gfx10 {
            return self.token(cycle, &Token::Misc { flags: LOST, cluster: None }, out);
        }
        let step = cycle.saturating_sub(self.cycle);
        self.cycle += step;
        let token = Token::Timestamp { stamp: Stamp::Elapsed, lost: true, tag: false, value: step };
        token.write(self.layout, step, out);
    }

    /// Lets `step` clocks pass, more than three.
    fn pass(&self, step: u64, out: &mut BitWriter) {
        let time = Token::Time { alternate: false };
        let misc = Token::Misc { flags: 0, cluster: None };
        let stamp = Token::Timestamp { stamp: Stamp::Elapsed, lost: false, tag: false, value: step };
        let shortest = [time, misc].into_iter().find(|token| step <= token.steps(self.layout).1);
        shortest.unwrap_or(stamp).write(self.layout, step, out);
    }
}

/// A taken branch has a number of its own.
fn inst(slot: u8, instruction: &Instruction) -> Token {
    const TAKEN: u16 = 3;
    let taken = instruction.unit == Unit::Branch && instruction.taken;
    let code = if taken { TAKEN } else { instruction.code.into() };
    Token::Inst { odd: false, half: false, slot, code }
}

/// What is seen of a dispatch's initiator.
const DISPATCH_START: Token =
    Token::RegInit { vmid: 0, pipe: PIPE, kind: REG_INIT_DISPATCH, data: INITIATE, sync: 0 };

fn wave_start(location: Location, lanes: u8, wave_size: u8) -> Token {
    let count = count(lanes, wave_size);
    Token::WaveStart { location, queue: 0, pipe: PIPE, dispatcher: 0, count, extension: None }
}

/// WAVE_START's count: captures of waves of 32 show the active lanes less one below two set bits; waves of 64 need
/// the sixth bit themselves.
fn count(lanes: u8, wave_size: u8) -> u8 {
    let lanes = lanes.saturating_sub(1);
    if wave_size == 32 { 0x60 | lanes } else { lanes }
}
