//! Code objects as the application has them.

use std::ffi::c_int;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;

use hsa_sys::{HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_FILE};

use super::uri;
use crate::face::error::{Failure, Outcome};

const INVALID_FILE: Failure = Failure(HSA_STATUS_ERROR_INVALID_FILE);

/// Where the bytes are: always in memory, as ROCr 7.2.4 says also of files, which it maps. Only the name tells them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::face) struct Storage {
    /// First byte: of the application's memory, or of what was read from its file, which stays as long as the reader.
    pub(in crate::face) base: u64,
    /// Length.
    pub(in crate::face) bytes: u64,
    /// Where they came from.
    pub(in crate::face) uri: String,
}

/// A code object with its bytes.
#[derive(Debug)]
pub(in crate::face) struct Reader {
    pub(in crate::face) storage: Storage,
    bytes: Vec<u8>,
}

impl Reader {
    /// Reads a code object from memory.
    pub(in crate::face) fn from_memory(base: u64, bytes: Vec<u8>) -> Outcome<Self> {
        if bytes.is_empty() {
            return Err(Failure(HSA_STATUS_ERROR_INVALID_ARGUMENT));
        }
        let size = bytes.len() as u64;
        Ok(Self { storage: Storage { base, bytes: size, uri: uri::of_memory(base, size) }, bytes })
    }

    /// Reads a code object from a file, or from a part of it.
    pub(in crate::face) fn from_file(descriptor: c_int, part: Option<(u64, u64)>) -> Outcome<Self> {
        if descriptor < 0 {
            return Err(INVALID_FILE);
        }
        // SAFETY: the descriptor is only borrowed: `ManuallyDrop` never closes it. A wrong one makes reads fail.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
        let size = file.metadata().map_err(|_| INVALID_FILE)?.len();
        let (offset, length) = part.unwrap_or((0, size));
        if length == 0 || offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(Failure(HSA_STATUS_ERROR_INVALID_ARGUMENT));
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| INVALID_FILE)?];
        file.read_exact_at(&mut bytes, offset).map_err(|_| INVALID_FILE)?;
        let base = bytes.as_ptr().expose_provenance() as u64;
        let uri = uri::of_file(descriptor, (offset, length), size, base);
        Ok(Self { storage: Storage { base, bytes: length, uri }, bytes })
    }

    pub(in crate::face) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_beyond_the_end_of_a_file_is_refused() {
        use std::os::fd::AsRawFd;
        let file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        let size = file.metadata().unwrap().len();
        assert!(Reader::from_file(file.as_raw_fd(), Some((1, size - 1))).is_ok());
        assert!(Reader::from_file(file.as_raw_fd(), Some((1, size))).is_err());
        assert!(Reader::from_file(file.as_raw_fd(), Some((u64::MAX, 2))).is_err());
        assert!(Reader::from_file(-1, None).is_err());
    }
}
