//! Structures of `drm/drm.h` and `drm/amdgpu_drm.h`.

use super::kfd::{Plain, structures};

/// Request numbers (`DRM_IOCTL_*`, `DRM_AMDGPU_*` behind `DRM_COMMAND_BASE`).
pub(crate) mod number {
    pub(crate) const VERSION: u8 = 0x00;
    pub(crate) const GET_CLIENT: u8 = 0x05;
    pub(crate) const GEM_CLOSE: u8 = 0x09;
    pub(crate) const PRIME_HANDLE_TO_FD: u8 = 0x2D;
    pub(crate) const PRIME_FD_TO_HANDLE: u8 = 0x2E;
    pub(crate) const GEM_MMAP: u8 = 0x41;
    pub(crate) const INFO: u8 = 0x45;
    pub(crate) const GEM_VA: u8 = 0x48;
}

/// `AMDGPU_INFO_*`.
pub(crate) mod query {
    pub(crate) const ACCEL_WORKING: u32 = 0x00;
    pub(crate) const TIMESTAMP: u32 = 0x05;
    pub(crate) const VRAM_USAGE: u32 = 0x10;
    pub(crate) const GTT_USAGE: u32 = 0x11;
    pub(crate) const VRAM_GTT: u32 = 0x14;
    pub(crate) const DEV_INFO: u32 = 0x16;
    pub(crate) const VIS_VRAM_USAGE: u32 = 0x17;
    pub(crate) const MEMORY: u32 = 0x19;
}

/// `AMDGPU_VA_OP_*`.
pub(crate) mod va_operation {
    pub(crate) const MAP: u32 = 1;
    pub(crate) const UNMAP: u32 = 2;
    pub(crate) const CLEAR: u32 = 3;
    pub(crate) const REPLACE: u32 = 4;
}

structures! {
    /// `drm_version`
    Version 64 {
        major: i32, minor: i32, patch: i32, pad: u32, name_bytes: u64, name: u64, date_bytes: u64, date: u64,
        description_bytes: u64, description: u64,
    }
    /// `drm_client`
    Client 40 { index: i32, authenticated: i32, pid: u64, uid: u64, magic: u64, requests: u64 }
    /// `drm_gem_close`
    GemClose 8 { handle: u32, pad: u32 }
    /// `drm_prime_handle`
    Prime 12 { handle: u32, flags: u32, fd: i32 }
    /// `drm_amdgpu_gem_mmap`: the handle going in, the offset coming out
    GemMmap 8 { handle_or_offset: u64 }
    /// `drm_amdgpu_info`, without what narrows a query down
    Info 32 { return_pointer: u64, return_bytes: u32, query: u32, narrow: [u32; 4] }
    /// `drm_amdgpu_gem_va`
    GemVa 40 {
        handle: u32, pad: u32, operation: u32, flags: u32, va: u64, offset: u64, bytes: u64,
    }
    /// `drm_amdgpu_heap_info`
    Heap 32 { total: u64, usable: u64, used: u64, largest: u64 }
    /// `drm_amdgpu_info_vram_gtt`
    VramGtt 24 { vram: u64, visible_vram: u64, gtt: u64 }
    /// `drm_amdgpu_memory_info`
    MemoryInfo 96 { vram: Heap, visible_vram: Heap, gtt: Heap }
    /// `drm_amdgpu_info_device`, up to the fields that the runtime reads
    DeviceInfo 352 {
        device_id: u32, chip_revision: u32, external_revision: u32, pci_revision: u32, family: u32,
        shader_engines: u32, arrays_per_engine: u32, counter_khz: u32, engine_khz: u64, memory_khz: u64,
        active_cus: u32, always_on_mask: u32, cu_bitmap: [[u32; 4]; 4], pipes_mask: u32, pipes: u32,
        contexts: u32, pad0: u32, id_flags: u64, va_offset: u64, va_max: u64, va_alignment: u32,
        fragment: u32, gart_page: u32, ce_ram: u32, vram_type: u32, vram_bits: u32, vce_harvest: u32,
        offchip_lds: u32, primitive_buffers: [u64; 4], primitive_buffer_bytes: [u32; 4], wave_size: u32,
        visible_vgprs: u32, cu_per_array: u32, tccs: u32, gs_vgt_depth: u32, gs_buffer_depth: u32,
        gs_waves: u32, pad1: u32, always_on_bitmap: [[u32; 4]; 4], high_va_offset: u64, high_va_max: u64,
    }
}
