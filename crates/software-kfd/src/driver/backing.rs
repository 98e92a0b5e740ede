//! The memory file behind every device: video memory, system memory that the driver hands out, doorbells.
//!
//! The file is as large as offsets go and sparse: a range costs nothing until it is touched. Ranges are handed out by
//! a growing offset and never again; giving one back punches a hole.

use std::cell::Cell;
use std::ffi::c_int;
use std::io;

use super::error::Error;
use crate::errno::{self, Answer, Errno};
use crate::{fds, next};

/// Size of the file: more than a process can ask for one buffer after the other.
const FILE_BYTES: u64 = 1 << 60;
/// The first range begins here: an offset of 0 would look like "none".
const FIRST: u64 = 1 << 21;
/// Buffers of at least this size lie on its multiples, so that large pages fit.
const LARGE: u64 = 1 << 21;
/// A page.
pub(super) const PAGE: u64 = 1 << 12;

/// The memory file.
#[derive(Debug)]
pub(super) struct Backing {
    fd: c_int,
    next: Cell<u64>,
}

impl Backing {
    /// Makes the file.
    pub(super) fn new() -> Result<Self, Error> {
        let fault = |call| Error::Backing { call, source: io::Error::last_os_error() };
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"wavescope-gpu".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(fault("memfd_create"));
        }
        // SAFETY: a plain system call on a descriptor of ours.
        if unsafe { libc::ftruncate64(fd, FILE_BYTES as i64) } != 0 {
            return Err(fault("ftruncate"));
        }
        if !fds::set_backing(fd) {
            return Err(fault("fstat"));
        }
        Ok(Self { fd, next: Cell::new(FIRST) })
    }

    /// A further descriptor on the file, for the application.
    pub(super) fn duplicate(&self, close_on_exec: bool) -> Result<c_int, Errno> {
        let command = if close_on_exec { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
        // SAFETY: a plain system call on a descriptor of ours.
        let fd = unsafe { next::fcntl(self.fd, command, 0) };
        if fd < 0 { Err(errno::last()) } else { Ok(fd) }
    }

    /// Takes a range of whole pages and returns its offset.
    pub(super) fn take(&self, bytes: u64, alignment: u64) -> Result<u64, Errno> {
        let alignment = if bytes >= LARGE { alignment.max(LARGE) } else { alignment.max(PAGE) };
        let offset = self.next.get().next_multiple_of(alignment);
        let end = offset.checked_add(bytes).filter(|&end| end <= FILE_BYTES).ok_or(Errno(libc::ENOMEM))?;
        self.next.set(end.next_multiple_of(PAGE));
        Ok(offset)
    }

    /// Gives a range's memory back to the system.
    pub(super) fn release(&self, offset: u64, bytes: u64) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: a plain system call on a descriptor of ours. A failure leaves the pages in use, no more.
        unsafe { libc::fallocate64(self.fd, mode, offset as i64, bytes as i64) };
    }

    /// Maps a range anywhere, for the driver's own use.
    pub(super) fn map(&self, offset: u64, bytes: u64) -> Result<u64, Errno> {
        // SAFETY: without MAP_FIXED no mapping of anybody is touched.
        let address = unsafe {
            libc::mmap64(
                std::ptr::null_mut(),
                bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                self.fd,
                offset as i64,
            )
        };
        if address == libc::MAP_FAILED { Err(errno::last()) } else { Ok(address as u64) }
    }

    /// Maps a range at `va`, in place of the reservation that the runtime made there.
    pub(super) fn map_at(&self, va: u64, offset: u64, bytes: u64, protection: c_int) -> Answer {
        // SAFETY: the runtime asks the driver to put memory at an address that it reserved for this, as it asks the
        // kernel's driver; whatever is mapped there is that reservation.
        let address = unsafe {
            libc::mmap64(
                va as *mut libc::c_void,
                bytes as usize,
                protection,
                libc::MAP_SHARED | libc::MAP_FIXED,
                self.fd,
                offset as i64,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(errno::last());
        }
        // SAFETY: the range was mapped just now. A child process has no business with device memory.
        unsafe { libc::madvise(address, bytes as usize, libc::MADV_DONTFORK) };
        Ok(())
    }
}

/// Puts a bare reservation back where [`Backing::map_at`] had put memory.
pub(super) fn reserve_at(va: u64, bytes: u64) -> Answer {
    // SAFETY: the range was mapped by `map_at` on the runtime's behalf and is still the runtime's reservation.
    let address = unsafe {
        libc::mmap64(
            va as *mut libc::c_void,
            bytes as usize,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED { Err(errno::last()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_do_not_overlap_and_large_ones_are_aligned() {
        let backing = Backing { fd: -1, next: Cell::new(FIRST) };
        let a = backing.take(4096, PAGE).unwrap();
        let b = backing.take(8192, 8192).unwrap();
        let c = backing.take(3 << 20, PAGE).unwrap();
        assert!(a + 4096 <= b && b + 8192 <= c, "{a:#x} {b:#x} {c:#x}");
        assert_eq!((b % 8192, c % LARGE), (0, 0));
        assert_eq!(backing.take(1 << 61, PAGE), Err(Errno(libc::ENOMEM)));
    }
}
