//! The real [`Device`]: signals and times of the runtime behind a saved table.

use std::time::Duration;

use hsa_sys::hsa_signal_t;
use wavescope_core::{AgentId, DispatchTimes};
use wavescope_hsa::{Hsa, HsaSignal};

use crate::Error;
use crate::device::{Device, Signal, SignalKind};

/// Signals and times through the saved entries of a runtime.
#[derive(Debug)]
pub struct HsaDevice {
    hsa: Hsa,
}

impl HsaDevice {
    /// The device of a runtime.
    pub fn new(hsa: Hsa) -> Self {
        Self { hsa }
    }
}

const fn raw(signal: Signal) -> hsa_signal_t {
    hsa_signal_t { handle: signal.0 }
}

impl Device for HsaDevice {
    fn create_signal(&self, initial: i64, kind: SignalKind) -> Result<Signal, Error> {
        let signal = match kind {
            SignalKind::Interrupt => HsaSignal::new(&self.hsa, initial)?,
            SignalKind::GpuOnly => HsaSignal::gpu_only(&self.hsa, initial)?,
        };
        Ok(Signal(signal.into_handle().handle))
    }

    fn destroy_signal(&self, signal: Signal) {
        self.hsa.destroy_signal(raw(signal));
    }

    fn load(&self, signal: Signal) -> i64 {
        self.hsa.signal_load(raw(signal))
    }

    fn store(&self, signal: Signal, value: i64) {
        self.hsa.signal_store(raw(signal), value);
    }

    fn subtract(&self, signal: Signal, by: i64) {
        self.hsa.signal_subtract(raw(signal), by);
    }

    fn wait_below(&self, signal: Signal, below: i64, limit: Duration) {
        if self.hsa.signal_wait_below(raw(signal), below, limit).is_err() {
            // A runtime without the call: look again after a while instead of spinning.
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn dispatch_times(&self, agent: AgentId, signal: Signal) -> Option<DispatchTimes> {
        self.hsa.dispatch_times(agent, raw(signal)).ok()
    }

    fn now_ns(&self) -> u64 {
        self.hsa.now_ns()
    }
}
