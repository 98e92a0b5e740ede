//! Instruction text through AMD's code-object manager library (comgr), loaded at run time.
//!
//! For tools that show disassembly, on request: the library brings all of LLVM into the process, so nothing here runs
//! by itself and nothing belongs into a profiled program. Entry points are those of `amd_comgr.h`
//! (`amd/comgr/include` of ROCm/llvm-project), unchanged between versions 2 and 3 of the library.

use std::ffi::{CString, c_char, c_int, c_void};
use std::slice;

use libloading::Library;

use crate::error::Error;
use crate::target::Target;

/// File names of the library, newest first.
const NAMES: [&str; 3] = ["libamd_comgr.so.3", "libamd_comgr.so.2", "libamd_comgr.so"];

/// `amd_comgr_status_t`: 0 is success.
type Status = c_int;
/// `amd_comgr_disassembly_info_t`: a struct of one 64-bit handle, passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
struct Info {
    handle: u64,
}
/// Copies up to `size` bytes of memory at `from` to `to`, returns how many.
type ReadMemory = extern "C" fn(from: u64, to: *mut c_char, size: u64, user_data: *mut c_void) -> u64;
/// Receives the text, NUL-terminated.
type PrintInstruction = extern "C" fn(instruction: *const c_char, user_data: *mut c_void);
/// Receives the address that a branch in the text goes to.
type PrintAddress = extern "C" fn(address: u64, user_data: *mut c_void);

type CreateInfo =
    unsafe extern "C" fn(*const c_char, ReadMemory, PrintInstruction, PrintAddress, *mut Info) -> Status;
type DestroyInfo = unsafe extern "C" fn(Info) -> Status;
type Disassemble = unsafe extern "C" fn(Info, u64, *mut c_void, *mut u64) -> Status;

/// The loaded library.
pub struct Comgr {
    create_info: CreateInfo,
    destroy_info: DestroyInfo,
    disassemble: Disassemble,
    /// Keeps the code behind the pointers mapped.
    _library: Library,
}

impl Comgr {
    /// Loads the library from where the system's loader finds it.
    ///
    /// # Errors
    ///
    /// [`Error::ComgrMissing`] with the loader's words when no version of it is installed, or an installed one lacks
    /// an entry point.
    pub fn load() -> Result<Self, Error> {
        let mut reasons = Vec::new();
        for name in NAMES {
            match Self::load_from(name) {
                Ok(comgr) => return Ok(comgr),
                Err(Error::ComgrMissing { reason }) => reasons.push(reason),
                Err(other) => return Err(other),
            }
        }
        Err(Error::ComgrMissing { reason: reasons.join("; ") })
    }

    /// Loads the library from a file.
    ///
    /// # Errors
    ///
    /// [`Error::ComgrMissing`], see [`load`](Self::load).
    pub fn load_from(path: &str) -> Result<Self, Error> {
        let missing = |error: libloading::Error| Error::ComgrMissing { reason: error.to_string() };
        // SAFETY: the caller asks for AMD's comgr by name; its initialisers only register LLVM options and targets.
        let library = unsafe { Library::new(path) }.map_err(missing)?;
        // SAFETY: the type is this entry point's declaration in amd_comgr.h; the pointer is kept no longer than
        // `library`, which this value owns.
        let create_info =
            *unsafe { library.get::<CreateInfo>(b"amd_comgr_create_disassembly_info\0") }.map_err(missing)?;
        // SAFETY: as above.
        let destroy_info = *unsafe { library.get::<DestroyInfo>(b"amd_comgr_destroy_disassembly_info\0") }
            .map_err(missing)?;
        // SAFETY: as above.
        let disassemble = *unsafe { library.get::<Disassemble>(b"amd_comgr_disassemble_instruction\0") }
            .map_err(missing)?;
        Ok(Self { create_info, destroy_info, disassemble, _library: library })
    }

