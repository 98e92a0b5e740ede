//! Packets to dwords.

use crate::opcode::Opcode;
use crate::packet::{Packet, Unknown};

/// A type-3 header for a body of `body` dwords (kernel `nvd.h`, `PACKET3`). Count 0x3FFF means no body.
const fn header(opcode: Opcode, body: usize) -> u32 {
    3 << 30 | ((body as u32).wrapping_sub(1) & 0x3FFF) << 16 | (opcode.0 as u32) << 8
}

const fn low(value: u64) -> u32 {
    value as u32
}

const fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

impl Packet<'_> {
    /// Appends the packet's dwords.
    pub fn encode(&self, out: &mut Vec<u32>) {
        let opcode = self.opcode();
        match *self {
            Self::SetRegs(set) => {
                out.extend([header(opcode, 1 + set.values.len()), set.offset]);
                out.extend_from_slice(set.values);
            }
            Self::EventWrite(event) => out.extend([header(opcode, 1), event.0]),
            Self::CopyData(copy) => {
                let (from, to) = (copy.source, copy.destination);
                out.extend([header(opcode, 5), copy.control.0, low(from), high(from), low(to), high(to)]);
            }
            Self::AcquireMem(acquire) => {
                let (size, base) = (acquire.size, acquire.base);
                let body = 6 + usize::from(acquire.gcr_cntl.is_some());
                out.extend([
                    header(opcode, body),
                    acquire.coher_cntl,
                    low(size),
                    high(size),
                    low(base),
                    high(base),
                ]);
                out.push(acquire.poll_interval);
                out.extend(acquire.gcr_cntl);
            }
            Self::WaitRegMem(wait) => {
                out.extend([header(opcode, 6), wait.control, low(wait.address), high(wait.address)]);
                out.extend([wait.reference, wait.mask, wait.poll_interval]);
            }
            Self::PredExec(predicate) => out.extend([header(opcode, 1), predicate.0]),
            Self::IndirectBuffer(buffer) => {
                out.extend([header(opcode, 3), low(buffer.address), high(buffer.address), buffer.control]);
            }
            Self::Unknown(Unknown { body, .. }) => {
                out.push(header(opcode, body.len()));
                out.extend_from_slice(body);
            }
        }
    }
}
