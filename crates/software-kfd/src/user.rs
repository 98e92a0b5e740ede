//! Whether the caller's memory is there, asked before it is touched: a bad pointer is its `EFAULT`, not a fault in this
//! library.
//!
//! The kernel copies arguments in and out and so notices. Here they are used in place, and the kernel is asked about
//! each page with a futex call that does nothing, which needs no permission beyond those of `futex`. So an application
//! that unmaps an argument *during* its call faults here, where the kernel would answer `EFAULT`.

use crate::errno::{Answer, Errno};
use crate::futex;

const PAGE: u64 = 4096;

/// Whether `bytes` at `address` may be read.
///
/// # Errors
/// `EFAULT` if not.
pub(crate) fn readable(address: u64, bytes: usize) -> Answer {
    every_page(address, bytes, futex::is_readable)
}

/// Whether `bytes` at `address` may be read and written.
///
/// # Errors
/// `EFAULT` if not.
pub(crate) fn writable(address: u64, bytes: usize) -> Answer {
    every_page(address, bytes, futex::is_writable)
}

fn every_page(address: u64, bytes: usize, is_there: fn(u64) -> bool) -> Answer {
    if bytes == 0 {
        return Ok(());
    }
    let last = address.checked_add(bytes as u64 - 1).ok_or(Errno(libc::EFAULT))?;
    let pages = address / PAGE..=last / PAGE;
    if pages.into_iter().all(|page| is_there(page * PAGE)) { Ok(()) } else { Err(Errno(libc::EFAULT)) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Pages of which the first is memory, the second read-only and the third nothing. Never unmapped.
    pub(crate) fn pages() -> u64 {
        let (nowhere, bytes) = (std::ptr::null_mut(), 3 * PAGE as usize);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let pages = unsafe { libc::mmap(nowhere, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        assert_ne!(pages, libc::MAP_FAILED);
        for (page, protection) in [(1, libc::PROT_READ), (2, libc::PROT_NONE)] {
            let page = pages.wrapping_byte_add(page * PAGE as usize);
            // SAFETY: a page of the mapping above, which nobody uses yet.
            assert_eq!(unsafe { libc::mprotect(page, PAGE as usize, protection) }, 0);
        }
        pages as u64
    }

    #[test]
    fn every_page_counts() {
        const BAD: Answer = Err(Errno(libc::EFAULT));
        let pages = pages();
        assert_eq!((readable(pages, 4096), writable(pages, 4096)), (Ok(()), Ok(())));
        assert_eq!((readable(pages + 1, 4096), writable(pages + 1, 4096)), (Ok(()), BAD));
        assert_eq!((readable(pages, 8192), readable(pages, 8193)), (Ok(()), BAD));
        assert_eq!((readable(u64::MAX, 2), readable(16, 0)), (BAD, Ok(())));
    }
}
