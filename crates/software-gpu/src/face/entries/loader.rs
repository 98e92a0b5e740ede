//! The loader extension (`hsa_ven_amd_loader.h`): where code objects lie in memory, for debuggers and profilers.

use std::ffi::{c_int, c_void};

use hsa_sys::*;

use super::code::create_file_reader;
use crate::face::code::Loaded;
use crate::face::error::{Failure, Outcome, proceed, status};
use crate::face::out::{put, put_bytes};
use crate::face::runtime::current;

/// Newest minor version of the extension's table.
pub(super) const MINOR: u16 = 3;

/// The newest table.
pub(super) fn table() -> hsa_ven_amd_loader_1_03_pfn_t {
    hsa_ven_amd_loader_1_03_pfn_t {
        hsa_ven_amd_loader_query_host_address: Some(query_host_address),
        hsa_ven_amd_loader_query_segment_descriptors: Some(query_segment_descriptors),
        hsa_ven_amd_loader_query_executable: Some(query_executable),
        hsa_ven_amd_loader_executable_iterate_loaded_code_objects: Some(iterate_loaded_code_objects),
        hsa_ven_amd_loader_loaded_code_object_get_info: Some(loaded_code_object_get_info),
        hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size: Some(reader_from_part),
        hsa_ven_amd_loader_iterate_executables: Some(iterate_executables),
    }
}

/// Size of the table of a minor version; each extends the one before.
pub(super) fn table_bytes(minor: u16) -> Option<usize> {
    Some(match minor {
        0 => size_of::<hsa_ven_amd_loader_1_00_pfn_t>(),
        1 => size_of::<hsa_ven_amd_loader_1_01_pfn_t>(),
        2 => size_of::<hsa_ven_amd_loader_1_02_pfn_t>(),
        3 => size_of::<hsa_ven_amd_loader_1_03_pfn_t>(),
        _ => return None,
    })
}

fn around(loaded: &Loaded, address: u64) -> bool {
    address.checked_sub(loaded.base).is_some_and(|offset| offset < loaded.bytes)
}

#[doc = hsa_contract!()]
unsafe extern "C-unwind" fn query_host_address(
    device_address: *const c_void,
    host_address: *mut *const c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let address = device_address.addr() as u64;
        let known = runtime.code.all_loaded().iter().any(|loaded| around(loaded, address));
        if !known {
            return Err(Failure::ARGUMENT);
        }
        // SAFETY: null or writable, as the extension demands. Device addresses are host addresses here.
        unsafe { put(host_address, device_address) }
    }))
}

#[doc = hsa_contract!()]
unsafe extern "C-unwind" fn query_segment_descriptors(
    segment_descriptors: *mut hsa_ven_amd_loader_segment_descriptor_t,
    num_segment_descriptors: *mut usize,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        if num_segment_descriptors.is_null() {
            return Err(Failure::ARGUMENT);
        }
        let loaded = runtime.code.all_loaded();
        // SAFETY: not null, and readable as the extension demands.
        let room = unsafe { num_segment_descriptors.read() };
        if segment_descriptors.is_null() {
            if room != 0 {
                return Err(Failure::ARGUMENT);
            }
            // SAFETY: not null, and writable as the extension demands.
            return unsafe { put(num_segment_descriptors, loaded.len()) };
        }
        if room != loaded.len() {
            return Err(Failure(HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS));
        }
        loaded.iter().enumerate().try_for_each(|(index, loaded)| {
            // SAFETY: the array has `room` elements, as the extension demands.
            unsafe { put(segment_descriptors.wrapping_add(index), descriptor(loaded)) }
        })
    }))
}

fn descriptor(loaded: &Loaded) -> hsa_ven_amd_loader_segment_descriptor_t {
    let storage = &loaded.storage;
    hsa_ven_amd_loader_segment_descriptor_t {
        agent: loaded.agent,
        executable: hsa_executable_t { handle: loaded.executable },
        code_object_storage_type: HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY,
        code_object_storage_base: std::ptr::with_exposed_provenance(storage.base as usize),
        code_object_storage_size: storage.bytes as usize,
        code_object_storage_offset: 0,
        segment_base: std::ptr::with_exposed_provenance(loaded.base as usize),
        segment_size: loaded.bytes as usize,
    }
}

