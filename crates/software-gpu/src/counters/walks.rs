//! The walks of waves that are not over, each once for each dispatch.

use std::sync::Arc;

use super::monitor::Pending;
use crate::walk::Timed;

/// A table in which waves name their walk by number.
#[derive(Debug, Default)]
pub(super) struct Walks {
    table: Vec<Arc<Timed>>,
}

/// Entries below which the table is not looked through.
const SMALL: usize = 1024;

impl Walks {
    /// Adds the walks of a dispatch and returns the number of the first.
    pub(super) fn add(&mut self, walks: &[Arc<Timed>]) -> u32 {
        let first = self.table.len() as u32;
        self.table.extend(walks.iter().cloned());
        first
    }

    pub(super) fn get(&self, walk: u32) -> Option<&Arc<Timed>> {
        self.table.get(walk as usize)
    }

    /// Forgets walks that no wave names any more, once there are many.
    pub(super) fn keep(&mut self, pending: &mut [Pending]) {
        if pending.is_empty() {
            self.table.clear();
        } else if self.table.len() > SMALL.max(4 * pending.len()) {
            let mut numbers = vec![None; self.table.len()];
            let mut kept = Vec::new();
            for wave in pending.iter_mut().map(|pending| &mut pending.wave) {
                let Some(walk) = self.table.get(wave.walk as usize) else { continue };
                wave.walk = *numbers[wave.walk as usize].get_or_insert_with(|| {
                    kept.push(Arc::clone(walk));
                    kept.len() as u32 - 1
                });
            }
            self.table = kept;
        }
    }
}
