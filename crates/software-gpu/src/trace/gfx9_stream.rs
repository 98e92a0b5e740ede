//! Events to the gfx9 token stream, with time.
//!
//! Small steps ride on the tokens, longer ones on MISC tokens before them; a long silence is bridged as the hardware
//! does it: a MISC time reset, then a TIME token with the absolute clock.

use super::event::{Event, Instruction, Location};
use crate::sqtt::BitWriter;
use crate::sqtt::gfx9::{MISC_STEPS, Pipe, Place, TOKEN_STEPS, Token, issue, misc};
use crate::walk::Unit;

/// Clocks of one step.
const CLOCKS: u64 = 4;
/// Steps from which a reset with TIME (10 bytes) is shorter than a row of MISC tokens (2 bytes each).
const RESET_STEPS: u64 = 4 * MISC_STEPS;
/// Every compute queue appears as the first ME's first pipe.
const PIPE: Pipe = Pipe { me: 0, pipe: 0 };
/// REG's type for a user-config register, as captures show it.
const REG_UCONFIG: u8 = 3;
/// Pseudo register of REG_CS that announces events; its data is the event type.
const REG_EVENT: u8 = 0x7F;
const CS_PARTIAL_FLUSH: u32 = 7;

/// Which tokens SQ_THREAD_TRACE_TOKEN_MASK lets through: bit positions.
mod enable {
    pub(super) const REG: u32 = 2;
    pub(super) const WAVE_START: u32 = 3;
    pub(super) const REG_CS: u32 = 5;
    pub(super) const WAVE_END: u32 = 6;
    pub(super) const INST: u32 = 10;
    pub(super) const INST_PC: u32 = 11;
    pub(super) const ISSUE: u32 = 13;
    pub(super) const PERF: u32 = 14;
    pub(super) const REG_CS_PRIV: u32 = 15;
}

/// Encoder state of one shader engine.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// Cycle up to which the tokens have told time.
    cycle: u64,
    token_mask: u32,
    /// Which INST tokens SQ_THREAD_TRACE_TOKEN_MASK2 lets through, by the number of their kind.
    inst_mask: u32,
}

impl Stream {
    /// Begins a stream at `cycle`: a time reset and the absolute clock.
    pub(crate) fn begin(cycle: u64, token_mask: u32, inst_mask: u32, out: &mut BitWriter) -> Self {
        let stream = Self { cycle: cycle / CLOCKS * CLOCKS, token_mask, inst_mask };
        stream.reset(out);
        stream
    }

    /// Writes an event. A cycle before the last token's counts as that token's.
    pub(crate) fn event(&mut self, cycle: u64, event: &Event, out: &mut BitWriter) {
        let Some((token, bit)) = token(event) else { return };
        if self.token_mask >> bit & 1 == 0 {
            return;
        }
        if matches!(token, Token::Inst { code, .. } if self.inst_mask >> code & 1 == 0) {
            return;
        }
        let steps = self.advance(cycle, out);
        token.write(steps, out);
    }

    /// Tells that tokens were lost before `cycle`.
    pub(crate) fn lost(&mut self, cycle: u64, out: &mut BitWriter) {
        let steps = self.advance(cycle, out);
        Token::Misc { sh: 0, kind: misc::LOST }.write(steps, out);
    }

    /// Brings time to within a token's own step of `cycle` and returns that step.
    fn advance(&mut self, cycle: u64, out: &mut BitWriter) -> u64 {
        let target = cycle.max(self.cycle) / CLOCKS * CLOCKS;
        let mut steps = (target - self.cycle) / CLOCKS;
        self.cycle = target;
        if steps > RESET_STEPS {
            self.reset(out);
            return 0;
        }
        while steps > TOKEN_STEPS {
            let step = steps.min(MISC_STEPS);
            Token::Misc { sh: 0, kind: misc::TIME }.write(step, out);
            steps -= step;
        }
        steps
    }

    fn reset(&self, out: &mut BitWriter) {
        Token::Misc { sh: 0, kind: misc::TIME_RESET }.write(MISC_STEPS, out);
        Token::Time { clock: self.cycle }.write(0, out);
    }
}

fn place(location: &Location) -> Place {
    Place { sh: location.sa, cu: location.unit, slot: location.slot, simd: location.simd }
}

/// The token of an event and the mask bit that enables it.
fn token(event: &Event) -> Option<(Token, u32)> {
    Some(match event {
        &Event::Compute { register, value } => {
            (Token::RegCs { pipe: PIPE, register, data: value, private: true }, enable::REG_CS_PRIV)
        }
        &Event::UserData { register, value } => {
            let kind = REG_UCONFIG;
            (Token::Reg { pipe: PIPE, mark: false, kind, valid: true, register, data: value }, enable::REG)
        }
        Event::WaveStart { location, lanes, .. } => (
            Token::WaveStart { place: place(location), pipe: PIPE, lanes: *lanes, group: 0 },
            enable::WAVE_START,
        ),
        Event::WaveEnd { location } => (Token::WaveEnd { place: place(location) }, enable::WAVE_END),
        Event::Ready { location } => (issue_token(location, issue::STALLED), enable::ISSUE),
        Event::Issue { location, instruction } => {
            let mark = if instruction.unit == Unit::Immediate { issue::IMMEDIATE } else { issue::ISSUED };
            (issue_token(location, mark), enable::ISSUE)
        }
        Event::Done { location, instruction } => {
            let code = inst_code(instruction);
            (Token::Inst { simd: location.simd, slot: location.slot, code }, enable::INST)
        }
        &Event::NewPc { location, pc } => {
            (Token::InstPc { simd: location.simd, slot: location.slot, error: false, pc }, enable::INST_PC)
        }
        &Event::Sample { unit, bank, counters } => {
            (Token::Perf { sh: 0, cu: unit, bank, counters }, enable::PERF)
        }
        Event::Idle => {
            let data = CS_PARTIAL_FLUSH;
            (Token::RegCs { pipe: PIPE, register: REG_EVENT, data, private: false }, enable::REG_CS)
        }
        // The write of the dispatch initiator says it.
        Event::DispatchStart => return None,
        Event::Other(event) => {
            let data = u32::from(event.event_type());
            (Token::RegCs { pipe: PIPE, register: REG_EVENT, data, private: false }, enable::REG_CS)
        }
    })
}

fn issue_token(location: &Location, mark: u8) -> Token {
    let mut slots = [issue::NONE; 10];
    if let Some(slot) = slots.get_mut(usize::from(location.slot)) {
        *slot = mark;
    }
    Token::Issue { simd: location.simd, slots }
}

/// A taken branch has a number of its own.
const fn inst_code(instruction: &Instruction) -> u8 {
    const TAKEN: u8 = 12;
    if matches!(instruction.unit, Unit::Branch) && instruction.taken { TAKEN } else { instruction.code }
}
