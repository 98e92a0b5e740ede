//! Compiled buffers of one queue, by address.

use std::collections::HashMap;
use std::sync::Arc;

use super::program::Program;
use super::role::Roles;
use crate::memory::{Memory, MemoryFault};

/// Buffers kept; beyond it all are forgotten. A profiler has a few per counter set and agent.
const CAPACITY: usize = 4096;

/// A buffer being run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) program: Arc<Program>,
    /// Index of the next operation.
    pub(crate) next: usize,
}

/// The compiled buffers.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    programs: HashMap<u64, Arc<Program>>,
}

impl Cache {
    /// The program of the `count` dwords at `address`: the known one if memory still holds its bytes.
    pub(crate) fn begin(
        &mut self,
        memory: &Memory,
        roles: &Roles,
        all: u8,
        address: u64,
        count: u32,
    ) -> Result<Run, MemoryFault> {
        if let Some(program) = self.programs.get(&address) {
            let same = program.dwords.len() == count as usize && memory.equals(address, &program.dwords)?;
            if same {
                return Ok(Run { program: Arc::clone(program), next: 0 });
            }
        }
        let mut dwords = Vec::new();
        memory.load_dwords(address, count as usize, &mut dwords)?;
        let program = Arc::new(Program::compile(dwords, roles, all));
        if self.programs.len() >= CAPACITY {
            self.programs.clear();
        }
        self.programs.insert(address, Arc::clone(&program));
        Ok(Run { program, next: 0 })
    }
}
