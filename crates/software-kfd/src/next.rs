//! The definitions that ours stand in front of, looked up on first use: other libraries' constructors call them
//! before ours has run.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// One symbol of the next library.
struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name is a C string; RTLD_NEXT is valid for a symbol of a loaded library, which this is.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found, Ordering::Release);
        found
    }
}

/// Looks all of them up now. The driver's thread must not: whoever waits for it may be in a library's constructor and hold
/// the loader's lock.
pub(crate) fn look_up() {
    TABLE.iter().for_each(|next| _ = next.address());
}

/// Declares functions that call the next definition of a C function, or answer `$missing` where there is none.
macro_rules! next {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty, $symbol:literal, $missing:expr;)*) => {
        #[expect(non_camel_case_types, reason = "the names of the functions")]
        enum Index { $($name,)* Count }

        static TABLE: [Next; Index::Count as usize] = [$(Next::new($symbol)),*];

        $(/// The next library's function of this name.
        ///
        /// # Safety
        /// As for the C function.
        pub(crate) unsafe fn $name($($argument: $type),*) -> $result {
            let address = TABLE[Index::$name as usize].address();
            if address.is_null() {
                crate::errno::set(libc::ENOSYS);
                return $missing;
            }
            // SAFETY: the symbol of this name has this C signature (variadic ones take their third argument in the
            // same register on x86-64).
            let function = unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(address)
            };
            // SAFETY: the caller's promise.
            unsafe { function($($argument),*) }
        })*
    };
}

next! {
    open(path: *const c_char, flags: c_int, mode: c_ulong) -> c_int, c"open", -1;
    open64(path: *const c_char, flags: c_int, mode: c_ulong) -> c_int, c"open64", -1;
    openat(dir: c_int, path: *const c_char, flags: c_int, mode: c_ulong) -> c_int, c"openat", -1;
    openat64(dir: c_int, path: *const c_char, flags: c_int, mode: c_ulong) -> c_int, c"openat64", -1;
    ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int, c"ioctl", -1;
    close(fd: c_int) -> c_int, c"close", -1;
    fcntl(fd: c_int, command: c_int, argument: c_ulong) -> c_int, c"fcntl", -1;
    fcntl64(fd: c_int, command: c_int, argument: c_ulong) -> c_int, c"fcntl64", -1;
    dup(fd: c_int) -> c_int, c"dup", -1;
    dup2(fd: c_int, new: c_int) -> c_int, c"dup2", -1;
    dup3(fd: c_int, new: c_int, flags: c_int) -> c_int, c"dup3", -1;
    lseek(fd: c_int, offset: i64, whence: c_int) -> i64, c"lseek", -1;
    lseek64(fd: c_int, offset: i64, whence: c_int) -> i64, c"lseek64", -1;
    access(path: *const c_char, mode: c_int) -> c_int, c"access", -1;
    fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE, c"fopen", ptr::null_mut();
    fopen64(path: *const c_char, mode: *const c_char) -> *mut libc::FILE, c"fopen64", ptr::null_mut();
    opendir(path: *const c_char) -> *mut libc::DIR, c"opendir", ptr::null_mut();
}
