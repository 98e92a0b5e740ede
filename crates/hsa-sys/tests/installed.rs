//! The vendor's own libraries, where they are installed. A file of its own: loading them changes the process.

#![cfg(test)]

use hsa_sys::loader::{AqlProfile, HsaRuntime, LoadError, RocprofilerRegister};

/// Where ROCm is installed, its libraries have every required symbol.
#[test]
fn installed_rocm_libraries_load() {
    let outcomes = [
        HsaRuntime::load().map(|_| HsaRuntime::SONAME),
        AqlProfile::load().map(|_| AqlProfile::SONAME),
        RocprofilerRegister::load().map(|_| RocprofilerRegister::SONAME),
    ];
    for outcome in outcomes {
        match outcome {
            Ok(soname) => println!("{soname}: every required symbol is there"),
            Err(error @ LoadError::Library { .. }) => println!("NOT RUN: {error}"),
            Err(error) => panic!("{error}"),
        }
    }
}
