//! The C library's calls on files, as the whole process sees them.
//!
//! Each looks at one table entry or at the first bytes of a path; what is not about a device goes on to the next
//! library with the arguments as they came. The variadic ones (`open`, `ioctl`, `fcntl`) take their one optional
//! argument in the same register as a fixed one on x86-64.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};

use crate::abi::kfd::{EventData, EventId, WaitEvents, number};
use crate::abi::request;
use crate::errno::{self, Answer, Errno};
use crate::fds::{self, File};
use crate::mailbox::{self, Call};
use crate::paths::{self, Device, Redirected};
use crate::{events, next, user};

/// `DMA_BUF_IOCTL_SYNC` of `linux/dma-buf.h`: type 'b', number 0. Our buffers are coherent, so there is nothing to do.
const DMABUF_SYNC: (u8, u8) = (b'b', 0);

/// Declares `open` and its kin.
macro_rules! open {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As for the C function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: c_ulong) -> c_int {
            // SAFETY: the caller's promise: null or a C string.
            match unsafe { target(path) } {
                Target::Device(device) => open_device(device, flags),
                // SAFETY: the caller's promise; the redirected path is a C string.
                Target::Moved(path) => unsafe { next::$name(path.as_ptr(), flags, mode) },
                // SAFETY: the caller's promise.
                Target::Other => unsafe { next::$name(path, flags, mode) },
            }
        }
    )*};
}

/// Declares `openat` and its kin. Device and topology paths are absolute, so the folder does not matter for them.
macro_rules! openat {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As for the C function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(dir: c_int, path: *const c_char, flags: c_int, mode: c_ulong) -> c_int {
            // SAFETY: the caller's promise: null or a C string.
            match unsafe { target(path) } {
                Target::Device(device) => open_device(device, flags),
                // SAFETY: the caller's promise; the redirected path is a C string.
                Target::Moved(path) => unsafe { next::$name(dir, path.as_ptr(), flags, mode) },
                // SAFETY: the caller's promise.
                Target::Other => unsafe { next::$name(dir, path, flags, mode) },
            }
        }
    )*};
}

/// Declares calls that take a path and one more argument and do not open devices as descriptors.
macro_rules! path_call {
    ($($name:ident($($argument:ident: $type:ty)?) -> $result:ty;)*) => {$(
        /// # Safety
        /// As for the C function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(path: *const c_char $(, $argument: $type)?) -> $result {
            // SAFETY: the caller's promise: null or a C string.
            match unsafe { target(path) } {
                // SAFETY: the caller's promise; the redirected path is a C string.
                Target::Moved(path) => unsafe { next::$name(path.as_ptr() $(, $argument)?) },
                // SAFETY: the caller's promise.
                _ => unsafe { next::$name(path $(, $argument)?) },
            }
        }
    )*};
}

/// Declares `fcntl` and its kin.
macro_rules! fcntl {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As for the C function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
            // SAFETY: the caller's promise.
            let result = unsafe { next::$name(fd, command, argument) };
            if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
                duplicated(fd, result);
            }
            result
        }
    )*};
}

/// Declares `lseek` and its kin.
macro_rules! lseek {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As for the C function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(fd: c_int, offset: i64, whence: c_int) -> i64 {
            if let (libc::SEEK_END, Some(File::DmaBuf(slot))) = (whence, fds::get(fd)) {
                return (fds::dmabuf_bytes(slot) as i64).saturating_add(offset);
            }
            // SAFETY: the caller's promise.
            unsafe { next::$name(fd, offset, whence) }
        }
    )*};
}

open! { open open64 }
openat! { openat openat64 }
fcntl! { fcntl fcntl64 }
lseek! { lseek lseek64 }
path_call! {
    fopen(mode: *const c_char) -> *mut libc::FILE;
    fopen64(mode: *const c_char) -> *mut libc::FILE;
    opendir() -> *mut libc::DIR;
}

