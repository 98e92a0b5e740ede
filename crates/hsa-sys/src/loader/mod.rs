//! Loading the ROCm libraries at run time: nothing links them, so a program starts where they are missing.
//!
//! One struct of function pointers for each library: [`HsaRuntime`], [`AqlProfile`], [`RocprofilerRegister`]. A required
//! symbol that is missing is an error that names it; an optional one is a `None`. A loaded library is never unloaded:
//! ROCm's libraries start threads and have thread-local destructors.
//!
//! ```
//! use hsa_sys::loader::{HsaRuntime, LoadError};
//!
//! // No HSA program has started here, so there is nothing to find.
//! assert!(matches!(HsaRuntime::already_loaded(), Err(LoadError::NotLoaded { .. })));
//! ```

mod error;
mod libraries;
mod open;
mod search;

pub use error::{Attempt, LoadError};
pub use libraries::{AqlProfile, HsaRuntime, RocprofilerRegister};
