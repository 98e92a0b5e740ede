//! Commands to where the GPU reads them.

use std::sync::Arc;

use super::relocation::Commands;
use crate::memory::Memory;

/// Patches commands for their buffers and copies them to where the GPU reads them.
pub(crate) fn upload(
    memory: &Arc<dyn Memory>,
    commands: &Commands,
    bases: &[u64],
    address: u64,
    scratch: &mut Vec<u8>,
) {
    commands.resolve(bases, scratch);
    memory.copy_in(address, scratch);
}
