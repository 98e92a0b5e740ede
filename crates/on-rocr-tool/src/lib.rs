//! The smallest tool: the runtime loads it at the end of `hsa_init` (`HSA_TOOLS_LIB`) and hands it the API table, which
//! it keeps for whoever asks by `wavescope_runtime_table`.
//!
//! Tests that drive Wavescope's crates in their own process on the real runtime get their table here. It replaces no
//! entry and must know nothing but the two functions that every tool has.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

static TABLE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The runtime's `HsaApiTable`, or null while no runtime is initialised.
#[unsafe(no_mangle)]
pub extern "C" fn wavescope_runtime_table() -> *mut c_void {
    TABLE.load(Ordering::Acquire)
}

/// Takes the table.
#[unsafe(no_mangle)]
pub extern "C" fn OnLoad(
    table: *mut c_void,
    _runtime_version: u64,
    _failed_tools: u64,
    _failed_names: *const *const c_char,
) -> bool {
    TABLE.store(table, Ordering::Release);
    true
}

/// Forgets the table: the runtime goes down.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {
    TABLE.store(ptr::null_mut(), Ordering::Release);
}
