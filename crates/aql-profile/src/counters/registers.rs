//! Addresses of a counter's registers, on this die or another.

use wavescope_pm4::{Attributes, CounterRegisters, Register};

use super::expand::{Counter, DIES};
use crate::agent::Chip;

/// Says that a register lies behind the system network.
const SYSTEM_NETWORK: u64 = 1 << 32;
/// Where the die's number begins in such an address.
const DIE_SHIFT: u32 = 30;

impl Counter {
    /// The counter's registers. Expansion refuses counters without.
    pub(super) fn registers(&self) -> Option<&'static CounterRegisters> {
        self.block.counter(self.instance, self.index)
    }

    /// Whether the block has the attribute.
    pub(super) fn is(&self, attribute: Attributes) -> bool {
        self.block.attributes.has(attribute)
    }

    /// A register's address as seen by the XCC that reads I/O-die blocks.
    pub(super) fn on_die(&self, chip: &Chip, register: Register) -> u64 {
        let address = u64::from(register.address(&chip.bases));
        if chip.xcc > 1 {
            address
                | SYSTEM_NETWORK
                | u64::from(self.instance / (self.block.instances / DIES).max(1)) << DIE_SHIFT
        } else {
            address
        }
    }
}

/// The attributes of blocks whose counters are enabled by a result control on the I/O die.
pub(super) const DIE_CONTROLLED: Attributes = Attributes::RPB.union(Attributes::ATC);
