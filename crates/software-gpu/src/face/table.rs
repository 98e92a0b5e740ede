//! The API table: every slot, provided or refused, and the one copy of it that tools may change.

use std::mem::offset_of;
use std::sync::OnceLock;

use hsa_sys::*;

use super::entries::{agents, code, intercept, memory, profiling, queues, signal_groups, signals, system};
use super::refused::{self, Refuse, no_tool_event};

/// Versions as ROCr states them: the minor one is the table's size.
const fn version(major_id: u32, bytes: usize, step_id: u32) -> ApiTableVersion {
    ApiTableVersion { major_id, minor_id: bytes as u32, step_id, reserved: 0 }
}

/// Number of a slot in its table.
const fn slot(offset: usize) -> usize {
    (offset - size_of::<ApiTableVersion>()) / size_of::<usize>()
}

/// Declares a table: what is provided and what is refused. That no slot is missing, the compiler sees.
macro_rules! entries {
    (
        $name:ident: $table:ident, $number:literal;
        provided { $($provided:ident: $function:path,)* }
        refused { $($refused:ident,)* }
    ) => {
        mod $name {
            use super::*;

            /// Every slot in its original state.
            pub(super) fn original(version: ApiTableVersion) -> $table {
                $table {
                    version,
                    $($provided: Some($function),)*
                    $($refused: Some(Refuse::<{
                        refused::code($number, slot(offset_of!($table, $refused)))
                    }>::FUNCTION),)*
                }
            }

            /// Statuses and slots of the refused entries.
            pub(super) const REFUSED: &[(u32, &str)] = &[
                $((refused::code($number, slot(offset_of!($table, $refused))), stringify!($refused)),)*
            ];
        }
    };
}