/// # Safety
/// As for the C function of this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the caller's promise: null or a C string.
    match unsafe { target(path) } {
        Target::Device(device) => errno::into_c(mailbox::ask(Call::Look { device }).map(drop)),
        // SAFETY: the caller's promise; the redirected path is a C string.
        Target::Moved(path) => unsafe { next::access(path.as_ptr(), mode) },
        // SAFETY: the caller's promise.
        Target::Other => unsafe { next::access(path, mode) },
    }
}

/// # Safety
/// As for the C function of this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if fds::get(fd).is_some()
        && let Some(file) = fds::get_certain(fd)
    {
        // SAFETY: the caller's promise: `argument` fits `request`.
        return unsafe { device_call(file, request as u32, argument) };
    }
    // SAFETY: the caller's promise.
    unsafe { next::ioctl(fd, request, argument) }
}

/// # Safety
/// As for the C function of this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn close(fd: c_int) -> c_int {
    match fds::get(fd) {
        None => {}
        Some(File::Backing) if fds::get_certain(fd).is_some() => return bad_descriptor(),
        // Before the number is free for others.
        Some(_) => drop(fds::remove(fd)),
    }
    // SAFETY: the caller's promise.
    unsafe { next::close(fd) }
}

/// # Safety
/// As for the C function of this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let new = unsafe { next::dup(fd) };
    duplicated(fd, new);
    new
}

/// # Safety
/// As for the C function of this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dup2(fd: c_int, new: c_int) -> c_int {
    if is_backing(new) {
        return bad_descriptor();
    }
    // SAFETY: the caller's promise.
    let result = unsafe { next::dup2(fd, new) };
    if fd != new {
        duplicated(fd, result);
    }
    result
}

/// # Safety
/// As for the C function of this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dup3(fd: c_int, new: c_int, flags: c_int) -> c_int {
    if is_backing(new) {
        return bad_descriptor();
    }
    // SAFETY: the caller's promise.
    let result = unsafe { next::dup3(fd, new, flags) };
    duplicated(fd, result);
    result
}

/// What a path leads to.
#[expect(
    clippy::large_enum_variant,
    reason = "the rebuilt path lies on the stack: nothing here may allocate"
)]
enum Target {
    Device(Device),
    Moved(Redirected),
    Other,
}

/// # Safety
/// `path` is null or a C string.
#[inline]
unsafe fn target(path: *const c_char) -> Target {
    if path.is_null() {
        return Target::Other;
    }
    // SAFETY: not null, so a C string by the caller's promise.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    match paths::device(path) {
        Some(device) => Target::Device(device),
        None => paths::redirect(path).map_or(Target::Other, Target::Moved),
    }
}

fn open_device(device: Device, flags: c_int) -> c_int {
    match mailbox::ask(Call::Open { device, flags }) {
        Ok(fd) => fd,
        Err(error) => errno::into_c(Err(error)),
    }
}

fn is_backing(fd: c_int) -> bool {
    fds::get(fd) == Some(File::Backing) && fds::get_certain(fd).is_some()
}

fn bad_descriptor() -> c_int {
    errno::into_c(Err(Errno(libc::EBADF)))
}

/// A copy of a descriptor of ours is ours too. The driver's own file becomes an ordinary one.
fn duplicated(fd: c_int, new: c_int) {
    if new < 0 {
        return;
    }
    match fds::get(fd) {
        None | Some(File::Backing) => drop(fds::remove(new)),
        Some(file) => drop(fds::insert(new, file)),
    }
}

/// # Safety
/// `argument` points at what `request` says.
unsafe fn device_call(file: File, request: u32, argument: *mut c_void) -> c_int {
    if mailbox::in_forked_child() {
        return errno::into_c(Err(Errno(libc::ENODEV)));
    }
    // SAFETY: the caller's promise.
    if let Some(answer) = unsafe { event_call(file, request, argument) } {
        return errno::into_c(answer);
    }
    if let File::DmaBuf(_) = file {
        let known = (request::kind(request), request::number(request)) == DMABUF_SYNC;
        return errno::into_c(if known { Ok(()) } else { Err(Errno(libc::ENOTTY)) });
    }
    match mailbox::ask(Call::Ioctl { file, request, argument: argument as u64 }) {
        Ok(result) => result,
        Err(error) => errno::into_c(Err(error)),
    }
}

