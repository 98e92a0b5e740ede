//! Which file descriptors are ours. Static tables, readable from any context.
//!
//! Every descriptor of ours is a duplicate of the driver's memory file, so a descriptor that was closed behind our
//! back (`close_range`, `fclose`) and is now somebody else's file is told by its inode.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Descriptors from here on are never ours; a process with so many open files is refused a device.
const LIMIT: usize = 1 << 16;

/// Exported buffers that may be open at a time.
pub(crate) const DMABUF_LIMIT: usize = 4096;

static KINDS: [AtomicU32; LIMIT] = [const { AtomicU32::new(0) }; LIMIT];
static DMABUFS: [DmaBufSlot; DMABUF_LIMIT] =
    [const { DmaBufSlot { open: AtomicU32::new(0), bytes: AtomicU64::new(0) } }; DMABUF_LIMIT];
/// Device and inode number of the memory file.
static IDENTITY: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// An exported buffer: how many descriptors are open on it, and its size.
struct DmaBufSlot {
    open: AtomicU32,
    bytes: AtomicU64,
}

/// What a descriptor stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    /// `/dev/kfd`.
    Kfd,
    /// A render node: index of the GPU.
    Render(u8),
    /// An exported buffer: its slot.
    DmaBuf(u16),
    /// The driver's own memory file, which the application must not close.
    Backing,
}

impl File {
    fn encode(self) -> u32 {
        match self {
            Self::Kfd => 1 << 16,
            Self::Render(gpu) => 2 << 16 | u32::from(gpu),
            Self::DmaBuf(slot) => 3 << 16 | u32::from(slot),
            Self::Backing => 4 << 16,
        }
    }

    fn decode(code: u32) -> Option<Self> {
        match code >> 16 {
            1 => Some(Self::Kfd),
            2 => Some(Self::Render(code as u8)),
            3 => Some(Self::DmaBuf(code as u16)),
            4 => Some(Self::Backing),
            _ => None,
        }
    }
}

fn slot(fd: c_int) -> Option<&'static AtomicU32> {
    KINDS.get(usize::try_from(fd).ok()?)
}

/// What `fd` stands for, if it is ours as far as the table knows.
pub(crate) fn get(fd: c_int) -> Option<File> {
    File::decode(slot(fd)?.load(Ordering::Acquire))
}

/// As [`get`], after a look at the file itself: a descriptor that has become another file is forgotten.
pub(crate) fn get_certain(fd: c_int) -> Option<File> {
    let file = get(fd)?;
    if identity(fd) == Some(IDENTITY.each_ref().map(|word| word.load(Ordering::Relaxed))) {
        return Some(file);
    }
    remove(fd);
    None
}

/// Notes that `fd` is ours. False if the table does not reach that far.
pub(crate) fn insert(fd: c_int, file: File) -> bool {
    remove(fd);
    let Some(slot) = slot(fd) else { return false };
    if let File::DmaBuf(buffer) = file {
        DMABUFS[usize::from(buffer) % DMABUF_LIMIT].open.fetch_add(1, Ordering::AcqRel);
    }
    slot.store(file.encode(), Ordering::Release);
    true
}

/// Forgets `fd`: it is about to be closed, or it is another file now.
pub(crate) fn remove(fd: c_int) -> Option<File> {
    let slot = slot(fd)?;
    if slot.load(Ordering::Acquire) == 0 {
        return None;
    }
    let file = File::decode(slot.swap(0, Ordering::AcqRel));
    if let Some(File::DmaBuf(buffer)) = file {
        DMABUFS[usize::from(buffer) % DMABUF_LIMIT].open.fetch_sub(1, Ordering::AcqRel);
    }
    file
}

/// Remembers which file all of our descriptors are duplicates of. False if `fd` is no open file.
pub(crate) fn set_backing(fd: c_int) -> bool {
    let Some(identity) = identity(fd) else { return false };
    for (word, value) in IDENTITY.iter().zip(identity) {
        word.store(value, Ordering::Relaxed);
    }
    insert(fd, File::Backing)
}

/// Whether the slot of an exported buffer has no open descriptor.
pub(crate) fn dmabuf_is_closed(slot: u16) -> bool {
    DMABUFS[usize::from(slot) % DMABUF_LIMIT].open.load(Ordering::Acquire) == 0
}

/// Size of an exported buffer, in bytes.
pub(crate) fn dmabuf_bytes(slot: u16) -> u64 {
    DMABUFS[usize::from(slot) % DMABUF_LIMIT].bytes.load(Ordering::Acquire)
}

/// Sets the size of an exported buffer before its first descriptor is handed out.
pub(crate) fn set_dmabuf_bytes(slot: u16, bytes: u64) {
    DMABUFS[usize::from(slot) % DMABUF_LIMIT].bytes.store(bytes, Ordering::Release);
}

fn identity(fd: c_int) -> Option<[u64; 2]> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat writes a `stat` to the valid place that it is given.
    if unsafe { libc::fstat(fd, status.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: fstat succeeded, so it filled the structure.
    let status = unsafe { status.assume_init() };
    Some([status.st_dev, status.st_ino])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_ours_until_they_are_closed() {
        assert_eq!(get(60_000), None);
        for file in [File::Kfd, File::Render(7), File::DmaBuf(4095), File::Backing] {
            assert!(insert(60_000, file));
            assert_eq!(get(60_000), Some(file));
        }
        assert_eq!(remove(60_000), Some(File::Backing));
        assert_eq!(remove(60_000), None);
    }

    #[test]
    fn descriptors_outside_the_table_are_never_ours() {
        for fd in [-1, c_int::MIN, 1 << 16, c_int::MAX] {
            assert_eq!(get(fd), None);
            assert!(!insert(fd, File::Kfd));
        }
    }

    #[test]
    fn exported_buffer_is_closed_when_its_last_descriptor_is() {
        set_dmabuf_bytes(77, 4096);
        assert!(dmabuf_is_closed(77));
        insert(60_001, File::DmaBuf(77));
        insert(60_002, File::DmaBuf(77));
        remove(60_001);
        assert!(!dmabuf_is_closed(77));
        // The number is taken by another file of ours: as good as closed.
        insert(60_002, File::Kfd);
        assert!(dmabuf_is_closed(77));
        assert_eq!(dmabuf_bytes(77), 4096);
        remove(60_002);
    }

    #[test]
    fn descriptor_that_became_another_file_is_forgotten() {
        use std::os::fd::AsRawFd;
        let other = std::fs::File::open("/dev/null").unwrap();
        insert(other.as_raw_fd(), File::Kfd);
        assert_eq!(get_certain(other.as_raw_fd()), None);
        assert_eq!(get(other.as_raw_fd()), None);
    }
}
