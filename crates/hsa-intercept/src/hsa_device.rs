//! The real [`Device`]: signals and times of the runtime behind a saved table, as long as there is one.

use std::mem::offset_of;
use std::time::Duration;

use hsa_sys::{HSA_STATUS_ERROR_NOT_INITIALIZED, HSA_SYSTEM_INFO_TIMESTAMP, amd_signal_t, hsa_signal_t};
use wavescope_core::sync::Deadline;
use wavescope_core::{AgentId, DispatchTimes, InterceptionError};
use wavescope_hsa::{Hsa, HsaSignal};

use crate::Error;
use crate::device::{Device, Signal, SignalKind};
use crate::flight::COUNTER_START;
use crate::gate::Gate;

/// Between two looks at a signal that nobody can sleep for.
const SHORTEST_LOOK: Duration = Duration::from_micros(100);
const LONGEST_LOOK: Duration = Duration::from_millis(1);

/// How long to rest where a runtime that is gone cannot wake anybody.
const AFTER_THE_END: Duration = Duration::from_millis(20);

/// Signals and times through the saved entries of a runtime.
#[derive(Debug)]
pub struct HsaDevice {
    hsa: Hsa,
    gate: Gate,
}

impl HsaDevice {
    /// The device of a runtime.
    pub fn new(hsa: Hsa) -> Self {
        Self { hsa, gate: Gate::default() }
    }

    pub(crate) fn hsa(&self) -> &Hsa {
        &self.hsa
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Whether the runtime still answers.
    pub(crate) fn is_open(&self) -> bool {
        let Some(get) = self.hsa.table().core.hsa_system_get_info_fn else { return true };
        let mut ticks = 0u64;
        // SAFETY: the attribute is a 64-bit number by the header.
        let status = unsafe { get(HSA_SYSTEM_INFO_TIMESTAMP, (&raw mut ticks).cast()) };
        status != HSA_STATUS_ERROR_NOT_INITIALIZED
    }

    /// Looks at a signal now and then until it is below `below`. The runtime's own wait would spin.
    fn look_until(&self, signal: Signal, below: i64, limit: Duration) {
        let deadline = Deadline::after(limit);
        let mut pause = SHORTEST_LOOK;
        while self.load(signal) >= below && !deadline.is_over() {
            std::thread::sleep(pause.min(deadline.left()));
            pause = (pause * 2).min(LONGEST_LOOK);
        }
    }
}

const fn raw(signal: Signal) -> hsa_signal_t {
    hsa_signal_t { handle: signal.0 }
}

/// Whether a blocked wait for the signal can sleep: it has one of the driver's events. One made while interrupts are off
/// (`HSA_ENABLE_INTERRUPT=0`), or after the process's last event was taken, has none, and ROCr's wait for it spins.
///
/// # Safety
/// A live signal of the runtime.
unsafe fn has_event(signal: Signal) -> bool {
    let mailbox = signal.0 as usize + offset_of!(amd_signal_t, event_mailbox_ptr);
    // SAFETY: by this function's contract: a handle is the address of an `amd_signal_t` (`amd_hsa_signal.h`), and this
    // field stays as it was made.
    unsafe { std::ptr::with_exposed_provenance::<u64>(mailbox).read() != 0 }
}

impl Device for HsaDevice {
    fn create_signal(&self, initial: i64, kind: SignalKind) -> Result<Signal, Error> {
        let Some(_pass) = self.gate.enter() else { return Err(InterceptionError::ShutDown.into()) };
        let signal = match kind {
            SignalKind::Interrupt => HsaSignal::new(&self.hsa, initial)?,
            SignalKind::GpuOnly => HsaSignal::gpu_only(&self.hsa, initial)?,
        };
        Ok(Signal(signal.into_handle().handle))
    }

    fn destroy_signal(&self, signal: Signal) {
        if let Some(_pass) = self.gate.enter() {
            self.hsa.destroy_signal(raw(signal));
        }
    }

    /// The value of a signal that went with its runtime is one that nothing ever counted down.
    fn load(&self, signal: Signal) -> i64 {
        let Some(_pass) = self.gate.enter() else { return COUNTER_START };
        self.hsa.signal_load(raw(signal))
    }

    fn store(&self, signal: Signal, value: i64) {
        if let Some(_pass) = self.gate.enter() {
            self.hsa.signal_store(raw(signal), value);
        }
    }

    fn subtract(&self, signal: Signal, by: i64) {
        if let Some(_pass) = self.gate.enter() {
            self.hsa.signal_subtract(raw(signal), by);
        }
    }

    fn wait_below(&self, signal: Signal, below: i64, limit: Duration) {
        let Some(pass) = self.gate.enter() else { return std::thread::sleep(limit.min(AFTER_THE_END)) };
        // SAFETY: whoever waits for a signal keeps it alive, and the runtime is there.
        if !unsafe { has_event(signal) } {
            drop(pass);
            return self.look_until(signal, below, limit);
        }
        if self.hsa.signal_wait_below(raw(signal), below, limit).is_err() {
            drop(pass);
            // A runtime without the call.
            self.look_until(signal, below, limit);
        }
    }

    fn dispatch_times(&self, agent: AgentId, signal: Signal) -> Option<DispatchTimes> {
        let _pass = self.gate.enter()?;
        self.hsa.dispatch_times(agent, raw(signal)).ok()
    }

    fn now_ns(&self) -> u64 {
        // Answered by the runtime's library, which stays, at any time.
        self.hsa.now_ns()
    }

    fn inside(&self, work: &mut dyn FnMut()) {
        // Once the runtime is gone each call is answered without it.
        let _pass = self.gate.enter();
        work();
    }
}
