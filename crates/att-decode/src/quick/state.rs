//! Register values that flow from chunk to chunk.

use std::ops::ControlFlow;

use super::{Found, TraceFormat};
use crate::bits::bits;
use crate::program::{ComputeRegister, MARKER_REGISTER, Program, Queue};
use crate::rdna::pipeline_event;
use crate::record::{Event, EventFlags, EventKind, Record};
use crate::token::TokenKind;

/// State between two chunks of a trace. The default is the state before the first.
#[derive(Debug, Clone, Default)]
pub struct ScanState {
    pub(super) program: Program,
}

impl ScanState {
    /// Goes through what [`scan`](super::scan) found in the next chunk and delivers DISPATCH and EVENT records, with
    /// byte offsets in place of times. A break of `deliver` is handed back at once; the state is then of no use.
    pub fn replay<B>(
        &mut self,
        format: &TraceFormat,
        found: &[Found],
        mut deliver: impl FnMut(Record<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        for token in found {
            if let Some(record) = self.take(format, token) {
                deliver(record)?;
            }
        }
        ControlFlow::Continue(())
    }

    pub(super) fn take(&mut self, format: &TraceFormat, token: &Found) -> Option<Record<'static>> {
        let raw = token.raw;
        match token.kind {
            TokenKind::Reg if format.version() == 0 => {
                if bits(raw, 15, 16) == 1 {
                    self.marker(raw, gfx9_queue(raw));
                }
                None
            }
            TokenKind::Reg => {
                self.reg(raw);
                None
            }
            TokenKind::RegCs | TokenKind::RegCsPriv => self.reg_cs(format, token),
            TokenKind::RegInit => self.reg_init(format, token),
            TokenKind::Event => {
                let event = pipeline_event(raw, 0)?;
                Some(Record::Event(Event { byte_offset: token.byte_offset, ..event }))
            }
            _ => None,
        }
    }

    fn reg(&mut self, raw: u64) {
        let queue = Queue::new(bits(raw, 9, 11) as u8, bits(raw, 7, 9) as u8);
        if bits(raw, 15, 16) == 1 {
            let register = ComputeRegister(bits(raw, 16, 32) as u16);
            self.program.write(register, (raw >> 32) as u32, queue);
        } else {
            self.marker(raw, queue);
        }
    }

    fn marker(&mut self, raw: u64, queue: Queue) {
        if bits(raw, 16, 32) as u16 == MARKER_REGISTER {
            self.program.marker_word((raw >> 32) as u32, queue);
        }
    }

    fn reg_cs(&mut self, format: &TraceFormat, token: &Found) -> Option<Record<'static>> {
        let (register, data) =
            (ComputeRegister(bits(token.raw, 9, 16) as u16), bits(token.raw, 16, 48) as u32);
        let queue = gfx9_queue(token.raw);
        self.program.write(register, data, queue);
        match register {
            ComputeRegister::DISPATCH_INITIATOR if data & 1 == 1 => self.dispatch(format, queue, token),
            ComputeRegister::GFX9_EVENT if data == 7 => {
                let kind = EventKind::CsPartialFlush;
                let event = Event::of_pipe(kind, 0, queue.me, queue.pipe, EventFlags(0));
                Some(Record::Event(Event { byte_offset: token.byte_offset, ..event }))
            }
            _ => None,
        }
    }

    fn reg_init(&mut self, format: &TraceFormat, token: &Found) -> Option<Record<'static>> {
        let raw = token.raw;
        let begins_dispatch = bits(raw, 18, 20) == 2 && bits(raw, 20, 21) == 1;
        let queue = Queue::new(bits(raw, 16, 18) as u8, bits(raw, 14, 16) as u8);
        if begins_dispatch { self.dispatch(format, queue, token) } else { None }
    }

    fn dispatch(&self, format: &TraceFormat, queue: Queue, token: &Found) -> Option<Record<'static>> {
        let mut dispatch = self.program.dispatch(0, queue, format.version());
        dispatch.byte_offset = token.byte_offset;
        Some(Record::Dispatch(dispatch))
    }
}

/// Queue of a gfx9 register write: the micro-engine is coded one off.
fn gfx9_queue(raw: u64) -> Queue {
    Queue::new((bits(raw, 7, 9) as u8 + 1) & 1, bits(raw, 5, 7) as u8)
}