#[doc = hsa_contract!()]
unsafe extern "C-unwind" fn query_executable(
    device_address: *const c_void,
    executable: *mut hsa_executable_t,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let address = device_address.addr() as u64;
        let found = runtime.code.all_loaded().into_iter().find(|loaded| around(loaded, address));
        let handle = found.ok_or(Failure::ARGUMENT)?.executable;
        // SAFETY: null or writable, as the extension demands.
        unsafe { put(executable, hsa_executable_t { handle }) }
    }))
}

#[doc = hsa_contract!()]
unsafe extern "C-unwind" fn iterate_loaded_code_objects(
    executable: hsa_executable_t,
    callback: Option<
        unsafe extern "C-unwind" fn(hsa_executable_t, hsa_loaded_code_object_t, *mut c_void) -> hsa_status_t,
    >,
    data: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let callback = callback.ok_or(Failure::ARGUMENT)?;
        runtime.code.executable(executable)?.loaded().iter().try_for_each(|loaded| {
            let loaded = hsa_loaded_code_object_t { handle: loaded.handle };
            // SAFETY: the caller passed the callback for this call and this data.
            proceed(unsafe { callback(executable, loaded, data) })
        })
    }))
}

#[doc = hsa_contract!()]
unsafe extern "C-unwind" fn loaded_code_object_get_info(
    loaded_code_object: hsa_loaded_code_object_t,
    attribute: hsa_ven_amd_loader_loaded_code_object_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let bytes = info(&*runtime.code.loaded(loaded_code_object)?, attribute)?;
        // SAFETY: null or large enough for the attribute, as the extension demands.
        unsafe { put_bytes(value, &bytes) }
    }))
}

fn info(loaded: &Loaded, attribute: hsa_ven_amd_loader_loaded_code_object_info_t) -> Outcome<Vec<u8>> {
    let storage = &loaded.storage;
    Ok(match attribute {
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_EXECUTABLE => loaded.executable.to_ne_bytes().to_vec(),
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_KIND => {
            HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_KIND_AGENT.0.to_ne_bytes().to_vec()
        }
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT => loaded.agent.handle.to_ne_bytes().to_vec(),
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA => loaded.delta.to_ne_bytes().to_vec(),
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE => loaded.base.to_ne_bytes().to_vec(),
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE => loaded.bytes.to_ne_bytes().to_vec(),
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH => {
            (storage.uri.len() as u32).to_ne_bytes().to_vec()
        }
        // Not terminated: the length is asked for apart.
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI => storage.uri.clone().into_bytes(),
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE => {
            HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY.0.to_ne_bytes().to_vec()
        }
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE => {
            storage.base.to_ne_bytes().to_vec()
        }
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE => {
            storage.bytes.to_ne_bytes().to_vec()
        }
        // Also the descriptor of the file: the runtime says memory of everything, and has none.
        _ => return Err(Failure::ARGUMENT),
    })
}

#[doc = hsa_contract!()]
unsafe extern "C-unwind" fn reader_from_part(
    file: c_int,
    offset: usize,
    size: usize,
    code_object_reader: *mut hsa_code_object_reader_t,
) -> hsa_status_t {
    // SAFETY: null or writable, as the extension demands.
    status(unsafe { create_file_reader(file, Some((offset as u64, size as u64)), code_object_reader) })
}

#[doc = hsa_contract!()]
unsafe extern "C-unwind" fn iterate_executables(
    callback: Option<unsafe extern "C-unwind" fn(hsa_executable_t, *mut c_void) -> hsa_status_t>,
    data: *mut c_void,
) -> hsa_status_t {
    status(current().and_then(|runtime| {
        let callback = callback.ok_or(Failure::ARGUMENT)?;
        runtime.code.all_executables().iter().try_for_each(|executable| {
            // SAFETY: the caller passed the callback for this call and this data.
            proceed(unsafe { callback(hsa_executable_t { handle: executable.handle }, data) })
        })
    }))
}