entries! {
    core: CoreApiTable, 1;
    provided {
        hsa_init_fn: system::hsa_init,
        hsa_shut_down_fn: system::hsa_shut_down,
        hsa_system_get_info_fn: system::hsa_system_get_info,
        hsa_system_extension_supported_fn: system::hsa_system_extension_supported,
        hsa_system_get_extension_table_fn: system::hsa_system_get_extension_table,
        hsa_iterate_agents_fn: agents::hsa_iterate_agents,
        hsa_agent_get_info_fn: agents::hsa_agent_get_info,
        hsa_queue_create_fn: queues::hsa_queue_create,
        hsa_queue_destroy_fn: queues::hsa_queue_destroy,
        hsa_queue_inactivate_fn: queues::hsa_queue_inactivate,
        hsa_queue_load_read_index_scacquire_fn: queues::hsa_queue_load_read_index_scacquire,
        hsa_queue_load_read_index_relaxed_fn: queues::hsa_queue_load_read_index_relaxed,
        hsa_queue_load_write_index_scacquire_fn: queues::hsa_queue_load_write_index_scacquire,
        hsa_queue_load_write_index_relaxed_fn: queues::hsa_queue_load_write_index_relaxed,
        hsa_queue_store_write_index_relaxed_fn: queues::hsa_queue_store_write_index_relaxed,
        hsa_queue_store_write_index_screlease_fn: queues::hsa_queue_store_write_index_screlease,
        hsa_queue_cas_write_index_scacq_screl_fn: queues::hsa_queue_cas_write_index_scacq_screl,
        hsa_queue_cas_write_index_scacquire_fn: queues::hsa_queue_cas_write_index_scacquire,
        hsa_queue_cas_write_index_relaxed_fn: queues::hsa_queue_cas_write_index_relaxed,
        hsa_queue_cas_write_index_screlease_fn: queues::hsa_queue_cas_write_index_screlease,
        hsa_queue_add_write_index_scacq_screl_fn: queues::hsa_queue_add_write_index_scacq_screl,
        hsa_queue_add_write_index_scacquire_fn: queues::hsa_queue_add_write_index_scacquire,
        hsa_queue_add_write_index_relaxed_fn: queues::hsa_queue_add_write_index_relaxed,
        hsa_queue_add_write_index_screlease_fn: queues::hsa_queue_add_write_index_screlease,
        hsa_queue_store_read_index_relaxed_fn: queues::hsa_queue_store_read_index_relaxed,
        hsa_queue_store_read_index_screlease_fn: queues::hsa_queue_store_read_index_screlease,
        hsa_agent_iterate_regions_fn: memory::hsa_agent_iterate_regions,
        hsa_region_get_info_fn: memory::hsa_region_get_info,
        hsa_agent_extension_supported_fn: agents::hsa_agent_extension_supported,
        hsa_memory_register_fn: memory::hsa_memory_register,
        hsa_memory_deregister_fn: memory::hsa_memory_deregister,
        hsa_memory_allocate_fn: memory::hsa_memory_allocate,
        hsa_memory_free_fn: memory::hsa_memory_free,
        hsa_memory_copy_fn: memory::hsa_memory_copy,
        hsa_memory_assign_agent_fn: memory::hsa_memory_assign_agent,
        hsa_signal_create_fn: signals::hsa_signal_create,
        hsa_signal_destroy_fn: signals::hsa_signal_destroy,
        hsa_signal_load_relaxed_fn: signals::hsa_signal_load_relaxed,
        hsa_signal_load_scacquire_fn: signals::hsa_signal_load_scacquire,
        hsa_signal_store_relaxed_fn: signals::hsa_signal_store_relaxed,
        hsa_signal_store_screlease_fn: signals::hsa_signal_store_screlease,
        hsa_signal_wait_relaxed_fn: signals::hsa_signal_wait_relaxed,
        hsa_signal_wait_scacquire_fn: signals::hsa_signal_wait_scacquire,
        hsa_signal_and_relaxed_fn: signals::hsa_signal_and_relaxed,
        hsa_signal_and_scacquire_fn: signals::hsa_signal_and_scacquire,
        hsa_signal_and_screlease_fn: signals::hsa_signal_and_screlease,
        hsa_signal_and_scacq_screl_fn: signals::hsa_signal_and_scacq_screl,
        hsa_signal_or_relaxed_fn: signals::hsa_signal_or_relaxed,
        hsa_signal_or_scacquire_fn: signals::hsa_signal_or_scacquire,
        hsa_signal_or_screlease_fn: signals::hsa_signal_or_screlease,
        hsa_signal_or_scacq_screl_fn: signals::hsa_signal_or_scacq_screl,
        hsa_signal_xor_relaxed_fn: signals::hsa_signal_xor_relaxed,
        hsa_signal_xor_scacquire_fn: signals::hsa_signal_xor_scacquire,
        hsa_signal_xor_screlease_fn: signals::hsa_signal_xor_screlease,
        hsa_signal_xor_scacq_screl_fn: signals::hsa_signal_xor_scacq_screl,
        hsa_signal_exchange_relaxed_fn: signals::hsa_signal_exchange_relaxed,
        hsa_signal_exchange_scacquire_fn: signals::hsa_signal_exchange_scacquire,
        hsa_signal_exchange_screlease_fn: signals::hsa_signal_exchange_screlease,
        hsa_signal_exchange_scacq_screl_fn: signals::hsa_signal_exchange_scacq_screl,
        hsa_signal_add_relaxed_fn: signals::hsa_signal_add_relaxed,
        hsa_signal_add_scacquire_fn: signals::hsa_signal_add_scacquire,
        hsa_signal_add_screlease_fn: signals::hsa_signal_add_screlease,
        hsa_signal_add_scacq_screl_fn: signals::hsa_signal_add_scacq_screl,
        hsa_signal_subtract_relaxed_fn: signals::hsa_signal_subtract_relaxed,
        hsa_signal_subtract_scacquire_fn: signals::hsa_signal_subtract_scacquire,
        hsa_signal_subtract_screlease_fn: signals::hsa_signal_subtract_screlease,
        hsa_signal_subtract_scacq_screl_fn: signals::hsa_signal_subtract_scacq_screl,
        hsa_signal_cas_relaxed_fn: signals::hsa_signal_cas_relaxed,
        hsa_signal_cas_scacquire_fn: signals::hsa_signal_cas_scacquire,
        hsa_signal_cas_screlease_fn: signals::hsa_signal_cas_screlease,
        hsa_signal_cas_scacq_screl_fn: signals::hsa_signal_cas_scacq_screl,
        hsa_isa_from_name_fn: agents::hsa_isa_from_name,
        hsa_isa_get_info_fn: agents::hsa_isa_get_info,
        hsa_isa_compatible_fn: agents::hsa_isa_compatible,
        hsa_executable_create_fn: code::hsa_executable_create,
        hsa_executable_destroy_fn: code::hsa_executable_destroy,
        hsa_executable_freeze_fn: code::hsa_executable_freeze,
        hsa_executable_get_info_fn: code::hsa_executable_get_info,
        hsa_executable_validate_fn: code::hsa_executable_validate,
        hsa_executable_get_symbol_fn: code::hsa_executable_get_symbol,
        hsa_executable_symbol_get_info_fn: code::hsa_executable_symbol_get_info,
        hsa_executable_iterate_symbols_fn: code::hsa_executable_iterate_symbols,
        hsa_status_string_fn: system::hsa_status_string,
        hsa_extension_get_name_fn: system::hsa_extension_get_name,
        hsa_system_major_extension_supported_fn: system::hsa_system_major_extension_supported,
        hsa_system_get_major_extension_table_fn: system::hsa_system_get_major_extension_table,
        hsa_agent_major_extension_supported_fn: agents::hsa_agent_major_extension_supported,
        hsa_agent_iterate_caches_fn: agents::hsa_agent_iterate_caches,
        hsa_signal_silent_store_relaxed_fn: signals::hsa_signal_silent_store_relaxed,
        hsa_signal_silent_store_screlease_fn: signals::hsa_signal_silent_store_screlease,
        hsa_signal_group_create_fn: signal_groups::hsa_signal_group_create,
        hsa_signal_group_destroy_fn: signal_groups::hsa_signal_group_destroy,
        hsa_signal_group_wait_any_scacquire_fn: signal_groups::hsa_signal_group_wait_any_scacquire,
        hsa_signal_group_wait_any_relaxed_fn: signal_groups::hsa_signal_group_wait_any_relaxed,
        hsa_agent_iterate_isas_fn: agents::hsa_agent_iterate_isas,
        hsa_isa_get_info_alt_fn: agents::hsa_isa_get_info_alt,
        hsa_code_object_reader_create_from_file_fn: code::hsa_code_object_reader_create_from_file,
        hsa_code_object_reader_create_from_memory_fn: code::hsa_code_object_reader_create_from_memory,
        hsa_code_object_reader_destroy_fn: code::hsa_code_object_reader_destroy,
        hsa_executable_create_alt_fn: code::hsa_executable_create_alt,
        hsa_executable_load_agent_code_object_fn: code::hsa_executable_load_agent_code_object,
        hsa_executable_validate_alt_fn: code::hsa_executable_validate_alt,
        hsa_executable_get_symbol_by_name_fn: code::hsa_executable_get_symbol_by_name,
        hsa_executable_iterate_agent_symbols_fn: code::hsa_executable_iterate_agent_symbols,
        hsa_executable_iterate_program_symbols_fn: code::hsa_executable_iterate_program_symbols,
    }
    refused {
        hsa_soft_queue_create_fn,
        hsa_agent_get_exception_policies_fn,
        hsa_code_object_serialize_fn,
        hsa_code_object_deserialize_fn,
        hsa_code_object_destroy_fn,
        hsa_code_object_get_info_fn,
        hsa_code_object_get_symbol_fn,
        hsa_code_symbol_get_info_fn,
        hsa_code_object_iterate_symbols_fn,
        hsa_executable_load_code_object_fn,
        hsa_executable_global_variable_define_fn,
        hsa_executable_agent_global_variable_define_fn,
        hsa_executable_readonly_variable_define_fn,
        hsa_cache_get_info_fn,
        hsa_isa_get_exception_policies_fn,
        hsa_isa_get_round_method_fn,
        hsa_wavefront_get_info_fn,
        hsa_isa_iterate_wavefronts_fn,
        hsa_code_object_get_symbol_from_name_fn,
        hsa_executable_load_program_code_object_fn,
    }
}

