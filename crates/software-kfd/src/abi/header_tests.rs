//! The structures against the kernel's own headers, as the machine's C compiler lays them out.
//!
//! The headers may be older than the interface played here: structures that a header lacks or had shorter are told
//! apart by name below.

use std::mem::offset_of;
use std::process::Command;

use super::{drm, kfd};

/// One number that both sides must agree on: how C writes it, and ours.
struct Fact {
    c: String,
    ours: usize,
}

macro_rules! facts {
    ($($c:literal = $ours:ty { $($field:literal = $own:ident),* $(,)? })*) => {
        [$(
            vec![
                Fact { c: format!("sizeof(struct {})", $c), ours: size_of::<$ours>() },
                $(Fact { c: format!("offsetof(struct {}, {})", $c, $field), ours: offset_of!($ours, $own) },)*
            ],
        )*].into_iter().flatten().collect::<Vec<Fact>>()
    };
}

fn kfd_facts() -> Vec<Fact> {
    facts! {
        "kfd_ioctl_get_version_args" = kfd::GetVersion { "minor_version" = minor }
        "kfd_ioctl_destroy_queue_args" = kfd::DestroyQueue { "queue_id" = queue_id }
        "kfd_ioctl_update_queue_args" = kfd::UpdateQueue { "queue_id" = queue_id, "queue_percentage" = percentage }
        "kfd_ioctl_set_cu_mask_args" = kfd::CuMask { "num_cu_mask" = bits, "cu_mask_ptr" = pointer }
        "kfd_ioctl_set_memory_policy_args" = kfd::MemoryPolicy { "gpu_id" = gpu_id }
        "kfd_ioctl_set_scratch_backing_va_args" = kfd::ScratchBacking { "gpu_id" = gpu_id }
        "kfd_ioctl_set_trap_handler_args" = kfd::TrapHandler { "gpu_id" = gpu_id }
        "kfd_ioctl_acquire_vm_args" = kfd::AcquireVm { "gpu_id" = gpu_id }
        "kfd_ioctl_get_clock_counters_args" = kfd::GetClockCounters {
            "gpu_clock_counter" = gpu_counter, "cpu_clock_counter" = cpu_counter,
            "system_clock_counter" = system_counter, "system_clock_freq" = system_frequency, "gpu_id" = gpu_id,
        }
        "kfd_process_device_apertures" = kfd::Apertures { "gpuvm_limit" = gpuvm_limit, "gpu_id" = gpu_id }
        "kfd_ioctl_get_process_apertures_new_args" = kfd::GetApertures { "num_of_nodes" = nodes }
        "kfd_ioctl_create_event_args" = kfd::CreateEvent {
            "event_page_offset" = page_offset, "event_type" = event_type, "auto_reset" = auto_reset,
            "event_id" = event_id, "event_slot_index" = slot,
        }
        "kfd_ioctl_set_event_args" = kfd::EventId { "event_id" = event_id }
        "kfd_event_data" = kfd::EventData { "event_id" = event_id }
        "kfd_ioctl_wait_events_args" = kfd::WaitEvents {
            "events_ptr" = pointer, "num_events" = events, "wait_for_all" = wait_for_all, "timeout" = timeout,
            "wait_result" = wait_result,
        }
        "kfd_ioctl_get_tile_config_args" = kfd::GetTileConfig { "gpu_id" = gpu_id, "num_ranks" = ranks }
        "kfd_ioctl_alloc_memory_of_gpu_args" = kfd::AllocMemory {
            "va_addr" = va, "size" = bytes, "handle" = handle, "mmap_offset" = mmap_offset, "gpu_id" = gpu_id,
            "flags" = flags,
        }
        "kfd_ioctl_free_memory_of_gpu_args" = kfd::FreeMemory { "handle" = handle }
        "kfd_ioctl_map_memory_to_gpu_args" = kfd::MapMemory {
            "device_ids_array_ptr" = devices_pointer, "n_devices" = devices, "n_success" = successes,
        }
        "kfd_ioctl_get_dmabuf_info_args" = kfd::DmaBufInfo {
            "size" = bytes, "metadata_size" = metadata_bytes, "gpu_id" = gpu_id, "flags" = flags, "dmabuf_fd" = fd,
        }
        "kfd_ioctl_import_dmabuf_args" = kfd::ImportDmaBuf {
            "va_addr" = va, "handle" = handle, "gpu_id" = gpu_id, "dmabuf_fd" = fd,
        }
        "kfd_ioctl_alloc_queue_gws_args" = kfd::AllocGws { "num_gws" = count, "first_gws" = first }
        "kfd_ioctl_smi_events_args" = kfd::SmiEvents { "anon_fd" = fd }
        "kfd_ioctl_set_xnack_mode_args" = kfd::XnackMode { "xnack_enabled" = enabled }
        "kfd_ioctl_get_available_memory_args" = kfd::AvailableMemory { "gpu_id" = gpu_id }
        "kfd_ioctl_svm_args" = kfd::Svm { "op" = operation, "nattr" = attributes }
        "kfd_ioctl_svm_attribute" = kfd::SvmAttribute { "value" = value }
    }
}

