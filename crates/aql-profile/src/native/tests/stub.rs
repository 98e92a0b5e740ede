//! Shared libraries with the library's symbols and no function, made by the system's C compiler.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use hsa_sys::loader::AqlProfile;

/// What the stand-in says of its version.
pub(super) enum Version {
    /// It has no version call.
    Absent,
    /// It has nothing but a version call.
    OneFunctionOnly,
    /// Major, minor, patch.
    Number([u32; 3]),
}

/// A stand-in in a folder of its own.
pub(super) struct Stub {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Stub {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Builds a stand-in; says why and returns `None` where there is no C compiler.
pub(super) fn build(version: Version) -> Option<Stub> {
    let mut code = String::new();
    if !matches!(version, Version::OneFunctionOnly) {
        for symbol in AqlProfile::REQUIRED.iter().chain(&["aqlprofile_register_agent_info"]) {
            writeln!(code, "int {symbol}(void) {{ return 0x1000; }}").unwrap();
        }
    }
    let number = match version {
        Version::Absent => None,
        Version::OneFunctionOnly => Some([1, 0, 0]),
        Version::Number(number) => Some(number),
    };
    if let Some([major, minor, patch]) = number {
        let body = format!("v[0] = {major}; v[1] = {minor}; v[2] = {patch}; return 0;");
        writeln!(code, "int aqlprofile_get_version(unsigned *v) {{ {body} }}").unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = (folder.path().join("stub.c"), folder.path().join(AqlProfile::SONAME));
    std::fs::write(&source, code).unwrap();
    match Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&path).arg(&source).status() {
        Ok(status) if status.success() => Some(Stub { path, _folder: folder }),
        other => {
            println!("NOT RUN: no C compiler for a stand-in library: {other:?}");
            None
        }
    }
}