entries! {
    amd_ext: AmdExtTable, 2;
    provided {
        hsa_amd_profiling_set_profiler_enabled_fn: profiling::hsa_amd_profiling_set_profiler_enabled,
        hsa_amd_profiling_async_copy_enable_fn: profiling::hsa_amd_profiling_async_copy_enable,
        hsa_amd_profiling_get_dispatch_time_fn: profiling::hsa_amd_profiling_get_dispatch_time,
        hsa_amd_profiling_get_async_copy_time_fn: profiling::hsa_amd_profiling_get_async_copy_time,
        hsa_amd_profiling_convert_tick_to_system_domain_fn: profiling::hsa_amd_profiling_convert_tick_to_system_domain,
        hsa_amd_signal_async_handler_fn: signals::hsa_amd_signal_async_handler,
        hsa_amd_async_function_fn: signals::hsa_amd_async_function,
        hsa_amd_signal_wait_any_fn: signals::hsa_amd_signal_wait_any,
        hsa_amd_queue_cu_set_mask_fn: queues::hsa_amd_queue_cu_set_mask,
        hsa_amd_memory_pool_get_info_fn: memory::hsa_amd_memory_pool_get_info,
        hsa_amd_agent_iterate_memory_pools_fn: memory::hsa_amd_agent_iterate_memory_pools,
        hsa_amd_memory_pool_allocate_fn: memory::hsa_amd_memory_pool_allocate,
        hsa_amd_memory_pool_free_fn: memory::hsa_amd_memory_pool_free,
        hsa_amd_memory_async_copy_fn: memory::hsa_amd_memory_async_copy,
        hsa_amd_memory_async_copy_on_engine_fn: memory::hsa_amd_memory_async_copy_on_engine,
        hsa_amd_agent_memory_pool_get_info_fn: memory::hsa_amd_agent_memory_pool_get_info,
        hsa_amd_agents_allow_access_fn: memory::hsa_amd_agents_allow_access,
        hsa_amd_memory_pool_can_migrate_fn: memory::hsa_amd_memory_pool_can_migrate,
        hsa_amd_memory_lock_fn: memory::hsa_amd_memory_lock,
        hsa_amd_memory_unlock_fn: memory::hsa_amd_memory_unlock,
        hsa_amd_memory_fill_fn: memory::hsa_amd_memory_fill,
        hsa_amd_pointer_info_fn: memory::hsa_amd_pointer_info,
        hsa_amd_pointer_info_set_userdata_fn: memory::hsa_amd_pointer_info_set_userdata,
        hsa_amd_signal_create_fn: signals::hsa_amd_signal_create,
        hsa_amd_register_system_event_handler_fn: queues::hsa_amd_register_system_event_handler,
        hsa_amd_queue_intercept_create_fn: intercept::hsa_amd_queue_intercept_create,
        hsa_amd_queue_intercept_register_fn: intercept::hsa_amd_queue_intercept_register,
        hsa_amd_queue_set_priority_fn: queues::hsa_amd_queue_set_priority,
        hsa_amd_runtime_queue_create_register_fn: intercept::hsa_amd_runtime_queue_create_register,
        hsa_amd_memory_lock_to_pool_fn: memory::hsa_amd_memory_lock_to_pool,
        hsa_amd_signal_value_pointer_fn: signals::hsa_amd_signal_value_pointer,
        hsa_amd_queue_cu_get_mask_fn: queues::hsa_amd_queue_cu_get_mask,
        hsa_amd_queue_get_info_fn: queues::hsa_amd_queue_get_info,
        hsa_amd_signal_wait_all_fn: signals::hsa_amd_signal_wait_all,
    }
    refused {
        hsa_amd_coherency_get_type_fn,
        hsa_amd_coherency_set_type_fn,
        hsa_amd_memory_copy_engine_status_fn,
        hsa_amd_memory_migrate_fn,
        hsa_amd_interop_map_buffer_fn,
        hsa_amd_interop_unmap_buffer_fn,
        hsa_amd_image_create_fn,
        hsa_amd_ipc_memory_create_fn,
        hsa_amd_ipc_memory_attach_fn,
        hsa_amd_ipc_memory_detach_fn,
        hsa_amd_ipc_signal_create_fn,
        hsa_amd_ipc_signal_attach_fn,
        hsa_amd_memory_async_copy_rect_fn,
        hsa_amd_register_deallocation_callback_fn,
        hsa_amd_deregister_deallocation_callback_fn,
        hsa_amd_svm_attributes_set_fn,
        hsa_amd_svm_attributes_get_fn,
        hsa_amd_svm_prefetch_async_fn,
        hsa_amd_spm_acquire_fn,
        hsa_amd_spm_release_fn,
        hsa_amd_spm_set_dest_buffer_fn,
        hsa_amd_portable_export_dmabuf_fn,
        hsa_amd_portable_close_dmabuf_fn,
        hsa_amd_vmem_address_reserve_fn,
        hsa_amd_vmem_address_free_fn,
        hsa_amd_vmem_handle_create_fn,
        hsa_amd_vmem_handle_release_fn,
        hsa_amd_vmem_map_fn,
        hsa_amd_vmem_unmap_fn,
        hsa_amd_vmem_set_access_fn,
        hsa_amd_vmem_get_access_fn,
        hsa_amd_vmem_export_shareable_handle_fn,
        hsa_amd_vmem_import_shareable_handle_fn,
        hsa_amd_vmem_retain_alloc_handle_fn,
        hsa_amd_vmem_get_alloc_properties_from_handle_fn,
        hsa_amd_agent_set_async_scratch_limit_fn,
        hsa_amd_vmem_address_reserve_align_fn,
        hsa_amd_enable_logging_fn,
        hsa_amd_memory_get_preferred_copy_engine_fn,
        hsa_amd_portable_export_dmabuf_v2_fn,
    }
}

