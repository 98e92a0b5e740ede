//! From addresses back to registers, for one chip with its own segment bases.

use std::collections::BTreeMap;

use crate::block::{Attributes, Block};
use crate::ip::IpBases;
use crate::registers::RegisterName;
use crate::target::{Generation, Target};

/// Which register of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterPart {
    /// Chooses the event.
    Select,
    /// Block or result control; shared by the counters of an instance.
    Control,
    /// Low half of the value.
    Lo,
    /// High half of the value.
    Hi,
}

/// What an address is used for by a counter block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegisterUse {
    /// The block: the one with the lowest id where two share the register (SQ and SQ_CS on gfx9).
    pub block: &'static Block,
    /// The instance, in blocks whose instances have registers of their own.
    pub instance: Option<u32>,
    /// The first counter that uses it.
    pub counter: u32,
    /// Whether the block's other counters use the same register.
    pub shared: bool,
    /// Which of the counter's registers it is.
    pub part: CounterPart,
}

/// Every known register of a chip by absolute address.
#[derive(Clone, Debug)]
pub struct RegisterMap {
    target: Target,
    bases: IpBases,
    fixed: BTreeMap<u32, RegisterName>,
    counters: BTreeMap<u32, RegisterUse>,
}

impl RegisterMap {
    /// The map of `target` with the given bases.
    pub fn new(target: Target, bases: IpBases) -> Self {
        let generation = target.generation();
        let fixed =
            generation.registers().map(|entry| (entry.register.address(&bases), entry.name)).collect();
        let mut counters = BTreeMap::new();
        for block in target.blocks() {
            add_block(&mut counters, block, &bases);
        }
        Self { target, bases, fixed, counters }
    }

    /// The map of `target` with its generation's fixed bases.
    pub fn with_fixed_bases(target: Target) -> Self {
        Self::new(target, IpBases::fixed(target.generation()))
    }

    /// The chip.
    pub const fn target(&self) -> Target {
        self.target
    }

    /// Its generation.
    pub const fn generation(&self) -> Generation {
        self.target.generation()
    }

    /// The bases that the addresses were computed with.
    pub const fn bases(&self) -> &IpBases {
        &self.bases
    }

    /// The named register at an address. Some are a block's control register too.
    pub fn fixed(&self, address: u32) -> Option<RegisterName> {
        self.fixed.get(&address).copied()
    }

    /// The counter register at an address.
    pub fn counter(&self, address: u32) -> Option<&RegisterUse> {
        self.counters.get(&address)
    }

    /// The address of a named register.
    pub fn address(&self, name: RegisterName) -> Option<u32> {
        self.generation().register(name).map(|register| register.address(&self.bases))
    }

    /// The name that people know an address by.
    pub fn name(&self, address: u32) -> Option<String> {
        match self.fixed(address) {
            Some(name) => Some(name.as_str().to_owned()),
            None => self.counter(address).map(RegisterUse::name),
        }
    }
}

fn add_block(counters: &mut BTreeMap<u32, RegisterUse>, block: &'static Block, bases: &IpBases) {
    let per_instance = block.attributes.has(Attributes::EXPLICIT_INSTANCE);
    for (row, registers) in (0..).zip(block.registers) {
        let (instance, counter) =
            if per_instance { (Some(row / block.counters), row % block.counters) } else { (None, row) };
        let parts = [
            (Some(registers.select), CounterPart::Select),
            (registers.control, CounterPart::Control),
            (registers.lo, CounterPart::Lo),
            (registers.hi, CounterPart::Hi),
        ];
        for (register, part) in parts {
            let Some(register) = register else { continue };
            let shared = part == CounterPart::Control;
            let entry = RegisterUse { block, instance, counter, shared, part };
            let known = counters.entry(register.address(bases)).or_insert(entry);
            known.shared |= known.block.id == block.id && known.counter != counter;
        }
    }
}