/// Setting and waiting for events happens on the caller's thread. `None`: another call.
///
/// # Safety
/// What `argument` points at, as far as it is mapped, is the caller's structure for `request` and stays so for the
/// duration of the call.
unsafe fn event_call(file: File, request: u32, argument: *mut c_void) -> Option<Answer> {
    if file != File::Kfd || request::kind(request) != request::KFD {
        return None;
    }
    let number = request::number(request);
    if !matches!(number, number::WAIT_EVENTS | number::SET_EVENT | number::RESET_EVENT) {
        return None;
    }
    if number == number::WAIT_EVENTS {
        // SAFETY: the caller's promise for this request.
        return Some(unsafe { wait_events(argument.cast()) });
    }
    if let Err(error) = user::readable(argument as u64, size_of::<EventId>()) {
        return Some(Err(error));
    }
    // SAFETY: readable; these requests point at an `EventId`, which the caller keeps valid for the call.
    let EventId { event_id, .. } = unsafe { argument.cast::<EventId>().read_unaligned() };
    Some(if number == number::SET_EVENT { events::set(event_id) } else { events::reset(event_id) })
}

/// # Safety
/// `args` points at the structure of a wait, which points at `events` structures. As far as they are mapped, they stay
/// so and nobody else uses them for the duration of the call.
unsafe fn wait_events(args: *mut WaitEvents) -> Answer {
    user::writable(args as u64, size_of::<WaitEvents>())?;
    // SAFETY: readable and writable, as was just seen, and the caller's to keep so.
    let mut wait = unsafe { args.read_unaligned() };
    let pointer = wait.pointer as *mut EventData;
    if pointer.is_null() || !pointer.is_aligned() || wait.events as usize > events::LIMIT {
        return Err(Errno(libc::EFAULT));
    }
    user::writable(wait.pointer, wait.events as usize * size_of::<EventData>())?;
    // SAFETY: not null, aligned, memory for that many elements, and exclusively ours by the caller's promise.
    let list = unsafe { std::slice::from_raw_parts_mut(pointer, wait.events as usize) };
    let answer = events::wait(&mut wait, list);
    // SAFETY: as above.
    unsafe { args.write_unaligned(wait) };
    answer
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    /// A request of the kernel driver whose argument has `bytes` bytes.
    fn request_of(number: u8, bytes: usize) -> u32 {
        (bytes as u32) << 16 | u32::from(request::KFD) << 8 | u32::from(number)
    }

    fn call(number: u8, bytes: usize, address: u64) -> Option<Answer> {
        let argument = address as *mut c_void;
        // SAFETY: an argument that is not there is what these tests are about.
        unsafe { event_call(File::Kfd, request_of(number, bytes), argument) }
    }

    const BAD: Option<Answer> = Some(Err(Errno(libc::EFAULT)));

    #[test]
    fn a_bad_argument_of_an_event_call_is_a_bad_address() {
        let nothing = user::tests::pages() + 8192;
        for address in [0, 16, nothing, nothing - 4, u64::MAX - 2] {
            for number in [number::SET_EVENT, number::RESET_EVENT] {
                assert_eq!(call(number, size_of::<EventId>(), address), BAD, "{number:#x} at {address:#x}");
            }
            assert_eq!(call(number::WAIT_EVENTS, size_of::<WaitEvents>(), address), BAD, "{address:#x}");
        }
    }

    #[test]
    fn a_bad_list_of_events_is_a_bad_address() {
        let nothing = user::tests::pages() + 8192;
        // Not there, half there, and read-only.
        for pointer in [16, nothing, nothing - 64, nothing - 4096] {
            let mut wait = WaitEvents { pointer, events: 3, ..WaitEvents::default() };
            let address = ptr::from_mut(&mut wait) as u64;
            assert_eq!(call(number::WAIT_EVENTS, size_of::<WaitEvents>(), address), BAD, "{pointer:#x}");
        }
    }
}
