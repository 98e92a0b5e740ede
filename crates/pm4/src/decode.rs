//! Dwords to packets.

use crate::cache::AcquireMem;
use crate::copy_data::{CopyControl, CopyData};
use crate::error::Error;
use crate::opcode::Opcode;
use crate::packet::{EventWrite, IndirectBuffer, Packet, PredExec, Unknown};
use crate::set_regs::{RegisterSpace, SetRegs};
use crate::wait::WaitRegMem;

/// A packet with its place in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located<'a> {
    /// Dword offset of the header.
    pub offset: usize,
    /// The header as it stands; bits 1:0 may be set by builders other than ours.
    pub header: u32,
    /// What it is.
    pub packet: Packet<'a>,
}

/// Walks a command buffer.
///
/// After [`Error::NotType3`] it goes on with the next dword, after [`Error::Length`] with the next packet;
/// [`Error::Truncated`] ends it.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    dwords: &'a [u32],
    offset: usize,
}

impl<'a> Decoder<'a> {
    /// Starts at the first dword.
    pub const fn new(dwords: &'a [u32]) -> Self {
        Self { dwords, offset: 0 }
    }

    /// Dword offset of the next packet.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Leaves out `dwords` dwords, or what is left of the buffer: a false PRED_EXEC skips its body so.
    pub fn skip_dwords(&mut self, dwords: usize) {
        self.offset = self.offset.saturating_add(dwords).min(self.dwords.len());
    }

    fn packet(&mut self) -> Result<Located<'a>, Error> {
        let offset = self.offset;
        let rest = &self.dwords[offset..];
        let header = rest[0];
        if header >> 30 != 3 {
            self.offset += 1;
            return Err(Error::NotType3 { offset, value: header });
        }
        let count = header >> 16 & 0x3FFF;
        let body_len = if count == 0x3FFF { 0 } else { count as usize + 1 };
        let Some(body) = rest.get(1..=body_len) else {
            self.offset = self.dwords.len();
            let (needed, available) = (body_len + 1, rest.len());
            return Err(Error::Truncated { offset, value: header, needed, available });
        };
        self.offset += 1 + body_len;
        let opcode = Opcode((header >> 8) as u8);
        let packet =
            parse(opcode, body).ok_or(Error::Length { offset, value: header, dwords: body_len + 1 })?;
        Ok(Located { offset, header, packet })
    }
}

impl<'a> Iterator for Decoder<'a> {
    type Item = Result<Located<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.offset < self.dwords.len()).then(|| self.packet())
    }
}

const fn join(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// `None` when the opcode's layout has another length.
fn parse(opcode: Opcode, body: &[u32]) -> Option<Packet<'_>> {
    Some(match opcode {
        Opcode::SET_SH_REG => Packet::SetRegs(set_regs(RegisterSpace::Sh, body)?),
        Opcode::SET_UCONFIG_REG => Packet::SetRegs(set_regs(RegisterSpace::Uconfig, body)?),
        Opcode::EVENT_WRITE => {
            let &[event] = body else { return None };
            Packet::EventWrite(EventWrite(event))
        }
        Opcode::COPY_DATA => {
            let &[control, from_lo, from_hi, to_lo, to_hi] = body else { return None };
            let (source, destination) = (join(from_lo, from_hi), join(to_lo, to_hi));
            Packet::CopyData(CopyData { control: CopyControl(control), source, destination })
        }
        Opcode::ACQUIRE_MEM => Packet::AcquireMem(acquire_mem(body)?),
        Opcode::WAIT_REG_MEM => {
            let &[control, address_lo, address_hi, reference, mask, poll_interval] = body else {
                return None;
            };
            let address = join(address_lo, address_hi);
            Packet::WaitRegMem(WaitRegMem { control, address, reference, mask, poll_interval })
        }
        Opcode::PRED_EXEC => {
            let &[predicate] = body else { return None };
            Packet::PredExec(PredExec(predicate))
        }
        Opcode::INDIRECT_BUFFER => {
            let &[address_lo, address_hi, control] = body else { return None };
            Packet::IndirectBuffer(IndirectBuffer { address: join(address_lo, address_hi), control })
        }
        _ => Packet::Unknown(Unknown { opcode, body }),
    })
}

fn set_regs(space: RegisterSpace, body: &[u32]) -> Option<SetRegs<'_>> {
    let (&offset, values) = body.split_first()?;
    (!values.is_empty()).then_some(SetRegs { space, offset, values })
}

fn acquire_mem(body: &[u32]) -> Option<AcquireMem> {
    let (fields, gcr_cntl) = match body {
        [fields @ .., gcr_cntl] if body.len() == 7 => (fields, Some(*gcr_cntl)),
        fields => (fields, None),
    };
    let &[coher_cntl, size_lo, size_hi, base_lo, base_hi, poll_interval] = fields else { return None };
    let (size, base) = (join(size_lo, size_hi), join(base_lo, base_hi));
    Some(AcquireMem { coher_cntl, size, base, poll_interval, gcr_cntl })
}
