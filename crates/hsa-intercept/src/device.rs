//! What interception needs of the runtime: signals, waits, times. The seam to the outside.
//!
//! [`HsaDevice`](crate::HsaDevice) is the real one; tests and models use scripted ones.

use std::time::Duration;

use wavescope_core::{AgentId, DispatchTimes};

use crate::Error;

/// Handle of an HSA signal (`hsa_signal_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signal(pub u64);

/// Who waits for a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalKind {
    /// A host thread, blocked. Takes one of the driver's 4,096 events per process.
    Interrupt,
    /// Only the packet processor: no event.
    GpuOnly,
}

/// The runtime, as far as interception calls it while dispatches run.
pub trait Device: Send + Sync {
    /// Creates a signal.
    ///
    /// # Errors
    /// What the runtime says.
    fn create_signal(&self, initial: i64, kind: SignalKind) -> Result<Signal, Error>;

    /// Destroys a signal that no packet in flight names.
    fn destroy_signal(&self, signal: Signal);

    /// The value, with acquire order.
    fn load(&self, signal: Signal) -> i64;

    /// Sets the value, with release order, and wakes who waits.
    fn store(&self, signal: Signal, value: i64);

    /// Subtracts from the value, with release order, and wakes who waits.
    fn subtract(&self, signal: Signal, by: i64);

    /// Waits, blocked, until the value is less than `below` or `limit` passed; it may also return for no reason.
    ///
    /// There is no wait for several signals: on ROCr 7.2.4 `hsa_amd_signal_wait_any` writes behind its array when any but
    /// the first three is the one that is satisfied, and reads in front of it when time runs out.
    fn wait_below(&self, signal: Signal, below: i64, limit: Duration);

    /// When the kernel ran that completed `signal`; `None` if the runtime does not know.
    fn dispatch_times(&self, agent: AgentId, signal: Signal) -> Option<DispatchTimes>;

    /// Now, in the clock of [`DispatchTimes`].
    fn now_ns(&self) -> u64;

    /// Calls `work` while the runtime is kept from going down, if it can be; what `work` calls does not wait for that any
    /// more. So a thread waits for the runtime before it locks what `work` locks.
    fn inside(&self, work: &mut dyn FnMut()) {
        work();
    }
}
