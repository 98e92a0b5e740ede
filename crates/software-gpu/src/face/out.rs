//! Results through the pointers that C callers pass, the only place that writes through them.

use std::ffi::{CStr, c_char, c_void};

use super::error::{Failure, Outcome};

/// Writes a result.
///
/// # Safety
/// `out` is null or valid for writing a `T`: what the HSA specification demands of out parameters.
pub(super) unsafe fn put<T>(out: *mut T, value: T) -> Outcome {
    if out.is_null() {
        return Err(Failure::ARGUMENT);
    }
    // SAFETY: not null, and valid by the precondition; unaligned, since C callers pass byte buffers.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

/// Writes the bytes of an attribute's value.
///
/// # Safety
/// `out` is null or valid for writing the attribute, whose size the specification states.
pub(super) unsafe fn put_bytes(out: *mut c_void, value: &[u8]) -> Outcome {
    if out.is_null() {
        return Err(Failure::ARGUMENT);
    }
    // SAFETY: not null, and valid for the attribute's size by the precondition; `value` is our own memory.
    unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), out.cast::<u8>(), value.len()) };
    Ok(())
}

/// Copies an array that the caller passed.
///
/// # Safety
/// `first` is valid for reading `count` elements, or `count` is 0.
pub(super) unsafe fn array<T: Copy>(first: *const T, count: usize) -> Outcome<Vec<T>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if first.is_null() {
        return Err(Failure::ARGUMENT);
    }
    // SAFETY: not null and valid for `count` elements by the precondition; C arrays are aligned.
    Ok(unsafe { std::slice::from_raw_parts(first, count) }.to_vec())
}

/// Borrows a string that the caller passed.
///
/// # Safety
/// `text` is null or a terminated string that outlives `'a`.
pub(super) unsafe fn text<'a>(text: *const c_char) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(Failure::ARGUMENT);
    }
    // SAFETY: not null, and a terminated string by the precondition.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| Failure::ARGUMENT)
}

/// An attribute's value as the bytes that C reads.
pub(super) fn bytes_of_text(text: &str, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    let length = text.len().min(size - 1);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}
