//! The software GPU's own log of what ran where, written before any counter or trace code runs.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wavescope_software_gpu::{DispatchTruth, Truth, TruthSink, WaveTruth};

/// Collects the log in memory.
#[derive(Debug, Default)]
pub struct Placement(Mutex<Log>);

#[derive(Debug, Default)]
struct Log {
    dispatches: Vec<DispatchTruth>,
    /// By device and dispatch.
    waves: HashMap<(u32, u64), Vec<WaveTruth>>,
}

impl TruthSink for Placement {
    fn record(&self, truth: &Truth) {
        let mut log = self.log();
        match truth {
            Truth::Dispatch(dispatch) => log.dispatches.push(*dispatch),
            Truth::Wave(wave) => log.waves.entry((wave.device, wave.dispatch)).or_default().push(*wave),
            _ => {}
        }
    }
}

impl Placement {
    /// Dispatches of a device, in the order in which they ran.
    pub fn dispatches(&self, device: u32) -> Vec<DispatchTruth> {
        self.log().dispatches.iter().filter(|dispatch| dispatch.device == device).copied().collect()
    }

    /// Waves of a device's dispatch.
    pub fn waves(&self, device: u32, dispatch: u64) -> Vec<WaveTruth> {
        self.log().waves.get(&(device, dispatch)).cloned().unwrap_or_default()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
