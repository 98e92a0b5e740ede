//! Other copies of this library in the process.
//!
//! Two tools may each bring their own copy, with statics of its own. The second would count every dispatch once more. It
//! finds the first by the entries that stand in the table: they lie in an object that exports the [marker](MARKER) too.

use std::ffi::{CStr, c_void};
use std::path::PathBuf;

use crate::patch::Slot;

/// Exported by every library that contains this crate.
#[unsafe(no_mangle)]
pub(crate) static WAVESCOPE_HSA_INTERCEPT: u32 = 1;

/// The marker's name.
const MARKER: &CStr = c"WAVESCOPE_HSA_INTERCEPT";

/// The other copy whose entries stand in one of these slots.
pub(crate) fn installed_in(slots: &[Slot]) -> Option<PathBuf> {
    let own = object_of((&raw const WAVESCOPE_HSA_INTERCEPT).cast())?.dli_fbase;
    let mut seen = vec![own];
    for slot in slots {
        let Some(object) = object_of(slot.original()) else { continue };
        if seen.contains(&object.dli_fbase) {
            continue;
        }
        seen.push(object.dli_fbase);
        if has_marker(&object) {
            // SAFETY: the name of an object that is loaded.
            let path = unsafe { CStr::from_ptr(object.dli_fname) };
            return Some(PathBuf::from(path.to_string_lossy().into_owned()));
        }
    }
    None
}

/// The loaded object that `address` lies in.
fn object_of(address: *const c_void) -> Option<libc::Dl_info> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: only looks the address up; the result outlives the call.
    let found = unsafe { libc::dladdr(address, info.as_mut_ptr()) };
    // SAFETY: zeroed, or filled.
    let info = unsafe { info.assume_init() };
    (found != 0 && !info.dli_fname.is_null()).then_some(info)
}

/// Whether the marker lies in this very object: a look-up goes on in what it depends on.
fn has_marker(object: &libc::Dl_info) -> bool {
    // SAFETY: the name of an object that is loaded; nothing is loaded now.
    let handle = unsafe { libc::dlopen(object.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        return false;
    }
    // SAFETY: the handle is open.
    let marker = unsafe { libc::dlsym(handle, MARKER.as_ptr()) };
    // SAFETY: opened above, closed once.
    unsafe { libc::dlclose(handle) };
    !marker.is_null() && object_of(marker).is_some_and(|found| found.dli_fbase == object.dli_fbase)
}