/// Fields of a structure that grew since: only those that old headers have.
fn queue_facts() -> Vec<Fact> {
    let fields = facts! {
        "kfd_ioctl_create_queue_args" = kfd::CreateQueue {
            "write_pointer_address" = write_pointer, "read_pointer_address" = read_pointer,
            "doorbell_offset" = doorbell_offset, "ring_size" = ring_bytes, "gpu_id" = gpu_id,
            "queue_type" = queue_type, "queue_id" = queue_id, "ctx_save_restore_address" = save_area,
            "ctl_stack_size" = stack_bytes,
        }
    };
    fields.into_iter().skip(1).collect()
}

fn drm_facts() -> Vec<Fact> {
    let mut facts = facts! {
        "drm_version" = drm::Version { "name_len" = name_bytes, "name" = name, "desc" = description }
        "drm_client" = drm::Client { "auth" = authenticated }
        "drm_gem_close" = drm::GemClose { "handle" = handle }
        "drm_prime_handle" = drm::Prime { "flags" = flags, "fd" = fd }
        "drm_amdgpu_info" = drm::Info { "return_size" = return_bytes, "query" = query }
        "drm_amdgpu_heap_info" = drm::Heap { "heap_usage" = used, "max_allocation" = largest }
        "drm_amdgpu_memory_info" = drm::MemoryInfo { "gtt" = gtt }
        "drm_amdgpu_info_vram_gtt" = drm::VramGtt { "gtt_size" = gtt }
    };
    // These have grown since; what follows our last field is the rest.
    let grown = facts! {
        "drm_amdgpu_info_device" = drm::DeviceInfo {
            "device_id" = device_id, "pci_rev" = pci_revision, "family" = family,
            "gpu_counter_freq" = counter_khz, "max_engine_clock" = engine_khz, "cu_active_number" = active_cus,
            "virtual_address_offset" = va_offset, "virtual_address_alignment" = va_alignment,
            "wave_front_size" = wave_size, "num_cu_per_sh" = cu_per_array, "high_va_offset" = high_va_offset,
            "high_va_max" = high_va_max,
        }
        "drm_amdgpu_gem_va" = drm::GemVa {
            "operation" = operation, "flags" = flags, "va_address" = va, "offset_in_bo" = offset,
            "map_size" = bytes,
        }
    };
    facts.extend(grown.into_iter().filter(|fact| !fact.c.starts_with("sizeof")));
    facts
}

/// Compiles and runs a C program that prints the numbers. `None` without a compiler or without the header.
fn compiled(header: &str, facts: &[Fact]) -> Option<Vec<usize>> {
    let folder = tempfile::tempdir().unwrap();
    let compile = |name: &str, text: &str| {
        let source = folder.path().join(format!("{name}.c"));
        std::fs::write(&source, text).unwrap();
        let mut compiler = Command::new("cc");
        // Behind the system's own: for a machine that has the kernel driver's header, but not the one it includes.
        compiler.arg("-idirafter").arg(folder.path());
        compiler.arg(&source).arg("-o").arg(folder.path().join(name)).output()
    };
    let drm = folder.path().join("drm");
    std::fs::create_dir(&drm).unwrap();
    std::fs::write(drm.join("drm.h"), "#include <linux/ioctl.h>\n#include <linux/types.h>\n").unwrap();
    let includes = format!("#include <stddef.h>\n#include <stdio.h>\n#include <{header}>\n");
    let empty = compile("empty", &format!("{includes}int main(void) {{}}\n"));
    if !empty.is_ok_and(|compiler| compiler.status.success()) {
        println!("NOT RUN: no C compiler that finds {header}");
        return None;
    }
    let numbers: String = facts.iter().map(|fact| format!("  printf(\"%zu\\n\", {});\n", fact.c)).collect();
    let compiler = compile("facts", &format!("{includes}int main(void) {{\n{numbers}}}\n")).unwrap();
    assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
    let output = Command::new(folder.path().join("facts")).output().unwrap();
    Some(String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect())
}

fn compare(header: &str, facts: &[Fact]) {
    let Some(theirs) = compiled(header, facts) else { return };
    assert_eq!(theirs.len(), facts.len());
    for (fact, theirs) in facts.iter().zip(theirs) {
        assert_eq!(fact.ours, theirs, "{}", fact.c);
    }
}

#[test]
fn structures_of_the_kernel_driver_lie_as_in_its_header() {
    let facts: Vec<_> = kfd_facts().into_iter().chain(queue_facts()).collect();
    assert!(facts.len() > 80);
    compare("linux/kfd_ioctl.h", &facts);
}

#[test]
fn structures_of_render_nodes_lie_as_in_their_header() {
    compare("drm/amdgpu_drm.h", &drm_facts());
}
