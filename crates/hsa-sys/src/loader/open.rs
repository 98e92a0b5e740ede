//! Opening a library, with the system's loader, for good.

use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::error::{Attempt, LoadError};

/// `dlfcn.h` of Linux: open only what is in the process already.
const RTLD_NOLOAD: core::ffi::c_int = 4;

/// A library that stays in the process.
pub(super) struct Opened {
    soname: &'static str,
    path: PathBuf,
    library: Library,
}

impl Opened {
    /// Opens the first of `candidates` that can be opened.
    pub(super) fn first_of(soname: &'static str, candidates: Vec<PathBuf>) -> Result<Self, LoadError> {
        let mut attempts = Vec::new();
        for path in candidates {
            match open(&path, RTLD_NOW | RTLD_LOCAL) {
                Ok(library) => return Ok(Self { soname, path, library }),
                Err(error) => attempts.push(Attempt { path, error }),
            }
        }
        Err(LoadError::Library { library: soname, attempts })
    }

    /// Finds `soname` among the libraries that the process has loaded, and loads nothing.
    pub(super) fn already_loaded(soname: &'static str) -> Result<Self, LoadError> {
        let path = PathBuf::from(soname);
        match open(&path, RTLD_NOW | RTLD_NOLOAD) {
            Ok(library) => Ok(Self { soname, path, library }),
            Err(_) => Err(LoadError::NotLoaded { library: soname }),
        }
    }

    /// The address of `symbol`, as the function pointer type `F`.
    ///
    /// # Safety
    /// `F` must be the type of the C function `symbol`.
    pub(super) unsafe fn required<F: Copy>(&self, symbol: &'static str) -> Result<F, LoadError> {
        // SAFETY: the caller vouches for `F`. The pointer outlives this borrow because the library is never closed
        // (`keep`).
        match unsafe { self.library.get::<F>(symbol.as_bytes()) } {
            Ok(found) => Ok(*found),
            Err(source) => {
                Err(LoadError::Symbol { library: self.soname, path: self.path.clone(), symbol, source })
            }
        }
    }

    /// As [`Self::required`], for a symbol that not every release has.
    ///
    /// # Safety
    /// `F` must be the type of the C function `symbol`.
    pub(super) unsafe fn optional<F: Copy>(&self, symbol: &'static str) -> Option<F> {
        // SAFETY: the caller vouches for `F`.
        unsafe { self.required(symbol) }.ok()
    }

    /// Leaves the library in the process for ever, so that the pointers stay good.
    pub(super) fn keep(self) {
        core::mem::forget(self.library);
    }
}

fn open(path: &Path, flags: core::ffi::c_int) -> Result<Library, libloading::Error> {
    // SAFETY: opening runs the library's initialisers. The callers open ROCm's libraries (or what the user names in
    // their place), whose initialisers any program that links them runs as well; nothing is closed again.
    unsafe { Library::open(Some(path), flags) }
}
