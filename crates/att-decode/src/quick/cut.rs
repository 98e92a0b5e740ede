//! Makes a chunk of its own out of a piece of one.

use std::ops::Range;

use super::walk::scan_until;
use super::{ScanState, TraceFormat};
use crate::error::Error;
use crate::generation::Generation;
use crate::program::{ComputeRegister, MARKER_REGISTER, Queue, SWITCH_ON, payload};

/// Shortest piece: a token of the widest kind must fit.
const MIN_PIECE: usize = 9;

/// Cuts the bytes of `range` out of a chunk and puts in front of them what a decoder needs: the header of the trace
/// and register writes that bring back `before`, the state in front of the chunk, and what the chunk changed of it.
/// The range must begin at a token; gfx12 tokens that begin in the middle of a byte cannot be cut at.
///
/// # Errors
///
/// [`Error::Range`] for a range that is too short or reaches behind the chunk.
pub fn cut(
    format: &TraceFormat,
    before: &ScanState,
    chunk: &[u8],
    is_first: bool,
    range: Range<usize>,
) -> Result<Vec<u8>, Error> {
    let Range { start: begin, end } = range;
    let fits = begin.checked_add(MIN_PIECE).is_some_and(|least| least <= end);
    let piece = chunk.get(begin..end).filter(|_| fits && chunk.len() > Generation::HEADER_BYTES);
    let piece = piece.ok_or(Error::Range { begin, end, bytes: chunk.len() })?;
    let mut state = before.clone();
    scan_until(format, chunk, is_first, begin, &mut |token| {
        state.take(format, &token);
    });
    let mut writes = Writes { format, bytes: format.header.to_le_bytes().to_vec() };
    writes.registers(&state);
    writes.code_objects(&state);
    writes.bytes.extend_from_slice(piece);
    Ok(writes.bytes)
}

/// Register writes as tokens without time.
struct Writes<'a> {
    format: &'a TraceFormat,
    bytes: Vec<u8>,
}

/// Queue of everything that exists once.
const FIRST_QUEUE: Queue = Queue::new(0, 0);

impl Writes<'_> {
    fn registers(&mut self, state: &ScanState) {
        let registers = &state.program.registers;
        for index in 0..Queue::COUNT as u8 {
            let queue = Queue::new(index >> 2, index & 3);
            let program = registers.pgm[queue.index()];
            let packet = registers.packet[queue.index()];
            self.pair(ComputeRegister::PGM_LO, ComputeRegister::PGM_HI, program, queue);
            let (low, high) = (ComputeRegister::DISPATCH_PKT_ADDR_LO, ComputeRegister::DISPATCH_PKT_ADDR_HI);
            self.pair(low, high, packet, queue);
        }
        let [x, y, z] = registers.threads;
        for (register, value) in [
            (ComputeRegister::NUM_THREAD_X, x),
            (ComputeRegister::NUM_THREAD_Y, y),
            (ComputeRegister::NUM_THREAD_Z, z),
            (ComputeRegister::PGM_RSRC1, registers.rsrc1),
            (ComputeRegister::PGM_RSRC2, registers.rsrc2),
            (ComputeRegister::PGM_RSRC3, registers.rsrc3),
        ] {
            self.compute(register, value, FIRST_QUEUE);
        }
    }

    fn pair(&mut self, low: ComputeRegister, high: ComputeRegister, value: u64, queue: Queue) {
        if value != 0 {
            self.compute(low, value as u32, queue);
            self.compute(high, (value >> 32) as u32, queue);
        }
    }

    fn code_objects(&mut self, state: &ScanState) {
        /// Tail word of a load that happened before the trace.
        const LOADED_BEFORE: u32 = 2;
        if !state.program.user_data.is_on() {
            return;
        }
        self.marker(SWITCH_ON);
        for (id, address, size) in state.program.code.active() {
            for (kind, value) in [
                (payload::ID_LO, id as u32),
                (payload::ID_HI, (id >> 32) as u32),
                (payload::SIZE_LO, size as u32),
                (payload::SIZE_HI, (size >> 32) as u32),
                (payload::ADDRESS_LO, address as u32),
                (payload::ADDRESS_HI, (address >> 32) as u32),
                (payload::TAIL, LOADED_BEFORE),
            ] {
                self.marker(payload::header(kind));
                self.marker(value);
            }
        }
    }

    fn compute(&mut self, register: ComputeRegister, value: u32, queue: Queue) {
        let (me, pipe) = (u64::from(queue.me), u64::from(queue.pipe));
        let (register, value) = (u64::from(register.0), u64::from(value));
        if self.format.generation == Generation::Gfx9 {
            let token = 0x5 | pipe << 5 | (1 - me) << 7 | register << 9 | value << 16;
            self.bytes.extend_from_slice(&token.to_le_bytes()[..6]);
        } else {
            let token = 0x9 | pipe << 7 | me << 9 | 1 << 15 | register << 16 | value << 32;
            self.bytes.extend_from_slice(&token.to_le_bytes());
        }
    }

    fn marker(&mut self, value: u32) {
        let (register, value) = (u64::from(MARKER_REGISTER), u64::from(value));
        let token = if self.format.generation == Generation::Gfx9 {
            0x2 | 1 << 7 | 1 << 15 | register << 16 | value << 32
        } else {
            0x9 | register << 16 | value << 32
        };
        self.bytes.extend_from_slice(&token.to_le_bytes());
    }
}
