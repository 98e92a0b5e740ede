//! rocprofiler-register: how a runtime hands its API table to a profiler.
//!
//! Written by hand, after the public header `rocprofiler-register/rocprofiler-register.h` (ROCm/rocm-systems,
//! projects/rocprofiler-register/source/include), since the ABI facts do not cover it. It is small: one handle, one
//! enumeration, three functions.

#![expect(non_camel_case_types, reason = "names as in the C header")]

use core::ffi::{c_char, c_int, c_void};

c_enum! {
    /// `rocprofiler_register_error_code_t`.
    rocprofiler_register_error_code_t: u32 {
        ROCP_REG_SUCCESS = 0,
        ROCP_REG_NO_TOOLS = 1,
        ROCP_REG_DEADLOCK = 2,
        ROCP_REG_BAD_API_TABLE_LENGTH = 3,
        ROCP_REG_UNSUPPORTED_API = 4,
        ROCP_REG_INVALID_API_ADDRESS = 5,
        ROCP_REG_ROCPROFILER_ERROR = 6,
        ROCP_REG_EXCESS_API_INSTANCES = 7,
        ROCP_REG_INVALID_ARGUMENT = 8,
        ROCP_REG_ATTACHMENT_NOT_AVAILABLE = 9,
    }
}

/// Identifies one registration (the misspelling is the header's).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct rocprofiler_register_library_indentifier_t {
    /// Opaque.
    pub handle: u64,
}

/// What [`rocprofiler_register_iterate_registration_info`] tells of one registration.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct rocprofiler_register_registration_info_t {
    /// Bytes of this struct in the library's release.
    pub size: usize,
    /// Name of the registered API, e.g. `hsa`.
    pub common_name: *const c_char,
    /// 10000 × major + 100 × minor + patch.
    pub lib_version: u32,
    /// Tables registered.
    pub api_table_length: u64,
}

zeroed! {
    rocprofiler_register_library_indentifier_t,
    rocprofiler_register_registration_info_t,
}

/// The registering library's own symbol `rocprofiler_register_import_<name>`, which returns its version. In secure
/// mode the address must lie in the library itself.
pub type rocprofiler_register_import_func_t = Option<unsafe extern "C-unwind" fn() -> u32>;

/// Called for each registration; anything but 0 ends the iteration.
pub type rocprofiler_register_registration_info_cb_t = Option<
    unsafe extern "C-unwind" fn(
        info: *mut rocprofiler_register_registration_info_t,
        data: *mut c_void,
    ) -> c_int,
>;

/// Type of `rocprofiler_register_library_api_table`: registers `api_table_length` tables of the API `lib_name`.
pub type rocprofiler_register_library_api_table =
    unsafe extern "C-unwind" fn(
        lib_name: *const c_char,
        import_func: rocprofiler_register_import_func_t,
        lib_version: u32,
        api_tables: *mut *mut c_void,
        api_table_length: u64,
        register_id: *mut rocprofiler_register_library_indentifier_t,
    ) -> rocprofiler_register_error_code_t;

/// Type of `rocprofiler_register_error_string`: a text for a code, or null.
pub type rocprofiler_register_error_string =
    unsafe extern "C-unwind" fn(code: rocprofiler_register_error_code_t) -> *const c_char;

/// Type of `rocprofiler_register_iterate_registration_info`.
pub type rocprofiler_register_iterate_registration_info =
    unsafe extern "C-unwind" fn(
        callback: rocprofiler_register_registration_info_cb_t,
        data: *mut c_void,
    ) -> rocprofiler_register_error_code_t;

const _: () = assert!(size_of::<rocprofiler_register_registration_info_t>() == 32);
