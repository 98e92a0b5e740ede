//! Structures and arrays in the caller's memory.

use std::ptr;

use crate::abi::kfd::Plain;
use crate::abi::request;
use crate::errno::{Answer, Errno};
use crate::user;

/// The argument of one ioctl.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    address: u64,
    /// Size that the caller was compiled with.
    bytes: usize,
}

impl Argument {
    /// The argument of `request` at `address`.
    pub(super) fn new(request: u32, address: u64) -> Self {
        Self { address, bytes: request::size(request) }
    }

    /// Address behind the structure that the request names: where an array of variable length begins.
    pub(super) fn tail<T: Plain>(self) -> u64 {
        self.address + size_of::<T>() as u64
    }

    /// Reads the structure, lets `work` change it, writes it back. As in the kernel (`kfd_ioctl`), fields that an
    /// older caller does not have are zero, and the structure is written back also after an error.
    pub(super) fn update<T: Plain + Default>(self, work: impl FnOnce(&mut T) -> Answer) -> Answer {
        let bytes = self.bytes.min(size_of::<T>());
        user::writable(self.address, bytes)?;
        let mut value = T::default();
        // SAFETY: there is memory, as was just seen, and by the caller of ioctl its structure, of the size in the
        // request; it waits inside the call, so nothing else uses it. `value` has at least `bytes` bytes, and as `Plain` it may
        // take any.
        unsafe {
            ptr::copy_nonoverlapping(self.address as *const u8, ptr::from_mut(&mut value).cast(), bytes);
        }
        let answer = work(&mut value);
        // SAFETY: as above, in the other direction.
        unsafe {
            ptr::copy_nonoverlapping(ptr::from_ref(&value).cast(), self.address as *mut u8, bytes);
        }
        answer
    }
}

/// Most elements of an array that a caller may pass: more is a mistake, not a request.
const ELEMENTS: usize = 1 << 16;

/// Copies an array of the caller in.
pub(super) fn read_array<T: Plain + Default>(address: u64, count: u32) -> Result<Vec<T>, Errno> {
    let count = count as usize;
    if count == 0 {
        return Ok(Vec::new());
    }
    if count > ELEMENTS {
        return Err(Errno(libc::EFAULT));
    }
    user::readable(address, count * size_of::<T>())?;
    let mut values = vec![T::default(); count];
    // SAFETY: there is memory, and the structure that the caller passed names an array of `count` elements here;
    // `values` has room for as many, and as `Plain` they may take any bytes.
    unsafe {
        ptr::copy_nonoverlapping(
            address as *const u8,
            values.as_mut_ptr().cast::<u8>(),
            count * size_of::<T>(),
        );
    }
    Ok(values)
}

/// Copies values out into an array of the caller.
pub(super) fn write_array<T: Plain>(address: u64, values: &[T]) -> Answer {
    if values.is_empty() {
        return Ok(());
    }
    user::writable(address, size_of_val(values))?;
    // SAFETY: there is memory, and the structure that the caller passed names an array here with room for the values.
    unsafe {
        ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), address as *mut u8, size_of_val(values));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::kfd::GetVersion;

    fn request_of(bytes: usize) -> u32 {
        (bytes as u32) << 16
    }

    #[test]
    fn fields_that_an_older_caller_lacks_read_as_zero_and_stay_unwritten() {
        let mut caller = [7_u32, 8];
        let argument = Argument::new(request_of(4), caller.as_mut_ptr() as u64);
        let answer = argument.update(|version: &mut GetVersion| {
            assert_eq!((version.major, version.minor), (7, 0));
            (version.major, version.minor) = (1, 17);
            Ok(())
        });
        assert_eq!((answer, caller), (Ok(()), [1, 8]));
    }

    #[test]
    fn what_is_not_mapped_is_a_bad_address() {
        const BAD: Answer = Err(Errno(libc::EFAULT));
        let nothing = user::tests::pages() + 8192;
        for address in [0, 16, nothing - 4, nothing] {
            let argument = Argument::new(request_of(8), address);
            assert_eq!(argument.update(|_: &mut GetVersion| Ok(())), BAD, "{address:#x}");
            assert_eq!(read_array::<u32>(address, 2).map(drop), BAD, "{address:#x}");
            assert_eq!(write_array(address, &[1_u32, 2]), BAD, "{address:#x}");
        }
        assert_eq!(read_array::<u32>(0, 0), Ok(Vec::new()));
    }
}