entries! {
    finalizer: FinalizerExtTable, 3;
    provided {
    }
    refused {
        hsa_ext_program_create_fn,
        hsa_ext_program_destroy_fn,
        hsa_ext_program_add_module_fn,
        hsa_ext_program_iterate_modules_fn,
        hsa_ext_program_get_info_fn,
        hsa_ext_program_finalize_fn,
    }
}

entries! {
    image: ImageExtTable, 4;
    provided {
    }
    refused {
        hsa_ext_image_get_capability_fn,
        hsa_ext_image_data_get_info_fn,
        hsa_ext_image_create_fn,
        hsa_ext_image_import_fn,
        hsa_ext_image_export_fn,
        hsa_ext_image_copy_fn,
        hsa_ext_image_clear_fn,
        hsa_ext_image_destroy_fn,
        hsa_ext_sampler_create_fn,
        hsa_ext_sampler_destroy_fn,
        hsa_ext_image_get_capability_with_layout_fn,
        hsa_ext_image_data_get_info_with_layout_fn,
        hsa_ext_image_create_with_layout_fn,
        hsa_ext_sampler_create_v2_fn,
    }
}

entries! {
    pc_sampling: PcSamplingExtTable, 6;
    provided {
    }
    refused {
        hsa_ven_amd_pcs_iterate_configuration_fn,
        hsa_ven_amd_pcs_create_fn,
        hsa_ven_amd_pcs_create_from_id_fn,
        hsa_ven_amd_pcs_destroy_fn,
        hsa_ven_amd_pcs_start_fn,
        hsa_ven_amd_pcs_stop_fn,
        hsa_ven_amd_pcs_flush_fn,
    }
}
/// Statuses and field names of all refused entries.
pub(super) fn refused() -> impl Iterator<Item = (u32, &'static str)> {
    [core::REFUSED, amd_ext::REFUSED, finalizer::REFUSED, image::REFUSED, pc_sampling::REFUSED]
        .into_iter()
        .flatten()
        .copied()
}

