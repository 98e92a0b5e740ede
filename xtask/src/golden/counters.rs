//! Kind `counters`: counter and metric definitions per target. Its crate cannot evaluate definitions yet.

use std::path::Path;

use anyhow::{Result, bail};

use super::{Kind, Outcome, Role};

/// The kind `counters`.
pub(crate) struct Counters;

impl Kind for Counters {
    fn name(&self) -> &'static str {
        "counters"
    }

    fn role(&self, file: &Path) -> Role {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".json") || name.ends_with(".json.gz") {
            return Role::NotCovered(
                "wavescope-counting has no counter definitions to check it against".into(),
            );
        }
        Role::Support
    }

    fn check(&self, case: &Path) -> Result<Outcome> {
        bail!("{}: counter definitions are not checked yet", case.display())
    }
}
