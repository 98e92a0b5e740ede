//! The clocks of `AMDKFD_IOC_GET_CLOCK_COUNTERS`.

use wavescope_software_gpu::TICKS_PER_SECOND;

const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// Frequency of the system counter, in Hz.
pub(super) const SYSTEM_FREQUENCY: u64 = NANOSECONDS_PER_SECOND;

/// The GPU counter, in ticks of 100 MHz. The same for all GPUs of the process.
pub(super) fn gpu_ticks() -> u64 {
    cpu_ns() / (NANOSECONDS_PER_SECOND / TICKS_PER_SECOND)
}

/// The CPU counter: raw monotonic time (`ktime_get_raw_ns`).
pub(super) fn cpu_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

/// The system counter: time since boot (`ktime_get_boottime_ns`).
pub(super) fn system_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place; both clocks exist on every Linux that has memfd, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * NANOSECONDS_PER_SECOND + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpu_counts_a_hundred_ticks_per_microsecond_of_the_cpu_counter() {
        let (cpu, gpu) = (cpu_ns(), gpu_ticks());
        std::thread::sleep(std::time::Duration::from_millis(5));
        let (cpu, gpu) = (cpu_ns() - cpu, gpu_ticks() - gpu);
        assert!(gpu * 10 >= 5_000_000 - 10, "{gpu} ticks in 5 ms");
        assert!((gpu * 10).abs_diff(cpu) < 1_000_000, "{gpu} ticks in {cpu} ns");
    }
}
