//! The real [`Device`]: signals and times of the runtime behind a saved table.

use std::time::Duration;

use hsa_sys::hsa_signal_t;
use wavescope_core::{AgentId, DispatchTimes};
use wavescope_hsa::{Condition, Hsa, HsaSignal, SignalWait};

use crate::Error;
use crate::device::{Device, Signal, SignalKind, Until, Wait};

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

fn signal_wait(wait: &Wait) -> SignalWait {
    let condition = match wait.until {
        Until::Below(limit) => Condition::Below(limit),
        Until::AtLeast(limit) => Condition::AtLeast(limit),
    };
    SignalWait { signal: raw(wait.signal), condition }
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

    fn wait_any(&self, waits: &[Wait], _limit: Duration) {
        let waits: Vec<SignalWait> = waits.iter().map(signal_wait).collect();
        if self.hsa.wait_any(&waits).is_err() {
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
