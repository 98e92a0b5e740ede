//! Which paths are devices, and where topology files really lie. Works on the stack: no allocation.

use std::ffi::{CStr, c_char};

/// Folders in which the kernel driver describes its GPUs.
const TOPOLOGY: [&[u8]; 2] = [b"/sys/devices/virtual/kfd/kfd/topology", b"/sys/class/kfd/kfd/topology"];

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// `/dev/kfd`.
    Kfd,
    /// `/dev/dri/renderD<minor>`.
    Render {
        /// Minor device number.
        minor: u32,
    },
}

/// The device that `path` names, if it names one.
pub(crate) fn device(path: &[u8]) -> Option<Device> {
    if path == b"/dev/kfd" {
        return Some(Device::Kfd);
    }
    let minor = std::str::from_utf8(path.strip_prefix(b"/dev/dri/renderD")?).ok()?;
    let digits = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| minor.parse().ok().map(|minor| Device::Render { minor })).flatten()
}

/// A path rebuilt on the stack.
pub(crate) struct Redirected {
    bytes: [u8; libc::PATH_MAX as usize],
}

impl Redirected {
    /// As a C string.
    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }

    #[cfg(test)]
    fn to_bytes(&self) -> &[u8] {
        CStr::from_bytes_until_nul(&self.bytes).unwrap().to_bytes()
    }
}

/// Moves a path below a topology folder to `$WAVESCOPE_GPU_TOPOLOGY`, if that is set. `None`: use the path as it is.
pub(crate) fn redirect(path: &[u8]) -> Option<Redirected> {
    // Cheapest test first: this runs on every `fopen` of the process.
    if !path.starts_with(b"/sys/") {
        return None;
    }
    redirect_to(path, topology_folder()?)
}

fn redirect_to(path: &[u8], folder: &[u8]) -> Option<Redirected> {
    let rest = TOPOLOGY.iter().find_map(|prefix| path.strip_prefix(*prefix))?;
    if !rest.is_empty() && rest[0] != b'/' {
        return None;
    }
    let mut bytes = [0; libc::PATH_MAX as usize];
    // One byte stays for the terminating zero; a path that does not fit is left alone and fails as it would have.
    let room = bytes.len() - 1;
    if folder.len() + rest.len() > room {
        return None;
    }
    bytes[..folder.len()].copy_from_slice(folder);
    bytes[folder.len()..folder.len() + rest.len()].copy_from_slice(rest);
    Some(Redirected { bytes })
}

/// The folder that describes our GPUs: `$WAVESCOPE_GPU_TOPOLOGY`.
pub(crate) fn topology_folder() -> Option<&'static [u8]> {
    // SAFETY: the name is a C string. As with every reader of the environment, the process must not change the
    // variable at the same time; it is set before the process starts.
    let value = unsafe { libc::getenv(c"WAVESCOPE_GPU_TOPOLOGY".as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv returned a C string that lives as long as the environment.
    let folder = unsafe { CStr::from_ptr(value) }.to_bytes();
    (!folder.is_empty()).then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_device_names_are_devices() {
        assert_eq!(device(b"/dev/kfd"), Some(Device::Kfd));
        assert_eq!(device(b"/dev/dri/renderD128"), Some(Device::Render { minor: 128 }));
        for path in [&b"/dev/kfd2"[..], b"/dev/dri/renderD", b"/dev/dri/renderD12x", b"/dev/dri/card0", b""] {
            assert_eq!(device(path), None);
        }
    }

    #[test]
    fn topology_paths_move_and_others_stay() {
        let to = |path: &[u8]| redirect_to(path, b"/t").map(|path| path.to_bytes().to_vec());
        assert_eq!(to(b"/sys/class/kfd/kfd/topology/nodes/1/gpu_id").unwrap(), b"/t/nodes/1/gpu_id");
        assert_eq!(to(b"/sys/devices/virtual/kfd/kfd/topology").unwrap(), b"/t");
        assert_eq!(to(b"/sys/class/kfd/kfd/topology2/x"), None);
        assert_eq!(to(b"/sys/class/drm"), None);
    }

    #[test]
    fn a_path_too_long_to_rebuild_is_left_alone() {
        let mut path = b"/sys/class/kfd/kfd/topology/".to_vec();
        path.resize(path.len() + 5000, b'a');
        assert!(redirect_to(&path, b"/t").is_none());
    }
}
