//! Running a test of this binary on the libraries of a sysroot (`cargo xtask sysroot`), whose C library is newer.

use std::path::{Path, PathBuf};
use std::process::Command;

const INSIDE: &str = "WAVESCOPE_TEST_IN_SYSROOT";

/// Runs `body` in a process of its own on the sysroot's libraries, or says why not. `name` is the calling test's.
pub(super) fn run(name: &str, body: impl FnOnce(&Path)) {
    if let Some(libraries) = std::env::var_os(INSIDE) {
        body(Path::new(&libraries));
        println!("ran in the sysroot");
        return;
    }
    let Some(root) = find() else {
        println!("NOT RUN: no sysroot; `cargo xtask sysroot` builds one");
        return;
    };
    let libraries = root.join("usr/lib/x86_64-linux-gnu");
    let mut command = Command::new(root.join("usr/lib64/ld-linux-x86-64.so.2"));
    command.arg("--library-path").arg(&libraries).arg(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(INSIDE, &libraries);
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{:?}\n{}\n{}", output.status, said[0], said[1]);
    assert!(said[0].contains("ran in the sysroot"), "{name} is no test's path:\n{}", said[0]);
}

/// Where `cargo xtask sysroot` puts them.
fn find() -> Option<PathBuf> {
    let own = std::env::var_os("WAVESCOPE_SYSROOT_DIR").map(PathBuf::from);
    let cache = std::env::var_os("XDG_CACHE_HOME").map(|cache| PathBuf::from(cache).join("wavescope"));
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/wavescope"));
    let folder = own.or(cache).or(home)?;
    let names = ["sysroot-libs", "sysroot-min", "sysroot-hip"];
    names
        .iter()
        .map(|name| folder.join(name))
        .find(|root| root.join("usr/lib/x86_64-linux-gnu/libhsa-amd-aqlprofile64.so.1").exists())
}
