//! The name under which programs ask the loader for the runtime, and that it stays loaded: it has threads and
//! thread-local state, which must not lose their code.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhsa-runtime64.so.1");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
