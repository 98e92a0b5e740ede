//! Linker flags of a library that is preloaded: never unloaded, since its threads outlive every `dlclose`.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libwavescope_software_kfd.so");
}