fn tools_table() -> ToolsApiTable {
    let version = version(
        HSA_TOOLS_API_TABLE_MAJOR_VERSION,
        size_of::<ToolsApiTable>(),
        HSA_TOOLS_API_TABLE_STEP_VERSION,
    );
    ToolsApiTable {
        version,
        hsa_amd_tool_scratch_event_alloc_start_fn: Some(no_tool_event),
        hsa_amd_tool_scratch_event_alloc_end_fn: Some(no_tool_event),
        hsa_amd_tool_scratch_event_free_start_fn: Some(no_tool_event),
        hsa_amd_tool_scratch_event_free_end_fn: Some(no_tool_event),
        hsa_amd_tool_scratch_event_async_reclaim_start_fn: Some(no_tool_event),
        hsa_amd_tool_scratch_event_async_reclaim_end_fn: Some(no_tool_event),
    }
}

/// The table in its original state; its root's pointers are not set.
fn original() -> HsaApiTableContainer {
    let mut root = HsaApiTable::zeroed();
    root.version = version(HSA_API_TABLE_MAJOR_VERSION, size_of::<HsaApiTable>(), HSA_API_TABLE_STEP_VERSION);
    HsaApiTableContainer {
        root,
        core: core::original(version(
            HSA_CORE_API_TABLE_MAJOR_VERSION,
            size_of::<CoreApiTable>(),
            HSA_CORE_API_TABLE_STEP_VERSION,
        )),
        amd_ext: amd_ext::original(version(
            HSA_AMD_EXT_API_TABLE_MAJOR_VERSION,
            size_of::<AmdExtTable>(),
            HSA_AMD_EXT_API_TABLE_STEP_VERSION,
        )),
        finalizer_ext: finalizer::original(version(
            HSA_FINALIZER_API_TABLE_MAJOR_VERSION,
            size_of::<FinalizerExtTable>(),
            HSA_FINALIZER_API_TABLE_STEP_VERSION,
        )),
        image_ext: image::original(version(
            HSA_IMAGE_API_TABLE_MAJOR_VERSION,
            size_of::<ImageExtTable>(),
            HSA_IMAGE_API_TABLE_STEP_VERSION,
        )),
        tools: tools_table(),
        pc_sampling_ext: pc_sampling::original(version(
            HSA_PC_SAMPLING_API_TABLE_MAJOR_VERSION,
            size_of::<PcSamplingExtTable>(),
            HSA_PC_SAMPLING_API_TABLE_STEP_VERSION,
        )),
    }
}

