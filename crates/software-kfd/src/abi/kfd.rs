//! Structures of `linux/kfd_ioctl.h`, interface version 1.17.

/// Version that is answered: event ages (1.14) and queues by SDMA engine (1.17).
pub(crate) const VERSION: (u32, u32) = (1, 17);

/// Request numbers (`AMDKFD_IOC_*`).
pub(crate) mod number {
    pub(crate) const GET_VERSION: u8 = 0x01;
    pub(crate) const CREATE_QUEUE: u8 = 0x02;
    pub(crate) const DESTROY_QUEUE: u8 = 0x03;
    pub(crate) const SET_MEMORY_POLICY: u8 = 0x04;
    pub(crate) const GET_CLOCK_COUNTERS: u8 = 0x05;
    pub(crate) const UPDATE_QUEUE: u8 = 0x07;
    pub(crate) const CREATE_EVENT: u8 = 0x08;
    pub(crate) const DESTROY_EVENT: u8 = 0x09;
    pub(crate) const SET_EVENT: u8 = 0x0A;
    pub(crate) const RESET_EVENT: u8 = 0x0B;
    pub(crate) const WAIT_EVENTS: u8 = 0x0C;
    pub(crate) const SET_SCRATCH_BACKING_VA: u8 = 0x11;
    pub(crate) const GET_TILE_CONFIG: u8 = 0x12;
    pub(crate) const SET_TRAP_HANDLER: u8 = 0x13;
    pub(crate) const GET_PROCESS_APERTURES_NEW: u8 = 0x14;
    pub(crate) const ACQUIRE_VM: u8 = 0x15;
    pub(crate) const ALLOC_MEMORY: u8 = 0x16;
    pub(crate) const FREE_MEMORY: u8 = 0x17;
    pub(crate) const MAP_MEMORY: u8 = 0x18;
    pub(crate) const UNMAP_MEMORY: u8 = 0x19;
    pub(crate) const SET_CU_MASK: u8 = 0x1A;
    pub(crate) const GET_DMABUF_INFO: u8 = 0x1C;
    pub(crate) const IMPORT_DMABUF: u8 = 0x1D;
    pub(crate) const ALLOC_QUEUE_GWS: u8 = 0x1E;
    pub(crate) const SMI_EVENTS: u8 = 0x1F;
    pub(crate) const SVM: u8 = 0x20;
    pub(crate) const SET_XNACK_MODE: u8 = 0x21;
    pub(crate) const AVAILABLE_MEMORY: u8 = 0x23;
    pub(crate) const EXPORT_DMABUF: u8 = 0x24;
    pub(crate) const RUNTIME_ENABLE: u8 = 0x25;
    pub(crate) const DBG_TRAP: u8 = 0x26;
}

/// `KFD_IOC_ALLOC_MEM_FLAGS_*`.
pub(crate) mod memory_flags {
    pub(crate) const VRAM: u32 = 1;
    pub(crate) const GTT: u32 = 1 << 1;
    pub(crate) const USERPTR: u32 = 1 << 2;
    pub(crate) const DOORBELL: u32 = 1 << 3;
    pub(crate) const MMIO_REMAP: u32 = 1 << 4;
    pub(crate) const PUBLIC: u32 = 1 << 29;
    pub(crate) const WRITABLE: u32 = 1 << 31;
}

/// `KFD_IOC_QUEUE_TYPE_*`.
pub(crate) mod queue_type {
    pub(crate) const SDMA: u32 = 1;
    pub(crate) const COMPUTE_AQL: u32 = 2;
    pub(crate) const SDMA_XGMI: u32 = 3;
    pub(crate) const SDMA_BY_ENGINE: u32 = 4;
}

/// Marks structures that may be read from and written to a caller's memory as bytes.
///
/// # Safety
/// `#[repr(C)]`, integers only, no padding: every bit pattern is a value and no byte is uninitialised.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for u8 {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}

/// Declares argument structures with the size that C gives them.
macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident $bytes:literal { $($field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $name { $(pub(crate) $field: $type),* }

        const _: () = assert!(size_of::<$name>() == $bytes);
        // No padding: the fields' sizes add up to the structure's.
        const _: () = assert!($(size_of::<$type>() +)* 0 == $bytes);

        // SAFETY: integers only, no padding (asserted above), repr(C).
        unsafe impl Plain for $name {}
    )*};
}
pub(crate) use structures;