impl RegisterUse {
    /// The register's name after the kernel headers' patterns.
    pub fn name(&self) -> String {
        let results = self.block.attributes.has(Attributes::MC.union(Attributes::AID));
        let mut prefix = prefix(self.block.name).to_owned();
        if let Some(instance) = self.instance {
            prefix += &instance.to_string();
        }
        let counter = self.counter;
        let (subject, number) = match self.block.name {
            "GRBM_SE" => (format!("{prefix}{counter}_PERFCOUNTER"), String::new()),
            _ => (format!("{prefix}_PERFCOUNTER"), counter.to_string()),
        };
        match self.part {
            CounterPart::Select if results => format!("{subject}{number}_CFG"),
            CounterPart::Select => format!("{subject}{number}_SELECT"),
            CounterPart::Control if self.block.name == "GCR" => "GCR_GENERAL_CNTL".to_owned(),
            CounterPart::Control => format!("{subject}_RSLT_CNTL"),
            CounterPart::Lo if self.shared => format!("{subject}_LO"),
            CounterPart::Hi if self.shared => format!("{subject}_HI"),
            CounterPart::Lo => format!("{subject}{number}_LO"),
            CounterPart::Hi => format!("{subject}{number}_HI"),
        }
    }
}

/// The block's name in register names, where it differs from its name in the API.
fn prefix(block: &str) -> &str {
    match block {
        "SQ_CS" => "SQ",
        "MCVML2" => "MC_VM_L2",
        "ATCL2" => "ATC_L2",
        "GC_UTCL1" => "UTCL1",
        "GC_UTCL2" => "GCUTCL2",
        "GC_VML2" => "GCMC_VM_L2",
        "GC_VML2_SPM" => "GCVML2",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Names and addresses of the kernel's gc_9_2_1_offset.h and gc_12_0_0_offset.h.
    #[test]
    fn addresses_have_the_kernel_headers_names() {
        let vega = RegisterMap::with_fixed_bases(Target::Gfx90a);
        let names = [
            (0xC200, "GRBM_GFX_INDEX"),
            (0xD840, "GRBM_PERFCOUNTER0_SELECT"),
            (0xD044, "GRBM_PERFCOUNTER1_HI"),
            (0xD842, "GRBM_SE0_PERFCOUNTER_SELECT"),
            (0xD9E0, "SQ_PERFCOUNTER_CTRL"),
            (0xDD4D, "MC_VM_L2_PERFCOUNTER1_CFG"),
            (0xDD54, "MC_VM_L2_PERFCOUNTER_RSLT_CNTL"),
            (0xD508, "MC_VM_L2_PERFCOUNTER_LO"),
        ];
        for (address, name) in names {
            assert_eq!(vega.name(address).as_deref(), Some(name));
        }
        let navi = RegisterMap::with_fixed_bases(Target::Gfx1201);
        assert_eq!(navi.name(0xDE32).as_deref(), Some("SDMA1_PERFCOUNTER1_SELECT"));
        assert_eq!(navi.name(0xC448).as_deref(), Some("SPI_SQG_EVENT_CTL"));
        assert_eq!(navi.name(0x1), None);
    }

    #[test]
    fn a_register_moves_with_its_bases() {
        let bases = IpBases::new(&[0x1280, 0xA100, 0x1_C200], &[0xC40]);
        let map = RegisterMap::new(Target::Gfx1201, bases);
        assert_eq!(map.fixed(0xC300), Some(RegisterName::GrbmGfxIndex));
        assert_eq!(map.address(RegisterName::CpPerfmonCntl), Some(0xD908));
    }

    #[test]
    fn shared_registers_belong_to_the_first_block_and_counter() {
        let map = RegisterMap::with_fixed_bases(Target::Gfx942);
        let select = map.counter(0xD9C1).unwrap();
        assert_eq!((select.block.name, select.counter, select.part), ("SQ", 1, CounterPart::Select));
        let control = map.counter(0xD9E0).unwrap();
        assert!(control.shared && control.part == CounterPart::Control);
    }
}
