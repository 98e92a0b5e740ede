//! What writing or reading a register does, found once when a buffer is compiled.

use wavescope_pm4::{Block, CounterPart, RegisterMap, RegisterName};

/// The function of a register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Role {
    /// GRBM_GFX_INDEX.
    GfxIndex,
    /// CP_PERFMON_CNTL.
    PerfmonControl,
    /// RLC_PERFMON_CLK_CNTL.
    PerfmonClock,
    /// SQ_PERFCOUNTER_CTRL, CTRL2, MASK: which sequencers count.
    Gate,
    /// COMPUTE_PERFCOUNT_ENABLE.
    PerfcountEnable,
    /// A thread-trace register.
    Trace(RegisterName),
    /// SQ_THREAD_TRACE_USERDATA_n.
    UserData,
    /// A counter's select.
    Select(Counter),
    /// Half of a counter's value.
    Value(Counter, Half),
    /// Stored, without effect of its own.
    Plain,
}

/// A counter of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Counter {
    pub(crate) block: &'static Block,
    pub(crate) number: u32,
    /// Address of its select register.
    pub(crate) select: u64,
}

/// Which half of a 64-bit value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Low,
    High,
}

/// Roles of all registers of a chip.
#[derive(Debug)]
pub(crate) struct Roles {
    map: RegisterMap,
}

impl Roles {
    pub(crate) fn new(map: RegisterMap) -> Self {
        Self { map }
    }

    pub(crate) fn address(&self, name: RegisterName) -> Option<u32> {
        self.map.address(name)
    }

    /// A counter of instance 0, or of all instances where they share their registers.
    pub(crate) fn counter(&self, block: &'static Block, number: u32) -> Option<Counter> {
        self.instance_counter(block, 0, number)
    }

    fn instance_counter(&self, block: &'static Block, instance: u32, number: u32) -> Option<Counter> {
        let registers = block.counter(instance, number)?;
        let select = u64::from(registers.select.address(self.map.bases()));
        Some(Counter { block, number, select })
    }

    /// The role of an address. Registers of another die (bits above 31 on gfx9) are stored only.
    pub(crate) fn of(&self, address: u64) -> Role {
        let Ok(address) = u32::try_from(address) else { return Role::Plain };
        match self.map.fixed(address) {
            Some(name) => named(name),
            None => self.counter_register(address),
        }
    }

    fn counter_register(&self, address: u32) -> Role {
        let Some(found) = self.map.counter(address) else { return Role::Plain };
        let instance = found.instance.unwrap_or(0);
        let Some(counter) = self.instance_counter(found.block, instance, found.counter) else {
            return Role::Plain;
        };
        match found.part {
            CounterPart::Select => Role::Select(counter),
            CounterPart::Lo => Role::Value(counter, Half::Low),
            CounterPart::Hi => Role::Value(counter, Half::High),
            CounterPart::Control => Role::Plain,
        }
    }
}

fn named(name: RegisterName) -> Role {
    use RegisterName as Name;
    match name {
        Name::GrbmGfxIndex => Role::GfxIndex,
        Name::CpPerfmonCntl => Role::PerfmonControl,
        Name::RlcPerfmonClkCntl => Role::PerfmonClock,
        Name::SqPerfcounterCtrl | Name::SqPerfcounterCtrl2 | Name::SqPerfcounterMask => Role::Gate,
        Name::ComputePerfcountEnable => Role::PerfcountEnable,
        Name::SqThreadTraceUserdata0
        | Name::SqThreadTraceUserdata1
        | Name::SqThreadTraceUserdata2
        | Name::SqThreadTraceUserdata3 => Role::UserData,
        Name::ComputeThreadTraceEnable
        | Name::SqThreadTraceBase
        | Name::SqThreadTraceBase2
        | Name::SqThreadTraceBuf0Base
        | Name::SqThreadTraceBuf0BaseHi
        | Name::SqThreadTraceBuf0BaseLo
        | Name::SqThreadTraceBuf0Size
        | Name::SqThreadTraceBuf1BaseHi
        | Name::SqThreadTraceBuf1BaseLo
        | Name::SqThreadTraceBuf1Size
        | Name::SqThreadTraceCntr
        | Name::SqThreadTraceCtrl
        | Name::SqThreadTraceDroppedCntr
        | Name::SqThreadTraceHiwater
        | Name::SqThreadTraceMask
        | Name::SqThreadTraceMode
        | Name::SqThreadTracePerfMask
        | Name::SqThreadTraceSize
        | Name::SqThreadTraceStatus
        | Name::SqThreadTraceStatus2
        | Name::SqThreadTraceTokenMask
        | Name::SqThreadTraceTokenMask2
        | Name::SqThreadTraceWptr => Role::Trace(name),
        // Other blocks' switches: stored, and nothing here depends on them.
        _ => Role::Plain,
    }
}