/// The table's place in memory.
struct Place(*mut HsaApiTableContainer);

// SAFETY: the pointer is to leaked memory. Who writes through it keeps HSA's rule for tools: entries are replaced
// while no other thread calls through them (`OnLoad`, `OnUnload`).
unsafe impl Send for Place {}
// SAFETY: as for `Send`.
unsafe impl Sync for Place {}

static PLACE: OnceLock<Place> = OnceLock::new();

fn place() -> *mut HsaApiTableContainer {
    PLACE
        .get_or_init(|| {
            let container = Box::into_raw(Box::new(original()));
            // SAFETY: just allocated, and nobody else knows it yet.
            let tables = unsafe { &mut *container };
            tables.root.core_ = &raw mut tables.core;
            tables.root.amd_ext_ = &raw mut tables.amd_ext;
            tables.root.finalizer_ext_ = &raw mut tables.finalizer_ext;
            tables.root.image_ext_ = &raw mut tables.image_ext;
            tables.root.tools_ = &raw mut tables.tools;
            tables.root.pc_sampling_ext_ = &raw mut tables.pc_sampling_ext;
            Place(container)
        })
        .0
}

/// The table that applications call through and tools change; it stays at this address.
pub fn table() -> *mut HsaApiTable {
    place().cast()
}

/// Puts every entry back, in case a tool did not.
pub(super) fn reset() {
    let original = original();
    let tables = place();
    // SAFETY: the container is never freed; entries are written by HSA's rule for tools, after they were unloaded.
    unsafe { (*tables).core = original.core };
    // SAFETY: as above.
    unsafe { (*tables).amd_ext = original.amd_ext };
    // SAFETY: as above.
    unsafe { (*tables).finalizer_ext = original.finalizer_ext };
    // SAFETY: as above.
    unsafe { (*tables).image_ext = original.image_ext };
    // SAFETY: as above.
    unsafe { (*tables).tools = original.tools };
    // SAFETY: as above.
    unsafe { (*tables).pc_sampling_ext = original.pc_sampling_ext };
}
