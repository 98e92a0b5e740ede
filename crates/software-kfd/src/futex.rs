//! Waiting and waking on a 32-bit word, without the standard library: usable where its locks are not.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::errno;

/// Operations on words of this process only.
const WAIT: i32 = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
const WAKE: i32 = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
const WAIT_BITS: i32 = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
const WAKE_BITS: i32 = libc::FUTEX_WAKE_BITSET | libc::FUTEX_PRIVATE_FLAG;
const WAKE_OP: i32 = libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG;

/// Sleeps while `word` is `expected`, until woken or until `timeout`. Returns early on a signal; callers look again.
pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    let spec = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    });
    let spec = spec.as_ref().map_or(ptr::null(), ptr::from_ref);
    let before = errno::get();
    // SAFETY: `word` outlives the call and `spec` is null or points at a timespec on this stack frame; FUTEX_WAIT
    // only reads both.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), WAIT, expected, spec) };
    errno::set(before);
}

/// As [`wait`], until somebody wakes one of `bits`.
pub(crate) fn wait_bits(word: &AtomicU32, expected: u32, bits: u32, timeout: Option<Duration>) {
    // This operation takes a point in time.
    let spec = timeout.map(|timeout| {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the result outlives the call. This clock is always there.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        let nanoseconds = now.tv_nsec + i64::from(timeout.subsec_nanos());
        let seconds = timeout.as_secs().min(i64::MAX as u64 / 2) as i64 + nanoseconds / 1_000_000_000;
        libc::timespec { tv_sec: now.tv_sec + seconds, tv_nsec: nanoseconds % 1_000_000_000 }
    });
    let spec = spec.as_ref().map_or(ptr::null(), ptr::from_ref);
    let before = errno::get();
    // SAFETY: `word` outlives the call and `spec` is null or points at a timespec on this stack frame; the operation only
    // reads both and ignores the second address.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), WAIT_BITS, expected, spec, ptr::null::<u32>(), bits)
    };
    errno::set(before);
}

/// Wakes everyone who sleeps on `word` for one of `bits`.
pub(crate) fn wake_bits(word: &AtomicU32, bits: u32) {
    let before = errno::get();
    let nothing = ptr::null::<u32>();
    // SAFETY: `word` is a valid address; the operation does not write it and ignores the other two.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), WAKE_BITS, i32::MAX, nothing, nothing, bits) };
    errno::set(before);
}

/// Wakes everyone who sleeps on `word`.
pub(crate) fn wake_all(word: &AtomicU32) {
    let before = errno::get();
    // SAFETY: `word` is a valid address; FUTEX_WAKE does not write it.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), WAKE, i32::MAX) };
    errno::set(before);
}

/// Whether the 32-bit word at `address` may be read. The kernel looks, so any address is fine.
pub(crate) fn is_readable(address: u64) -> bool {
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let before = errno::get();
    // SAFETY: with a time-out of zero FUTEX_WAIT reads the word in the kernel, which answers EFAULT where it cannot,
    // and returns at once.
    let result = unsafe { libc::syscall(libc::SYS_futex, address & !3, WAIT, 0_u32, ptr::from_ref(&now)) };
    let readable = result == 0 || errno::get() != libc::EFAULT;
    errno::set(before);
    readable
}

/// Whether the 32-bit word at `address` may be written. Its value stays: the kernel adds zero to it.
pub(crate) fn is_writable(address: u64) -> bool {
    /// `FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)`.
    const ADD_NOTHING: u32 = 1 << 28;
    let nobody = AtomicU32::new(0);
    let before = errno::get();
    // SAFETY: FUTEX_WAKE_OP changes the second word atomically in the kernel, here by adding zero, and answers EFAULT
    // where it cannot. Nobody sleeps on the first word; a sleeper on the second that is woken for nothing looks again,
    // as every user of a futex must.
    let result = unsafe {
        libc::syscall(libc::SYS_futex, nobody.as_ptr(), WAKE_OP, 0_u32, 0_usize, address & !3, ADD_NOTHING)
    };
    let writable = result >= 0 || errno::get() != libc::EFAULT;
    errno::set(before);
    writable
}

/// A lock for a few instructions' worth of static data.
pub(crate) struct Lock(AtomicU32);

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const CONTENDED: u32 = 2;

impl Lock {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Takes the lock; it is given back when the guard goes.
    pub(crate) fn lock(&self) -> LockGuard<'_> {
        if self.0.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while self.0.swap(CONTENDED, Ordering::Acquire) != FREE {
                wait(&self.0, CONTENDED, None);
            }
        }
        LockGuard(self)
    }
}

/// Holds a [`Lock`].
pub(crate) struct LockGuard<'a>(&'a Lock);

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        if self.0.0.swap(FREE, Ordering::Release) == CONTENDED {
            wake_all(&self.0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn lock_keeps_increments_of_two_threads_apart() {
        static LOCK: Lock = Lock::new();
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let add = || {
            for _ in 0..20_000 {
                let _guard = LOCK.lock();
                // Not one atomic step on purpose: without the lock some increments are lost.
                COUNT.store(COUNT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(add);
            scope.spawn(add);
        });
        assert_eq!(COUNT.load(Ordering::Relaxed), 40_000);
    }

    #[test]
    fn wait_returns_at_once_when_the_word_has_changed() {
        let word = AtomicU32::new(1);
        wait(&word, 0, None);
    }

    #[test]
    fn kernel_tells_what_may_be_accessed() {
        static CONSTANT: u32 = 7;
        let constant = ptr::from_ref(&CONSTANT) as u64;
        let variable = AtomicU32::new(7);
        assert!(is_readable(constant) && !is_writable(constant));
        assert!(is_readable(variable.as_ptr() as u64) && is_writable(variable.as_ptr() as u64));
        assert_eq!(variable.into_inner(), 7);
        for nothing in [0, 0x1000, u64::MAX - 7, 1 << 62] {
            assert!(!is_readable(nothing) && !is_writable(nothing), "{nothing:#x}");
        }
    }

    #[test]
    fn wait_keeps_errno() {
        errno::set(77);
        wait(&AtomicU32::new(1), 0, Some(Duration::ZERO));
        assert_eq!(errno::get(), 77);
    }
}
