//! Pages from the operating system, zero and not yet backed by memory.

/// Whole pages, unmapped when dropped.
#[derive(Debug)]
pub(super) struct Pages {
    address: usize,
    bytes: usize,
    /// Of whom they are.
    process: u32,
}

impl Pages {
    /// Maps pages for `bytes` bytes; `None` if the system refuses or the size is absurd. Nothing is reserved for
    /// them: the device memory of a real GPU is larger than that of the machine that runs the model.
    pub(super) fn map(bytes: u64) -> Option<Self> {
        let bytes =
            usize::try_from(bytes).ok().filter(|&bytes| bytes != 0 && bytes <= isize::MAX as usize)?;
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        let process = std::process::id();
        (start != libc::MAP_FAILED).then(|| Self { address: start.expose_provenance(), bytes, process })
    }

    /// As [`map`](Self::map), and forked children do not get them: touching them there is a SIGSEGV.
    pub(super) fn map_for_this_process(bytes: u64) -> Option<Self> {
        let pages = Self::map(bytes)?;
        let start = std::ptr::with_exposed_provenance_mut(pages.address);
        // SAFETY: the range is the mapping just made, for which it changes nothing in this process.
        let done = unsafe { libc::madvise(start, pages.bytes, libc::MADV_DONTFORK) };
        (done == 0).then_some(pages)
    }

    pub(super) fn address(&self) -> u64 {
        self.address as u64
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // In a child something of its own may lie there by now.
        if self.process != std::process::id() {
            return;
        }
        let start = std::ptr::with_exposed_provenance_mut(self.address);
        // SAFETY: the range was mapped by `map` and is unmapped nowhere else. Whoever dropped this value took the
        // range out of the address map first, so no device begins an access any more.
        unsafe { libc::munmap(start, self.bytes) };
    }
}
