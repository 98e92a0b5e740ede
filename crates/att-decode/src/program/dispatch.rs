//! Dispatch records from register values.

use super::{Program, Queue};
use crate::bits::bits;
use crate::record::{Dispatch, DispatchFlags};

/// Bytes per unit of the LDS size field.
const LDS_UNIT: u32 = 512;

/// Header version of gfx1250.
const GFX1250_VERSION: u8 = 5;

impl Program {
    /// The dispatch that the registers describe now, for a stream of this header version.
    pub(crate) fn dispatch(&self, time: i64, queue: Queue, version: u8) -> Dispatch {
        let registers = &self.registers;
        let (rsrc1, rsrc2) = (u64::from(registers.rsrc1), u64::from(registers.rsrc2));
        let doubled = if version >= GFX1250_VERSION { 2 } else { 1 };
        let lds = bits(rsrc2, 15, 24) as u32 * LDS_UNIT;
        let flags = bits(rsrc1, 10, 12) | bits(rsrc1, 14, 15) << 2 | bits(rsrc2, 0, 1) << 3;
        Dispatch {
            time,
            me_id: queue.me,
            pipe_id: queue.pipe,
            user_sgprs: bits(rsrc2, 1, 6) as u16,
            flags: DispatchFlags(flags as i32),
            vgprs: (bits(rsrc1, 0, 6) as u32 + 1) * 8 * doubled,
            sgprs: if version <= 1 { (bits(rsrc1, 7, 10) as u32 + 1) * 16 } else { 128 },
            lds_size: if version == 1 { lds * 10 / 4 } else { lds * doubled },
            thread_dim: registers.threads,
            dispatch_pkt_addr: 0,
            byte_offset: 0,
            entry_point: self.entry(queue),
        }
    }
}
