//! Loading libraries at run time, on stand-ins that the system's C compiler builds: each function of a stand-in
//! returns its place in the list of required symbols, so a pointer in the wrong field is seen.

#![cfg(test)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;

use hsa_sys::loader::{AqlProfile, HsaRuntime, LoadError, RocprofilerRegister};
use hsa_sys::rocprofiler_register::{
    ROCP_REG_INVALID_API_ADDRESS, rocprofiler_register_library_indentifier_t,
};
use hsa_sys::{aqlprofile_handle_t, aqlprofile_version_t, hsa_status_t};

/// Builds a shared library that defines `symbols`, each returning its index.
fn stand_in(folder: &Path, soname: &str, symbols: &[&str]) -> PathBuf {
    let functions = symbols
        .iter()
        .enumerate()
        .map(|(index, symbol)| format!("int {symbol}(void) {{ return {index}; }}\n"));
    let source = folder.join("stand_in.c");
    std::fs::write(&source, functions.collect::<String>()).unwrap();
    let library = folder.join(soname);
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-w", "-o"])
        .arg(&library)
        .arg(&source)
        .arg(format!("-Wl,-soname,{soname}"));
    assert!(compiler.status().unwrap().success(), "cc does not build the stand-in");
    library
}

/// The place of `symbol` in `symbols`.
fn place(symbols: &[&str], symbol: &str) -> u32 {
    symbols.iter().position(|known| *known == symbol).unwrap() as u32
}

#[test]
fn each_pointer_calls_the_function_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let hsa =
        HsaRuntime::load_from(&stand_in(folder.path(), HsaRuntime::SONAME, HsaRuntime::REQUIRED)).unwrap();
    // SAFETY: the stand-in's functions take nothing and return a number.
    assert_eq!(unsafe { (hsa.hsa_init)() }, hsa_status_t(place(HsaRuntime::REQUIRED, "hsa_init")));
    // SAFETY: as above.
    assert_eq!(unsafe { (hsa.hsa_shut_down)() }, hsa_status_t(place(HsaRuntime::REQUIRED, "hsa_shut_down")));
    // SAFETY: as above; the argument is ignored.
    let freed = unsafe { (hsa.hsa_amd_memory_pool_free)(null_mut()) };
    assert_eq!(freed, hsa_status_t(place(HsaRuntime::REQUIRED, "hsa_amd_memory_pool_free")));
}

#[test]
fn a_missing_library_names_every_file_tried() {
    let missing = Path::new("no/such/folder/libhsa-runtime64.so.1");
    let error = HsaRuntime::load_from(missing).unwrap_err();
    assert!(
        matches!(&error, LoadError::Library { library: HsaRuntime::SONAME, attempts } if attempts.len() == 1)
    );
    let text = error.to_string();
    assert!(text.starts_with("cannot load libhsa-runtime64.so.1; tried no/such/folder/libhsa"), "{text}");
}

#[test]
fn a_missing_required_symbol_is_named_with_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let required: Vec<_> =
        AqlProfile::REQUIRED.iter().filter(|s| !s.ends_with("_codeobj_marker")).copied().collect();
    let path = stand_in(folder.path(), AqlProfile::SONAME, &required);
    let error = AqlProfile::load_from(&path).unwrap_err();
    let LoadError::Symbol { symbol, path: named, .. } = &error else { panic!("{error}") };
    assert_eq!((*symbol, named.as_path()), ("aqlprofile_att_codeobj_marker", path.as_path()));
    assert!(error.to_string().contains("has no symbol `aqlprofile_att_codeobj_marker`"), "{error}");
}

#[test]
fn the_version_query_of_aqlprofile_is_optional() {
    let folder = tempfile::tempdir().unwrap();
    let old = AqlProfile::load_from(&stand_in(folder.path(), "old.so", AqlProfile::REQUIRED)).unwrap();
    assert!(old.aqlprofile_get_version.is_none());
    let symbols: Vec<_> = AqlProfile::REQUIRED.iter().chain(&["aqlprofile_get_version"]).copied().collect();
    let new = AqlProfile::load_from(&stand_in(folder.path(), "new.so", &symbols)).unwrap();
    let mut version = aqlprofile_version_t::zeroed();
    // SAFETY: the stand-in ignores the argument and returns a number.
    let status = unsafe { (new.aqlprofile_get_version.unwrap())(&raw mut version) };
    assert_eq!(status, hsa_status_t(AqlProfile::REQUIRED.len() as u32));
    // SAFETY: as above.
    unsafe { (new.aqlprofile_pmc_delete_packets)(aqlprofile_handle_t { handle: 1 }) };
}

#[test]
fn only_a_library_of_the_process_is_taken_when_nothing_may_be_loaded() {
    let error = RocprofilerRegister::already_loaded().unwrap_err();
    assert_eq!(error.to_string(), "librocprofiler-register.so.0 is not loaded in this process");
    let folder = tempfile::tempdir().unwrap();
    // The stand-in's place 5 in this order is what an import function outside its library gets in secure mode.
    let mut symbols = vec!["unused_0", "unused_1", "unused_2", "unused_3", "unused_4"];
    symbols.extend(RocprofilerRegister::REQUIRED);
    let path = stand_in(folder.path(), RocprofilerRegister::SONAME, &symbols);
    RocprofilerRegister::load_from(&path).unwrap();
    let register = RocprofilerRegister::already_loaded().unwrap();
    let mut id = rocprofiler_register_library_indentifier_t::zeroed();
    // SAFETY: the stand-in ignores its arguments and returns a number.
    let code = unsafe {
        (register.rocprofiler_register_library_api_table)(
            c"hsa".as_ptr(),
            None,
            0,
            null_mut(),
            0,
            &raw mut id,
        )
    };
    assert_eq!(code, ROCP_REG_INVALID_API_ADDRESS);
}
