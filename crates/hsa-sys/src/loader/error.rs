//! Why a library could not be loaded.

use std::fmt;
use std::path::PathBuf;

/// A library or a symbol that is not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No candidate could be opened. The caller may name a path, or set `ROCM_PATH` or `LD_LIBRARY_PATH`.
    #[error("cannot load {library}; tried {}", Attempts(.attempts))]
    Library {
        /// The SONAME.
        library: &'static str,
        /// Each candidate in the order tried.
        attempts: Vec<Attempt>,
    },
    /// The library is there but too old (or another library of that name).
    #[error("{library}, loaded from {}, has no symbol `{symbol}`", .path.display())]
    Symbol {
        /// The SONAME.
        library: &'static str,
        /// What was opened; a plain name was found by the system's loader.
        path: PathBuf,
        /// The missing symbol.
        symbol: &'static str,
        /// What the system's loader says.
        #[source]
        source: libloading::Error,
    },
    /// The process has not loaded the library, and it was asked not to.
    #[error("{library} is not loaded in this process")]
    NotLoaded {
        /// The SONAME.
        library: &'static str,
    },
}

/// One candidate that could not be opened.
#[derive(Debug)]
pub struct Attempt {
    /// The file, or a plain name for the system's own search.
    pub path: PathBuf,
    /// What the system's loader says.
    pub error: libloading::Error,
}

struct Attempts<'a>(&'a [Attempt]);

impl fmt::Display for Attempts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, attempt) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{} ({})", attempt.path.display(), attempt.error)?;
        }
        Ok(())
    }
}
