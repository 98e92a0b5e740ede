//! The libraries, each a struct of function pointers.

use std::path::Path;

use super::error::LoadError;
use super::open::Opened;
use super::search::candidates;
use crate::{pfn, rocprofiler_register as register};

/// Declares a library: its SONAME, the module with its function types, required and optional functions.
macro_rules! library {
    (
        $(#[$doc:meta])*
        $name:ident = $soname:literal, $module:ident,
        required: [$($required:ident,)*],
        optional: [$($optional:ident,)*]
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name {
            $(#[doc = concat!("`", stringify!($required), "`.")] pub $required: $module::$required,)*
            $(#[doc = concat!("`", stringify!($optional), "`, where the release has it.")]
            pub $optional: Option<$module::$optional>,)*
        }

        impl $name {
            /// The name that the library is looked for under.
            pub const SONAME: &'static str = $soname;

            /// Every symbol that must be there.
            pub const REQUIRED: &'static [&'static str] = &[$(stringify!($required)),*];

            /// Loads the library where the system or ROCm's own folders have it.
            ///
            /// # Errors
            /// [`LoadError::Library`] when no candidate opens, [`LoadError::Symbol`] when a required symbol is missing.
            pub fn load() -> Result<Self, LoadError> {
                Self::resolve(Opened::first_of($soname, candidates($soname))?)
            }

            /// Loads the library from `path`.
            ///
            /// # Errors
            /// As [`Self::load`].
            pub fn load_from(path: &Path) -> Result<Self, LoadError> {
                Self::resolve(Opened::first_of($soname, vec![path.to_owned()])?)
            }

            /// Takes the library that the process has loaded already, and loads nothing.
            ///
            /// # Errors
            /// [`LoadError::NotLoaded`] when the process has none, [`LoadError::Symbol`] as above.
            pub fn already_loaded() -> Result<Self, LoadError> {
                Self::resolve(Opened::already_loaded($soname)?)
            }

            fn resolve(opened: Opened) -> Result<Self, LoadError> {
                let functions = Self {
                    $($required: {
                        // SAFETY: the field has the type of the C function of its own name.
                        unsafe { opened.required(stringify!($required)) }?
                    },)*
                    $($optional: {
                        // SAFETY: the field has the type of the C function of its own name.
                        unsafe { opened.optional(stringify!($optional)) }
                    },)*
                };
                opened.keep();
                Ok(functions)
            }
        }
    };
}

library! {
    /// The HSA runtime. Only what is needed before (or without) an API table in hand; with a table, use the table.
    HsaRuntime = "libhsa-runtime64.so.1", pfn,
    required: [
        hsa_init,
        hsa_shut_down,
        hsa_status_string,
        hsa_system_get_info,
        hsa_system_get_major_extension_table,
        hsa_iterate_agents,
        hsa_agent_get_info,
        hsa_queue_create,
        hsa_queue_destroy,
        hsa_queue_load_read_index_scacquire,
        hsa_queue_load_write_index_relaxed,
        hsa_queue_add_write_index_scacq_screl,
        hsa_signal_create,
        hsa_signal_destroy,
        hsa_signal_load_scacquire,
        hsa_signal_store_screlease,
        hsa_signal_wait_scacquire,
        hsa_amd_signal_create,
        hsa_amd_agent_iterate_memory_pools,
        hsa_amd_memory_pool_get_info,
        hsa_amd_memory_pool_allocate,
        hsa_amd_memory_pool_free,
        hsa_amd_agents_allow_access,
        hsa_amd_profiling_set_profiler_enabled,
        hsa_amd_profiling_get_dispatch_time,
        hsa_amd_profiling_convert_tick_to_system_domain,
    ],
    optional: []
}

library! {
    /// aqlprofile: packet programs for counters and thread trace, v2 API. It needs the HSA runtime in the process.
    AqlProfile = "libhsa-amd-aqlprofile64.so.1", pfn,
    required: [
        aqlprofile_register_agent,
        aqlprofile_validate_pmc_event,
        aqlprofile_get_pmc_info,
        aqlprofile_pmc_create_packets,
        aqlprofile_pmc_delete_packets,
        aqlprofile_pmc_iterate_data,
        aqlprofile_iterate_event_ids,
        aqlprofile_iterate_event_coord,
        aqlprofile_att_create_packets,
        aqlprofile_att_delete_packets,
        aqlprofile_att_iterate_data,
        aqlprofile_att_codeobj_marker,
    ],
    optional: [
        aqlprofile_get_version,
        aqlprofile_register_agent_info,
        aqlprofile_att_get_buffer_packets,
        aqlprofile_att_update_buffer_status,
    ]
}

library! {
    /// rocprofiler-register: where runtimes leave their API tables for profilers.
    RocprofilerRegister = "librocprofiler-register.so.0", register,
    required: [
        rocprofiler_register_library_api_table,
        rocprofiler_register_error_string,
    ],
    optional: [
        rocprofiler_register_iterate_registration_info,
    ]
}
