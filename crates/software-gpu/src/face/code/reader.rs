//! Code objects as the application has them.

use std::ffi::c_int;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::fs::FileExt;

use hsa_sys::{HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_FILE};

use crate::face::error::{Failure, Outcome};

const INVALID_FILE: Failure = Failure(HSA_STATUS_ERROR_INVALID_FILE);

/// Where the bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::face) enum Storage {
    /// In the application's memory.
    Memory {
        /// First byte.
        base: u64,
        /// Length.
        bytes: u64,
    },
    /// In a file of the application.
    File {
        /// Its descriptor, which stays the application's.
        descriptor: RawFd,
        /// Its name, if the system tells it.
        path: Option<String>,
        /// First byte.
        offset: u64,
        /// Length.
        bytes: u64,
    },
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
        Ok(Self { storage: Storage::Memory { base, bytes: bytes.len() as u64 }, bytes })
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
        let path = std::fs::read_link(format!("/proc/self/fd/{descriptor}"));
        let path = path.ok().map(|path| path.to_string_lossy().into_owned());
        Ok(Self { storage: Storage::File { descriptor, path, offset, bytes: length }, bytes })
    }

    pub(in crate::face) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Storage {
    /// The location as ROCr spells it (amd_hsa_code_util / loader `uri`): `file://PATH#offset=..&size=..` or
    /// `memory://PID#offset=0x..&size=..`.
    pub(in crate::face) fn uri(&self) -> String {
        match self {
            Self::Memory { base, bytes } => {
                format!("memory://{}#offset={base:#x}&size={bytes}", std::process::id())
            }
            Self::File { path, descriptor, offset, bytes } => {
                let path = path.clone().unwrap_or_else(|| format!("/proc/self/fd/{descriptor}"));
                let part =
                    if *offset == 0 { String::new() } else { format!("#offset={offset}&size={bytes}") };
                format!("file://{}{part}", percent_encoded(&path))
            }
        }
    }
}

/// All but unreserved characters and slashes as `%XX` (RFC 3986, section 2.1).
fn percent_encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let encode = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    path.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uri_names_the_bytes() {
        let memory = Storage::Memory { base: 0x1000, bytes: 20 };
        assert_eq!(memory.uri(), format!("memory://{}#offset=0x1000&size=20", std::process::id()));
        let path = Some("/a b/k.co".to_owned());
        let file = Storage::File { descriptor: 3, path, offset: 64, bytes: 20 };
        assert_eq!(file.uri(), "file:///a%20b/k.co#offset=64&size=20");
    }

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
