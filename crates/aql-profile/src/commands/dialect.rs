//! What differs between generations in the packets of a program, as data.
//!
//! Sources: ROCm/rocm-systems `projects/aqlprofile/src/pm4/gfx{9,10,11,12}_cmd_builder.h` and
//! `projects/aqlprofile/gfxip/gfx*/gfx*_primitives.h`.

use wavescope_pm4::{CopyControl, CopyDestination, CopySource, Generation};

/// Packet constants and register values of one generation.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// Immediate to register.
    pub(crate) write: CopyControl,
    /// Register to memory.
    pub(crate) read: CopyControl,
    /// Clocks between polls of WAIT_REG_MEM.
    pub(crate) wait_poll: u32,
    /// Whether a register that is not privileged is set directly even outside the SET packet's space.
    pub(crate) sets_unprivileged: bool,
    /// SQ_PERFCOUNTER_CTRL for sets with texture or cache blocks.
    pub(crate) sq_control_set: u32,
    /// The control register of a sequencer counter.
    pub(crate) sq_control_counter: u32,
    /// SQ_PERFCOUNTER_CTRL2, where it is written.
    pub(crate) sq_control2: Option<u32>,
    /// CP_PERFMON_CNTL at stop.
    pub(crate) perfmon_stop: u32,
}

const READ: CopyControl = CopyControl::new(CopySource::REGISTER, CopyDestination::L2);
const WRITE: CopyControl = CopyControl::new(CopySource::IMMEDIATE, CopyDestination::REGISTER);

const GFX9: Dialect = Dialect {
    write: WRITE,
    read: CopyControl::new(CopySource::REGISTER, CopyDestination::MEMORY).with_policies(1, 1),
    wait_poll: 4,
    sets_unprivileged: false,
    sq_control_set: 0xFFFF_007F,
    sq_control_counter: 0xFFFF_0057,
    sq_control2: None,
    perfmon_stop: 2,
};
const GFX10: Dialect = Dialect {
    write: WRITE,
    read: READ,
    wait_poll: 4,
    sets_unprivileged: true,
    sq_control_set: 0x7F,
    sq_control_counter: 0x57,
    sq_control2: None,
    perfmon_stop: 2,
};
const GFX11: Dialect = Dialect {
    write: WRITE,
    read: READ,
    wait_poll: 0x10,
    sets_unprivileged: true,
    sq_control_set: 0x55,
    sq_control_counter: 0x55,
    sq_control2: Some(0x1_FFFF),
    perfmon_stop: 2,
};
const GFX12: Dialect = Dialect {
    write: WRITE.with_policies(3, 3),
    read: READ.with_policies(3, 3),
    wait_poll: 4,
    sets_unprivileged: true,
    sq_control_set: 0x55,
    sq_control_counter: 0x55,
    sq_control2: Some(0x1_FFFF),
    perfmon_stop: 0x402,
};

impl Dialect {
    /// The dialect of a generation.
    pub(crate) const fn of(generation: Generation) -> &'static Self {
        match generation {
            Generation::Gfx9 => &GFX9,
            Generation::Gfx10 => &GFX10,
            Generation::Gfx11 => &GFX11,
            Generation::Gfx12 => &GFX12,
        }
    }
}
