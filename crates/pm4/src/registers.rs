//! Registers outside the counter blocks, by name.

pub use crate::tables::RegisterName;

use crate::ip::Register;
use crate::tables;
use crate::target::Generation;

/// A named register of one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedRegister {
    /// Its name.
    pub name: RegisterName,
    /// Where it lies.
    pub register: Register,
}

impl Generation {
    /// The register of this name; `None` where the generation has none (or keeps it in a counter block).
    pub fn register(self, name: RegisterName) -> Option<Register> {
        tables::fixed(self).get(name as usize).copied().flatten()
    }

    /// Every named register of the generation.
    pub fn registers(self) -> impl Iterator<Item = FixedRegister> {
        RegisterName::ALL.into_iter().filter_map(move |name| {
            let register = self.register(name)?;
            Some(FixedRegister { name, register })
        })
    }
}
