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

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The value is less than this.
    Below(i64),
    /// The value is this or more.
    AtLeast(i64),
}

impl Until {
    /// Whether `value` is what was waited for.
    pub const fn holds(self, value: i64) -> bool {
        match self {
            Self::Below(limit) => value < limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }
}

/// A condition of [`Device::wait_any`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The signal.
    pub signal: Signal,
    /// The value it must have.
    pub until: Until,
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

    /// Waits until one condition holds; it may also return for no reason, and should after `limit`. A real runtime
    /// has no limit here ([`Hsa::wait_any`](wavescope_hsa::Hsa::wait_any)), so a control signal is always among the
    /// waits.
    fn wait_any(&self, waits: &[Wait], limit: Duration);

    /// When the kernel ran that completed `signal`; `None` if the runtime does not know.
    fn dispatch_times(&self, agent: AgentId, signal: Signal) -> Option<DispatchTimes>;

    /// Now, in the clock of [`DispatchTimes`].
    fn now_ns(&self) -> u64;
}
