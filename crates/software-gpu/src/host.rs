//! What the model needs from whoever embeds it: a clock, events, and the truth about memory.

use std::time::{Duration, Instant};

use crate::{QueueFault, QueueId};

/// The device clock runs at 100 MHz.
pub const TICKS_PER_SECOND: u64 = 100_000_000;

/// What an access does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads only.
    Read,
    /// Writes, perhaps after a read.
    Write,
}

/// The world around a device. One host may serve several devices and is called from many threads.
///
/// # Safety
///
/// `memory_is_valid` is the only thing between the model and a wild pointer: when it returns true for a range, that
/// range must be mapped with at least the access asked for and must stay mapped until the queue whose packets name
/// it has been destroyed. An implementor that trusts its callers (as hardware trusts page tables) takes that
/// promise over from them.
pub unsafe trait Host: Send + Sync {
    /// The clock, in ticks of [`TICKS_PER_SECOND`]. Never goes back.
    fn clock(&self) -> u64;

    /// Moves a virtual clock forward to `ticks` and returns true. Real clocks return false: the model then waits.
    fn skip_to(&self, ticks: u64) -> bool {
        let _ = ticks;
        false
    }

    /// Raises an event: the completion signal at address `signal` was decremented and names `event_id`, which has
    /// just been written to its mailbox. Called after all memory effects, without a lock of the model held.
    fn raise_event(&self, signal: u64, event_id: u32);

    /// Told after every change of a signal's value by the device, also where no event is attached.
    fn signal_changed(&self, signal: u64) {
        let _ = signal;
    }

    /// Whether all of `bytes` bytes at `address` may be accessed.
    fn memory_is_valid(&self, address: u64, bytes: u64, access: Access) -> bool;

    /// A queue stopped because of `fault`. Called once per queue from its consumer thread.
    fn queue_error(&self, queue: QueueId, fault: QueueFault);
}

/// A real 100 MHz clock since its creation, for hosts to embed.
#[derive(Debug)]
pub struct ClockHost {
    start: Instant,
}

impl ClockHost {
    /// Starts at tick 1: 0 means "not set" in a signal's time stamps.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }

    /// Ticks since creation.
    pub fn ticks(&self) -> u64 {
        1 + nanoseconds(self.start.elapsed()) / (1_000_000_000 / TICKS_PER_SECOND)
    }
}

impl Default for ClockHost {
    fn default() -> Self {
        Self::new()
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