structures! {
    /// `kfd_ioctl_get_version_args`
    GetVersion 8 { major: u32, minor: u32 }
    /// `kfd_ioctl_create_queue_args`
    CreateQueue 96 {
        ring: u64, write_pointer: u64, read_pointer: u64, doorbell_offset: u64,
        ring_bytes: u32, gpu_id: u32, queue_type: u32, percentage: u32, priority: u32, queue_id: u32,
        eop_address: u64, eop_bytes: u64, save_area: u64, save_area_bytes: u32, stack_bytes: u32,
        sdma_engine: u32, pad: u32,
    }
    /// `kfd_ioctl_update_queue_args`
    UpdateQueue 24 { ring: u64, queue_id: u32, ring_bytes: u32, percentage: u32, priority: u32 }
    /// `kfd_ioctl_set_cu_mask_args`
    CuMask 16 { queue_id: u32, bits: u32, pointer: u64 }
    /// `kfd_ioctl_set_memory_policy_args`
    MemoryPolicy 32 {
        alternate_base: u64, alternate_bytes: u64, gpu_id: u32, default: u32, alternate: u32, flags: u32,
    }
    /// `kfd_ioctl_set_scratch_backing_va_args`
    ScratchBacking 16 { va: u64, gpu_id: u32, pad: u32 }
    /// `kfd_ioctl_set_trap_handler_args`
    TrapHandler 24 { code: u64, memory: u64, gpu_id: u32, pad: u32 }
    /// `kfd_ioctl_acquire_vm_args`
    AcquireVm 8 { drm_fd: u32, gpu_id: u32 }
    /// `kfd_ioctl_destroy_queue_args`
    DestroyQueue 8 { queue_id: u32, pad: u32 }
    /// `kfd_ioctl_get_clock_counters_args`
    GetClockCounters 40 {
        gpu_counter: u64, cpu_counter: u64, system_counter: u64, system_frequency: u64, gpu_id: u32, pad: u32,
    }
    /// `kfd_process_device_apertures`
    Apertures 56 {
        lds_base: u64, lds_limit: u64, scratch_base: u64, scratch_limit: u64, gpuvm_base: u64, gpuvm_limit: u64,
        gpu_id: u32, pad: u32,
    }
    /// `kfd_ioctl_get_process_apertures_new_args`
    GetApertures 16 { pointer: u64, nodes: u32, pad: u32 }
    /// `kfd_ioctl_create_event_args`
    CreateEvent 32 {
        page_offset: u64, trigger_data: u32, event_type: u32, auto_reset: u32, node_id: u32, event_id: u32,
        slot: u32,
    }
    /// `kfd_ioctl_destroy_event_args`, `_set_event_args`, `_reset_event_args`
    EventId 8 { event_id: u32, pad: u32 }
    /// `kfd_ioctl_wait_events_args`
    WaitEvents 24 { pointer: u64, events: u32, wait_for_all: u32, timeout: u32, wait_result: u32 }
    /// `kfd_event_data`: a union of 32 bytes, an unused pointer, the id
    EventData 48 { data: [u64; 4], extension: u64, event_id: u32, pad: u32 }
    /// `kfd_ioctl_get_tile_config_args`
    GetTileConfig 40 {
        tile_pointer: u64, macro_tile_pointer: u64, tiles: u32, macro_tiles: u32, gpu_id: u32,
        gb_addr_config: u32, banks: u32, ranks: u32,
    }
    /// `kfd_ioctl_alloc_memory_of_gpu_args`
    AllocMemory 40 { va: u64, bytes: u64, handle: u64, mmap_offset: u64, gpu_id: u32, flags: u32 }
    /// `kfd_ioctl_free_memory_of_gpu_args`
    FreeMemory 8 { handle: u64 }
    /// `kfd_ioctl_map_memory_to_gpu_args`, `_unmap_memory_from_gpu_args`
    MapMemory 24 { handle: u64, devices_pointer: u64, devices: u32, successes: u32 }
    /// `kfd_ioctl_get_dmabuf_info_args`
    DmaBufInfo 32 { bytes: u64, metadata_pointer: u64, metadata_bytes: u32, gpu_id: u32, flags: u32, fd: u32 }
    /// `kfd_ioctl_import_dmabuf_args`
    ImportDmaBuf 24 { va: u64, handle: u64, gpu_id: u32, fd: u32 }
    /// `kfd_ioctl_alloc_queue_gws_args`
    AllocGws 16 { queue_id: u32, count: u32, first: u32, pad: u32 }
    /// `kfd_ioctl_smi_events_args`
    SmiEvents 8 { gpu_id: u32, fd: u32 }
    /// `kfd_ioctl_set_xnack_mode_args`
    XnackMode 4 { enabled: i32 }
    /// `kfd_ioctl_get_available_memory_args`
    AvailableMemory 16 { available: u64, gpu_id: u32, pad: u32 }
    /// `kfd_ioctl_export_dmabuf_args`
    ExportDmaBuf 16 { handle: u64, flags: u32, fd: u32 }
    /// `kfd_ioctl_svm_args`, without its attributes
    Svm 24 { start: u64, bytes: u64, operation: u32, attributes: u32 }
    /// `kfd_ioctl_svm_attribute`
    SvmAttribute 8 { kind: u32, value: u32 }
    /// `HsaUserContextSaveAreaHeader`, at the head of a queue's save area (`libhsakmt/include/hsakmt/hsakmttypes.h`)
    SaveAreaHeader 40 {
        control_stack_offset: u32, control_stack_bytes: u32, wave_state_offset: u32, wave_state_bytes: u32,
        debug_offset: u32, debug_bytes: u32, error_payload: u64, error_event: u32, reserved: u32,
    }
}

impl EventData {
    /// Data of a wait for `id` that has seen `age`.
    #[cfg(test)]
    pub(crate) fn new(id: u32, age: u64) -> Self {
        Self { data: [age, 0, 0, 0], event_id: id, ..Self::default() }
    }

    /// `signal_event_data.last_event_age`.
    pub(crate) fn last_event_age(&self) -> u64 {
        self.data[0]
    }

    /// Reports the age that ended the wait.
    pub(crate) fn set_last_event_age(&mut self, age: u64) {
        self.data[0] = age;
    }
}
