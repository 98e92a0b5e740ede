//! Which file descriptors are ours. A static table, readable from any context.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU16, Ordering};

/// Descriptors above this are never ours; a process with so many open files is refused a device.
const LIMIT: usize = 1 << 16;

static KINDS: [AtomicU16; LIMIT] = [const { AtomicU16::new(0) }; LIMIT];

/// What a descriptor stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    /// `/dev/kfd`.
    Kfd,
    /// A render node: index of the GPU.
    Render(u8),
    /// An exported buffer: index in [`dmabufs`](crate::driver::dmabufs).
    DmaBuf(u8),
}

impl File {
    fn encode(self) -> u16 {
        match self {
            Self::Kfd => 0x100,
            Self::Render(gpu) => 0x200 | u16::from(gpu),
            Self::DmaBuf(index) => 0x300 | u16::from(index),
        }
    }

    fn decode(code: u16) -> Option<Self> {
        let [index, kind] = code.to_le_bytes();
        match kind {
            1 => Some(Self::Kfd),
            2 => Some(Self::Render(index)),
            3 => Some(Self::DmaBuf(index)),
            _ => None,
        }
    }
}

fn slot(fd: c_int) -> Option<&'static AtomicU16> {
    KINDS.get(usize::try_from(fd).ok()?)
}

/// What `fd` stands for, if it is ours.
pub(crate) fn get(fd: c_int) -> Option<File> {
    File::decode(slot(fd)?.load(Ordering::Acquire))
}

/// Notes that `fd` is ours. False if the table does not reach that far.
pub(crate) fn insert(fd: c_int, file: File) -> bool {
    slot(fd).map(|slot| slot.store(file.encode(), Ordering::Release)).is_some()
}

/// Forgets `fd`: it is about to be closed.
pub(crate) fn remove(fd: c_int) -> Option<File> {
    File::decode(slot(fd)?.swap(0, Ordering::AcqRel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_ours_until_they_are_closed() {
        assert_eq!(get(60_000), None);
        for file in [File::Kfd, File::Render(7), File::DmaBuf(255)] {
            assert!(insert(60_000, file));
            assert_eq!(get(60_000), Some(file));
        }
        assert_eq!(remove(60_000), Some(File::DmaBuf(255)));
        assert_eq!(remove(60_000), None);
    }

    #[test]
    fn descriptors_outside_the_table_are_never_ours() {
        for fd in [-1, c_int::MIN, 1 << 16, c_int::MAX] {
            assert_eq!(get(fd), None);
            assert!(!insert(fd, File::Kfd));
        }
    }
}
