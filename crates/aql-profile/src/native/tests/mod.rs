//! Loading and refusing, with stand-in libraries built on the spot; and the real library, in a sysroot.
//!
//! The real one runs without a GPU as far as counters go: they never touch the HSA runtime, so here they are created
//! without one, which [`Native`] itself refuses.

mod memory;
mod real;
mod stub;
mod sysroot;

use std::path::Path;

use super::*;

#[test]
fn a_missing_library_is_named_with_what_was_searched() {
    let path = Path::new("/nowhere/libhsa-amd-aqlprofile64.so.1");
    let error = Native::version_of(Some(path)).unwrap_err();
    assert!(matches!(&error, Error::LibraryMissing { searched, .. } if searched == &[path.to_owned()]));
    let text = error.to_string();
    assert!(text.contains("libhsa-amd-aqlprofile64.so.1 was not found in /nowhere/libhsa"), "{text}");
}

#[test]
fn a_library_without_the_version_call_is_too_old() {
    let Some(stub) = stub::build(stub::Version::Absent) else { return };
    let error = Native::version_of(Some(stub.path())).unwrap_err();
    assert!(matches!(error, Error::LibraryTooOld { needed: "1.0.0", .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("no symbol `aqlprofile_get_version`"), "{text}");
    assert!(text.contains(&stub.path().display().to_string()), "{text}");
}

#[test]
fn a_library_without_a_needed_function_is_too_old() {
    let Some(stub) = stub::build(stub::Version::OneFunctionOnly) else { return };
    let error = Native::version_of(Some(stub.path())).unwrap_err();
    assert!(error.to_string().contains("no symbol `aqlprofile_register_agent`"), "{error}");
}

#[test]
fn a_library_of_another_major_version_is_refused_with_the_version_found() {
    let Some(stub) = stub::build(stub::Version::Number([2, 3, 4])) else { return };
    let error = Native::version_of(Some(stub.path())).unwrap_err();
    assert!(matches!(&error, Error::LibraryTooOld { found, .. } if found == "2.3.4"), "{error}");
    let Some(stub) = stub::build(stub::Version::Number([1, 7, 0])) else { return };
    assert_eq!(Native::version_of(Some(stub.path())).unwrap(), [1, 7, 0]);
}

// Nothing in this test process has loaded the HSA runtime.
#[test]
fn nothing_is_loaded_without_the_runtime() {
    let error = Native::open_at(Path::new("/nowhere")).unwrap_err();
    assert!(matches!(error, Error::RuntimeNotInitialised { .. }), "{error}");
    assert!(error.to_string().contains("libhsa-runtime64.so.1 is not loaded in this process"), "{error}");
}
