//! `errno`, the way the kernel's answers reach a C caller.

use std::ffi::c_int;

/// An error number of the kernel (`ENOMEM`, `EINVAL`, …), positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) c_int);

/// What a device call answers: nothing to say, or an error number.
pub(crate) type Answer = Result<(), Errno>;

/// The value now in `errno`.
pub(crate) fn get() -> c_int {
    // SAFETY: glibc returns a valid pointer to the calling thread's errno.
    let location = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is valid for this thread and nobody else writes it.
    unsafe { *location }
}

/// Stores `number` in `errno`.
pub(crate) fn set(number: c_int) {
    // SAFETY: glibc returns a valid pointer to the calling thread's errno.
    let location = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is valid for this thread and nobody else writes it.
    unsafe { *location = number };
}

/// Turns an answer into C's convention. A success leaves `errno` as it was.
pub(crate) fn into_c(answer: Answer) -> c_int {
    match answer {
        Ok(()) => 0,
        Err(Errno(number)) => {
            set(number);
            -1
        }
    }
}

/// The error number of the last failed system call of this thread.
pub(crate) fn last() -> Errno {
    Errno(get())
}
