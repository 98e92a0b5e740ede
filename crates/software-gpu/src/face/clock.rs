//! The clocks of the machine: nanoseconds of the system, and the device's 100 MHz ticks over the same time line.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::TICKS_PER_SECOND;

/// Frequency of the system clock that HSA reports.
pub(super) const SYSTEM_FREQUENCY: u64 = 1_000_000_000;

/// System nanoseconds in one device tick: both clocks start together, so the conversion is exact.
const NANOSECONDS_PER_TICK: u64 = SYSTEM_FREQUENCY / TICKS_PER_SECOND;

/// How time passes for the GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeMode {
    /// A kernel that runs for 10 us of device time takes 10 us.
    #[default]
    Real,
    /// Nobody waits: when a device would, the clock of the whole runtime jumps forward. Between jumps time passes as
    /// it does outside.
    Skip,
}

/// The one clock of the runtime.
#[derive(Debug)]
pub(super) struct Clock {
    mode: TimeMode,
    skipped_ns: AtomicU64,
}

impl Clock {
    pub(super) fn new(mode: TimeMode) -> Self {
        Self { mode, skipped_ns: AtomicU64::new(0) }
    }

    /// System time: since boot, as the kernel driver's system counter counts.
    pub(super) fn system_ns(&self) -> u64 {
        boot_time_ns() + self.skipped_ns.load(Ordering::Acquire)
    }

    /// Device time.
    pub(super) fn ticks(&self) -> u64 {
        self.system_ns() / NANOSECONDS_PER_TICK
    }

    /// Jumps forward to `ticks` if the mode allows jumps at all.
    pub(super) fn skip_to(&self, ticks: u64) -> bool {
        if self.mode == TimeMode::Real {
            return false;
        }
        let target = ticks.saturating_mul(NANOSECONDS_PER_TICK);
        // One step of the largest need: two devices that jump at once must not add up.
        let skip = target.saturating_sub(boot_time_ns());
        self.skipped_ns.fetch_max(skip, Ordering::AcqRel);
        true
    }
}

/// System time of a device tick.
pub(super) const fn system_ns_of(ticks: u64) -> u64 {
    ticks.saturating_mul(NANOSECONDS_PER_TICK)
}

fn boot_time_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec; CLOCK_BOOTTIME exists on every Linux since 2.6.39.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_clock_refuses_to_jump_and_the_other_jumps_once() {
        let real = Clock::new(TimeMode::Real);
        assert!(!real.skip_to(u64::MAX / 100));
        let skip = Clock::new(TimeMode::Skip);
        let target = skip.ticks() + 1_000_000;
        assert!(skip.skip_to(target));
        assert!(skip.ticks() >= target);
        let after = skip.ticks();
        assert!(skip.skip_to(target), "a jump into the past");
        assert!(skip.ticks() - after < 1_000_000, "moves nothing");
    }

    #[test]
    fn device_and_system_time_convert_exactly() {
        assert_eq!(system_ns_of(TICKS_PER_SECOND), 1_000_000_000);
    }
}
