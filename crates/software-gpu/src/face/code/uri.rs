//! Where a code object came from, as ROCr 7.2.4 names it (`core/runtime/amd_hsa_loader.cpp` in ROCm/rocm-systems):
//! `file://PATH`, with `#offset=..&size=..` unless it is the whole file, or `memory://PROCESS#offset=0x..&size=..`.
//!
//! Memory is named by a file if it belongs to the program or to a library that is loaded, as code objects do that were
//! compiled in. Memory that a file is merely mapped to is named as memory: ROCr looks there only with
//! `HSA_LOADER_ENABLE_MMAP_URI`, which this runtime does not know.

use std::ffi::{CStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Of `size` bytes at `address`.
pub(super) fn of_memory(address: u64, size: u64) -> String {
    match place_in_program(address) {
        Some(Place { path, offset }) if !path.is_empty() => of_part(&path, offset, size),
        _ => of_address(address, size),
    }
}

/// Of `size` bytes at `offset` of the file that `descriptor` stands for, which has `file_size` bytes; `address` is where they are
/// in memory.
pub(super) fn of_file(descriptor: c_int, (offset, size): (u64, u64), file_size: u64, address: u64) -> String {
    let path = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).map(bytes_of);
    match path {
        Ok(path) if offset == 0 && size == file_size => of_path(&path),
        Ok(path) => of_part(&path, offset, size),
        Err(_) => of_address(address, size),
    }
}

fn of_address(address: u64, size: u64) -> String {
    format!("memory://{}#offset={address:#x}&size={size}", std::process::id())
}

fn of_part(path: &[u8], offset: u64, size: u64) -> String {
    format!("{}#offset={offset}&size={size}", of_path(path))
}

/// All but unreserved characters and slashes as `%XX` (RFC 3986, section 2.1).
fn of_path(path: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let encode =
        |byte: &u8| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    let encoded: String = path.iter().map(encode).collect();
    format!("file://{encoded}")
}

fn bytes_of(path: PathBuf) -> Vec<u8> {
    path.into_os_string().as_bytes().to_vec()
}

/// A place in a file.
struct Place {
    path: Vec<u8>,
    offset: u64,
}

/// What the walk over the loaded objects looks for.
struct Search {
    address: u64,
    /// Objects that were looked at.
    seen: usize,
    found: Option<Place>,
}

/// The place of `address` in the program's file or in that of a loaded library.
fn place_in_program(address: u64) -> Option<Place> {
    let mut search = Search { address, seen: 0, found: None };
    // SAFETY: the function takes what it is given here; the search lives until the walk has ended.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

/// Looks at one loaded object; not 0 ends the walk.
///
/// # Safety
/// `object` is what `dl_iterate_phdr` passes, `search` a [`Search`].
unsafe extern "C" fn look(object: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: by the precondition it is a search, and this walk alone has it.
    let search = unsafe { &mut *search.cast::<Search>() };
    // SAFETY: by the precondition it describes an object for the duration of the call.
    let object = unsafe { &*object };
    // SAFETY: the loader's own headers of the object, that many.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    // SAFETY: a terminated name of the loader's.
    let name = unsafe { CStr::from_ptr(object.dlpi_name) }.to_bytes();
    let address = search.address.wrapping_sub(object.dlpi_addr);
    let is_around = |header: &&libc::Elf64_Phdr| {
        header.p_type == libc::PT_LOAD && address.wrapping_sub(header.p_vaddr) < header.p_memsz
    };
    if let Some(header) = headers.iter().find(is_around) {
        let offset = address.wrapping_sub(header.p_vaddr).wrapping_add(header.p_offset);
        // The program comes first and has no name there.
        let is_program = search.seen == 0 && name.is_empty();
        let path = if is_program { program() } else { name.to_vec() };
        search.found = Some(Place { path, offset });
    }
    search.seen += 1;
    c_int::from(search.found.is_some())
}

/// The program's file; started through a loader by hand, it is the loader's, as in ROCr.
fn program() -> Vec<u8> {
    std::fs::read_link(Path::new("/proc/self/exe")).map(bytes_of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn unusual_characters_are_encoded_and_a_part_is_told_from_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b%.co");
        std::fs::write(&path, [0; 84]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let name = format!("file://{}/a%20b%25.co", folder.path().display());
        let of = |part| of_file(file.as_raw_fd(), part, 84, 0x1000);
        assert_eq!(of((0, 84)), name);
        assert_eq!(of((0, 20)), format!("{name}#offset=0&size=20"));
        assert_eq!(of((64, 20)), format!("{name}#offset=64&size=20"));
        let memory = format!("memory://{}#offset=0x1000&size=20", std::process::id());
        assert_eq!(of_file(-1, (0, 20), 84, 0x1000), memory);
    }

    /// The bytes are read from where the name says.
    #[test]
    fn what_is_compiled_in_is_found_in_the_program() {
        static MARK: [u8; 32] = *b"what is compiled in is found 715";
        let program = std::env::current_exe().unwrap();
        let uri = of_memory(MARK.as_ptr().addr() as u64, 32);
        let (path, part) = uri.strip_prefix("file://").unwrap().split_once("#offset=").unwrap();
        assert_eq!(path, program.to_str().unwrap());
        let offset: usize = part.strip_suffix("&size=32").unwrap().parse().unwrap();
        assert_eq!(std::fs::read(program).unwrap()[offset..offset + 32], MARK);
    }
}
