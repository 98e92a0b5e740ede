//! What a shader engine reports to its trace, before any generation's encoding.

use wavescope_pm4::EventWrite;

pub(crate) use crate::sqtt::rdna::Location;
use crate::walk::Unit;

/// Compute registers that a dispatch sets before its waves start, by the number that they have in traces
/// (offset from COMPUTE_DISPATCH_INITIATOR).
pub(crate) mod compute {
    pub(crate) const DISPATCH_INITIATOR: u8 = 0x00;
    pub(crate) const NUM_THREAD_X: u8 = 0x07;
    pub(crate) const NUM_THREAD_Y: u8 = 0x08;
    pub(crate) const NUM_THREAD_Z: u8 = 0x09;
    pub(crate) const PGM_LO: u8 = 0x0C;
    pub(crate) const PGM_HI: u8 = 0x0D;
    pub(crate) const DISPATCH_PKT_ADDR_LO: u8 = 0x0E;
    pub(crate) const DISPATCH_PKT_ADDR_HI: u8 = 0x0F;
    pub(crate) const PGM_RSRC1: u8 = 0x12;
    pub(crate) const PGM_RSRC2: u8 = 0x13;
    pub(crate) const PGM_RSRC3: u8 = 0x2D;
}

/// An instruction, as far as traces tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) unit: Unit,
    /// Number of its kind in the generation's tokens.
    pub(crate) code: u8,
    /// Whether it is a branch that is taken.
    pub(crate) taken: bool,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A dispatch writes a compute register.
    Compute {
        register: u8,
        value: u32,
    },
    /// A dispatch begins; on gfx9 the write of the initiator register says it.
    DispatchStart,
    /// Software writes a user-data register, by address.
    UserData {
        register: u16,
        value: u32,
    },
    WaveStart {
        location: Location,
        lanes: u8,
        wave_size: u8,
    },
    WaveEnd {
        location: Location,
    },
    /// A wave of the target could issue its next instruction if its unit were free.
    Ready {
        location: Location,
    },
    /// It issues an instruction; one that needs no unit is done.
    Issue {
        location: Location,
        instruction: Instruction,
    },
    /// gfx9: the unit has the instruction.
    Done {
        location: Location,
        instruction: Instruction,
    },
    /// It goes on at an address that no branch distance tells.
    NewPc {
        location: Location,
        pc: u64,
    },
    /// gfx9: counters of a compute unit.
    Sample {
        unit: u8,
        bank: u8,
        counters: [u16; 4],
    },
    /// The command processor waited for compute to be idle.
    Idle,
    /// Any other event of the command processor.
    Other(EventWrite),
}

/// What a dispatch writes to compute registers before its waves start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DispatchRegisters {
    pub(crate) entry: u64,
    pub(crate) packet_address: u64,
    pub(crate) workgroup: [u32; 3],
    pub(crate) rsrc: [u32; 3],
}

/// The register writes of a dispatch, in the order in which captures of gfx950 show them.
pub(crate) fn dispatch_events(dispatch: &DispatchRegisters) -> impl Iterator<Item = Event> + use<> {
    /// COMPUTE_DISPATCH_INITIATOR as captures show it: shader enabled, FORCE_START_AT_000, order mode.
    const INITIATE: u32 = 0x825;
    let [x, y, z] = dispatch.workgroup;
    let [rsrc1, rsrc2, rsrc3] = dispatch.rsrc;
    let entry = dispatch.entry >> 8;
    let writes = [
        (compute::NUM_THREAD_X, x),
        (compute::NUM_THREAD_Y, y),
        (compute::NUM_THREAD_Z, z),
        (compute::DISPATCH_PKT_ADDR_LO, dispatch.packet_address as u32),
        (compute::DISPATCH_PKT_ADDR_HI, (dispatch.packet_address >> 32) as u32),
        (compute::PGM_LO, entry as u32),
        (compute::PGM_HI, (entry >> 32) as u32),
        (compute::PGM_RSRC3, rsrc3),
        (compute::PGM_RSRC1, rsrc1),
        (compute::PGM_RSRC2, rsrc2),
        (compute::DISPATCH_INITIATOR, INITIATE),
    ];
    let writes = writes.map(|(register, value)| Event::Compute { register, value });
    writes.into_iter().chain([Event::DispatchStart])
}
