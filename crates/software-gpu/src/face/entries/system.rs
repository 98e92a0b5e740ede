//! Start and end, system attributes, extensions, the names of statuses.

use std::ffi::{CStr, c_char, c_void};

use hsa_sys::*;

use super::loader;
use crate::face::clock::SYSTEM_FREQUENCY;
use crate::face::error::{Failure, Outcome, status};
use crate::face::out::{put, put_bytes};
use crate::face::runtime::{self, current};
use crate::face::status_text;

/// Version of the HSA runtime specification that ROCr implements.
const VERSION: u16 = 1;
const EXTENSION_MASK_BYTES: usize = 128;

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_init() -> hsa_status_t {
    status(runtime::init())
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_shut_down() -> hsa_status_t {
    status(runtime::shut_down())
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_system_get_info(
    attribute: hsa_system_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    status(system_info(attribute).and_then(|bytes| {
        // SAFETY: null or large enough for the attribute, as HSA demands.
        unsafe { put_bytes(value, &bytes) }
    }))
}

fn system_info(attribute: hsa_system_info_t) -> Outcome<Vec<u8>> {
    let runtime = current()?;
    Ok(match attribute {
        HSA_SYSTEM_INFO_VERSION_MAJOR | HSA_SYSTEM_INFO_VERSION_MINOR => VERSION.to_ne_bytes().to_vec(),
        HSA_SYSTEM_INFO_TIMESTAMP => runtime.clock.system_ns().to_ne_bytes().to_vec(),
        HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY => SYSTEM_FREQUENCY.to_ne_bytes().to_vec(),
        HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT => u64::MAX.to_ne_bytes().to_vec(),
        HSA_SYSTEM_INFO_ENDIANNESS => HSA_ENDIANNESS_LITTLE.0.to_ne_bytes().to_vec(),
        HSA_SYSTEM_INFO_MACHINE_MODEL => HSA_MACHINE_MODEL_LARGE.0.to_ne_bytes().to_vec(),
        HSA_SYSTEM_INFO_EXTENSIONS => {
            let mut mask = vec![0; EXTENSION_MASK_BYTES];
            let loader = HSA_EXTENSION_AMD_LOADER.0 as usize;
            mask[loader / 8] |= 1 << (loader % 8);
            mask
        }
        HSA_AMD_SYSTEM_INFO_BUILD_VERSION => {
            const VERSION: &CStr = c"wavescope in-process runtime";
            (VERSION.as_ptr().expose_provenance()).to_ne_bytes().to_vec()
        }
        HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED
        | HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT
        | HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED
        | HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED
        | HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED
        | HSA_AMD_SYSTEM_INFO_XNACK_ENABLED => vec![0],
        _ => return Err(Failure::ARGUMENT),
    })
}

/// Highest minor version of an extension's major version, if it is there.
fn minor_of(extension: u16, major: u16) -> Option<u16> {
    (u32::from(extension) == HSA_EXTENSION_AMD_LOADER.0 && major == 1).then_some(loader::MINOR)
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_system_extension_supported(
    extension: u16,
    version_major: u16,
    version_minor: u16,
    result: *mut bool,
) -> hsa_status_t {
    let supported = minor_of(extension, version_major).is_some_and(|minor| version_minor <= minor);
    // SAFETY: null or writable, as HSA demands.
    status(current().and_then(|_| unsafe { put(result, supported) }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_system_major_extension_supported(
    extension: u16,
    version_major: u16,
    version_minor: *mut u16,
    result: *mut bool,
) -> hsa_status_t {
    status(current().and_then(|_| {
        let minor = minor_of(extension, version_major);
        // SAFETY: null or writable, as HSA demands.
        unsafe { put(result, minor.is_some()) }?;
        match minor {
            // SAFETY: null or writable, as HSA demands.
            Some(minor) => unsafe { put(version_minor, minor) },
            None => Ok(()),
        }
    }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_system_get_extension_table(
    extension: u16,
    version_major: u16,
    version_minor: u16,
    table: *mut c_void,
) -> hsa_status_t {
    let size = loader::table_bytes(version_minor);
    // SAFETY: the table of the asked version, as HSA demands.
    status(unsafe { put_extension_table(extension, version_major, size, table) })
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_system_get_major_extension_table(
    extension: u16,
    version_major: u16,
    table_length: usize,
    table: *mut c_void,
) -> hsa_status_t {
    // SAFETY: `table` has `table_length` bytes, as HSA demands.
    status(unsafe { put_extension_table(extension, version_major, Some(table_length), table) })
}

/// # Safety
/// `table` is null or has `bytes` bytes.
unsafe fn put_extension_table(
    extension: u16,
    major: u16,
    bytes: Option<usize>,
    table: *mut c_void,
) -> Outcome {
    current()?;
    if minor_of(extension, major).is_none() {
        return Err(Failure::ERROR);
    }
    let bytes = bytes.filter(|&bytes| bytes != 0).ok_or(Failure::ARGUMENT)?;
    if table.is_null() {
        return Err(Failure::ARGUMENT);
    }
    let full = loader::table();
    let source = std::ptr::from_ref(&full).cast::<u8>();
    // SAFETY: at most as many bytes as the caller's table and ours have.
    unsafe { std::ptr::copy_nonoverlapping(source, table.cast(), bytes.min(size_of_val(&full))) };
    Ok(())
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_extension_get_name(
    extension: u16,
    name: *mut *const c_char,
) -> hsa_status_t {
    let text = match hsa_extension_t(u32::from(extension)) {
        HSA_EXTENSION_FINALIZER => c"HSA_EXTENSION_FINALIZER",
        HSA_EXTENSION_IMAGES => c"HSA_EXTENSION_IMAGES",
        HSA_EXTENSION_PERFORMANCE_COUNTERS => c"HSA_EXTENSION_PERFORMANCE_COUNTERS",
        HSA_EXTENSION_PROFILING_EVENTS => c"HSA_EXTENSION_PROFILING_EVENTS",
        HSA_EXTENSION_AMD_PROFILER => c"HSA_EXTENSION_AMD_PROFILER",
        HSA_EXTENSION_AMD_LOADER => c"HSA_EXTENSION_AMD_LOADER",
        HSA_EXTENSION_AMD_AQLPROFILE => c"HSA_EXTENSION_AMD_AQLPROFILE",
        HSA_EXTENSION_AMD_PC_SAMPLING => c"HSA_EXTENSION_AMD_PC_SAMPLING",
        _ => return HSA_STATUS_ERROR_INVALID_ARGUMENT,
    };
    // SAFETY: null or writable, as HSA demands; the text is static.
    status(current().and_then(|_| unsafe { put(name, text.as_ptr()) }))
}

#[doc = hsa_contract!()]
pub(in crate::face) unsafe extern "C-unwind" fn hsa_status_string(
    code: hsa_status_t,
    status_string: *mut *const c_char,
) -> hsa_status_t {
    let text = status_text::of(code).ok_or(Failure::ARGUMENT);
    // SAFETY: null or writable, as HSA demands; the text is static.
    status(text.and_then(|text| unsafe { put(status_string, text.as_ptr()) }))
}
