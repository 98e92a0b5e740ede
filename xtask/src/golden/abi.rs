//! Kind `abi`: sizes, offsets, values and slots of the C types against what our compiler laid out.

use std::path::Path;

use anyhow::{Result, bail};

use super::{Kind, Outcome, Role};

/// The kind `abi`.
pub(crate) struct Abi;

impl Kind for Abi {
    fn name(&self) -> &'static str {
        "abi"
    }

    fn role(&self, _file: &Path) -> Role {
        Role::NotCovered("hsa-sys has no compiled layouts yet".into())
    }

    fn check(&self, case: &Path) -> Result<Outcome> {
        bail!("{}: layouts are not checked yet", case.display())
    }
}
