//! The clocks of `AMDKFD_IOC_GET_CLOCK_COUNTERS`.

use wavescope_software_gpu::TICKS_PER_SECOND;

const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// Frequency of the system counter, in Hz.
pub(super) const SYSTEM_FREQUENCY: u64 = NANOSECONDS_PER_SECOND;

/// How far apart two readings of one clock may lie for one of another between them to count as simultaneous: a few times
/// what three calls take.
const SIMULTANEOUS_NS: u64 = 2_000;

/// Tries to come below [`SIMULTANEOUS_NS`]; then the best one is taken.
const TRIES: usize = 32;

/// All counters at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counters {
    /// Ticks of 100 MHz. The same for all GPUs of the process.
    pub(super) gpu: u64,
    /// Raw monotonic time (`ktime_get_raw_ns`).
    pub(super) cpu: u64,
    /// Time since boot (`ktime_get_boottime_ns`).
    pub(super) system: u64,
}

impl Counters {
    /// The runtime fits one clock to the other by such pairs, so a thread that loses its processor between two readings
    /// must not move the clocks against each other.
    pub(super) fn now() -> Self {
        let clock = |id| move || read(id);
        simultaneous(clock(libc::CLOCK_MONOTONIC_RAW), clock(libc::CLOCK_BOOTTIME))
    }
}

fn simultaneous(mut raw: impl FnMut() -> u64, mut since_boot: impl FnMut() -> u64) -> Counters {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..TRIES {
        let (before, system, after) = (raw(), since_boot(), raw());
        let apart = after.saturating_sub(before);
        best = best.min((apart, before + apart / 2, system));
        if apart <= SIMULTANEOUS_NS {
            break;
        }
    }
    let (_, cpu, system) = best;
    Counters { gpu: ticks(cpu), cpu, system }
}

const fn ticks(raw_ns: u64) -> u64 {
    raw_ns / (NANOSECONDS_PER_SECOND / TICKS_PER_SECOND)
}

/// The GPU counter, in ticks of 100 MHz.
pub(super) fn gpu_ticks() -> u64 {
    ticks(read(libc::CLOCK_MONOTONIC_RAW))
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place; both clocks exist on every Linux that has memfd, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * NANOSECONDS_PER_SECOND + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    // Two clocks that run 7 s apart; every reading takes 100 ns, and some lose the processor for a millisecond.
    fn pair_with(stalls: &[usize]) -> Counters {
        let (time, readings) = (Cell::new(1_000_000), Cell::new(0));
        let read = || {
            readings.set(readings.get() + 1);
            time.set(time.get() + if stalls.contains(&readings.get()) { 1_000_000 } else { 100 });
            time.get()
        };
        simultaneous(read, || read() + 7_000_000_000)
    }

    #[test]
    fn a_thread_that_loses_its_processor_does_not_move_the_clocks_against_each_other() {
        for stalls in [&[][..], &[2], &[3], &[2, 6], &[1, 5, 8]] {
            let counters = pair_with(stalls);
            assert_eq!(counters.system - counters.cpu, 7_000_000_000, "{stalls:?}");
        }
        let all: Vec<usize> = (1..=3 * TRIES).collect();
        assert!((pair_with(&all).system - 7_000_000_000).abs_diff(pair_with(&all).cpu) <= 1_000_000);
    }

    #[test]
    fn gpu_counts_a_hundred_ticks_per_microsecond_of_the_cpu_counter() {
        let counters = Counters::now();
        assert_eq!(counters.gpu, counters.cpu / 10);
        assert!(gpu_ticks() >= counters.gpu);
    }
}
