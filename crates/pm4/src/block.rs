//! Performance-counter blocks: what the tables in `tables/` say about each.

use std::fmt;

use crate::ip::Register;

/// A block id of the aqlprofile API (`aqlprofile_block_name_t`), unknown values kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

impl BlockId {
    /// Graphics register bus manager.
    pub const GRBM: Self = Self(3);
    /// Sequencer.
    pub const SQ: Self = Self(6);
    /// Sequencer, compute view; shares its counters with SQ on gfx9.
    pub const SQ_CS: Self = Self(7);

    /// The name in the API's enumeration (without its prefix); a block's table may call it a little differently.
    pub fn api_name(self) -> Option<&'static str> {
        API_NAMES.get(self.0 as usize).copied().filter(|name| !name.is_empty())
    }
}

/// Names of `hsa_ven_amd_aqlprofile_block_name_t` and its v2 additions by value; reserved values have none.
const API_NAMES: [&str; 54] = [
    "CPC",
    "CPF",
    "GDS",
    "GRBM",
    "GRBMSE",
    "SPI",
    "SQ",
    "SQCS",
    "SRBM",
    "SX",
    "TA",
    "TCA",
    "TCC",
    "TCP",
    "TD",
    "MCARB",
    "MCHUB",
    "MCMCBVM",
    "MCSEQ",
    "MCVML2",
    "MCXBAR",
    "ATC",
    "ATCL2",
    "GCEA",
    "RPB",
    "SDMA",
    "GL1A",
    "GL1C",
    "GL2A",
    "GL2C",
    "GCR",
    "GUS",
    "UMC",
    "MMEA",
    "",
    "",
    "",
    "",
    "",
    "",
    "CPG",
    "RLC",
    "CHA",
    "CHC",
    "GC_CANE",
    "GC_FFBM",
    "GC_L2TLB",
    "GC_UTCL1",
    "GC_UTCL2",
    "GC_VML2",
    "GC_VML2_SPM",
    "GCEA_SE",
    "GRBMH",
    "SQG",
];

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}", self.0)
    }
}

/// Attribute bits of a block (`gpu_block_info.h`, `CounterBlock*Attr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Attributes(pub u32);

impl Attributes {
    /// One copy for each shader engine.
    pub const SE: Self = Self(0x2);
    /// Has a block control register that start writes.
    pub const SQ: Self = Self(0x4);
    /// Counters are cleared by hand before they are selected.
    pub const CLEAN: Self = Self(0x8);
    /// Counters sit behind one shared result register pair.
    pub const MC: Self = Self(0x10);
    /// The graphics register bus manager itself.
    pub const GRBM: Self = Self(0x8000);
    /// Needs the sequencer's counter control to be enabled first.
    pub const TC: Self = Self(0x400);
    /// Each instance has registers of its own.
    pub const EXPLICIT_INSTANCE: Self = Self(0x800);
    /// Streaming counters are global; unused here.
    pub const SPM_GLOBAL: Self = Self(0x1000);
    /// Graphics utility block.
    pub const GUS: Self = Self(0x4000);
    /// One copy for each shader array.
    pub const SA: Self = Self(0x2_0000);
    /// Of the request-processing kind, with RPB's control sequence.
    pub const RPB: Self = Self(0x20_0000);
    /// Takes placeholder events.
    pub const SPI: Self = Self(0x8_0000);
    /// One copy for each work-group processor.
    pub const WGP: Self = Self(0x10_0000);
    /// Lies on the I/O die.
    pub const AID: Self = Self(0x4_0000);
    /// Of the translation kind, with ATC's control sequence.
    pub const ATC: Self = Self(0x40_0000);
    /// Bits 4:0: any of them makes a set write CP_PERFMON_CNTL.
    pub const CP_PERFMON: Self = Self(0x1F);

    /// Whether any bit of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both words' bits.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How a counter's select value is made: `base | (event & mask)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select {
    /// Bits that are always set.
    pub base: u32,
    /// Bits of the event id that reach the register; 0 where the hardware is never told the event.
    pub event_mask: u32,
}

impl Select {
    /// The register value for an event.
    pub const fn value(self, event: u32) -> u32 {
        self.base | event & self.event_mask
    }
}

/// The registers of one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterRegisters {
    /// Chooses the event.
    pub select: Register,
    /// Block control or result control.
    pub control: Option<Register>,
    /// Low half of the value.
    pub lo: Option<Register>,
    /// High half; absent on 32-bit counters.
    pub hi: Option<Register>,
}

/// One counter block of one chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its id in the aqlprofile API.
    pub id: BlockId,
    /// Its name in upstream's table.
    pub name: &'static str,
    /// Blocks of the same group share their counters.
    pub counter_group: u32,
    /// Instances: valid indices lie below it.
    pub instances: u32,
    /// Counters of one instance, as announced.
    pub counters: u32,
    /// Highest event id known to upstream's source, not enforced by it.
    pub max_event: u32,
    /// What it is.
    pub attributes: Attributes,
    /// How an event is selected.
    pub select: Select,
    /// Registers by counter; with [`Attributes::EXPLICIT_INSTANCE`], instance after instance.
    pub registers: &'static [CounterRegisters],
}

impl Block {
    /// Counters of one instance that have registers. gfx12 SQ announces 16 and has 8.
    pub const fn usable_counters(&self) -> u32 {
        let rows = self.registers.len() as u32;
        let rows = if self.attributes.has(Attributes::EXPLICIT_INSTANCE) && self.instances > 0 {
            rows / self.instances
        } else {
            rows
        };
        if rows < self.counters { rows } else { self.counters }
    }

    /// The registers of a counter of an instance; `None` beyond the table.
    pub fn counter(&self, instance: u32, counter: u32) -> Option<&'static CounterRegisters> {
        if counter >= self.counters {
            return None;
        }
        let first = if self.attributes.has(Attributes::EXPLICIT_INSTANCE) {
            instance.checked_mul(self.counters)?
        } else {
            0
        };
        self.registers.get(first.checked_add(counter)? as usize)
    }
}