    /// A disassembler for one target.
    ///
    /// # Errors
    ///
    /// [`Error::Comgr`] when the library does not know the target, as older ones do not know newer chips.
    pub fn disassembler(&self, target: Target) -> Result<Disassembler<'_>, Error> {
        // A target's name has no NUL byte.
        let isa = CString::new(format!("amdgcn-amd-amdhsa--{target}")).unwrap_or_default();
        let mut info = Info { handle: 0 };
        // SAFETY: `isa` is NUL-terminated and outlives the call, which copies it; the callbacks live for ever;
        // `info` is writable.
        let status = unsafe {
            (self.create_info)(isa.as_ptr(), read_memory, print_instruction, print_address, &raw mut info)
        };
        if status != 0 {
            return Err(Error::Comgr { function: "amd_comgr_create_disassembly_info", status, target });
        }
        Ok(Disassembler { comgr: self, info, target })
    }
}

/// Makes text of instructions of one target.
pub struct Disassembler<'comgr> {
    comgr: &'comgr Comgr,
    info: Info,
    target: Target,
}

/// What the callbacks of one call work on.
struct Request<'bytes> {
    bytes: &'bytes [u8],
    address: u64,
    text: String,
}

impl Disassembler<'_> {
    /// Text and length of the instruction at the start of `bytes`, which lies at `address`.
    ///
    /// # Errors
    ///
    /// [`Error::Comgr`] when the library takes the bytes for no instruction. [`decode`](crate::decode) may still know
    /// its length and class.
    pub fn text(&mut self, bytes: &[u8], address: u64) -> Result<(String, usize), Error> {
        let mut request = Request { bytes, address, text: String::new() };
        let mut size = 0;
        // SAFETY: `info` was created by this library and is destroyed only when `self` is dropped. The callbacks take
        // the user data for a `Request`, which it is, and run only during this call, while nothing else uses it.
        let status = unsafe {
            (self.comgr.disassemble)(self.info, address, (&raw mut request).cast::<c_void>(), &raw mut size)
        };
        if status != 0 {
            let function = "amd_comgr_disassemble_instruction";
            return Err(Error::Comgr { function, status, target: self.target });
        }
        Ok((request.text.trim().to_owned(), usize::try_from(size).unwrap_or(0)))
    }
}

impl Drop for Disassembler<'_> {
    fn drop(&mut self) {
        // SAFETY: created by this library, destroyed once. Its status tells nothing that could be acted on.
        let _ = unsafe { (self.comgr.destroy_info)(self.info) };
    }
}

extern "C" fn read_memory(from: u64, to: *mut c_char, size: u64, user_data: *mut c_void) -> u64 {
    // SAFETY: `Disassembler::text` passes a `Request` that nothing else uses during the call; it is only read here.
    let request = unsafe { &*user_data.cast::<Request<'_>>() };
    let from = from.checked_sub(request.address).and_then(|from| usize::try_from(from).ok());
    let Some(bytes) = from.and_then(|from| request.bytes.get(from..)) else { return 0 };
    let count = bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX));
    // SAFETY: the library offers `size` writable bytes at `to`, and `count` is not more; they are its own buffer, so
    // no part of ours.
    let target = unsafe { slice::from_raw_parts_mut(to.cast::<u8>(), count) };
    target.copy_from_slice(&bytes[..count]);
    count as u64
}

extern "C" fn print_instruction(instruction: *const c_char, user_data: *mut c_void) {
    // SAFETY: the library passes a NUL-terminated text that lives during this call.
    let text = unsafe { std::ffi::CStr::from_ptr(instruction) };
    // SAFETY: `Disassembler::text` passes a `Request` that nothing else uses during the call, and the library runs
    // one callback at a time.
    let request = unsafe { &mut *user_data.cast::<Request<'_>>() };
    request.text.push_str(&text.to_string_lossy());
}

/// Addresses of branch targets are not shown: the text has the distance.
extern "C" fn print_address(_address: u64, _user_data: *mut c_void) {}
