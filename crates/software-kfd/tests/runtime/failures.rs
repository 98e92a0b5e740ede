//! What goes wrong on the GPU reaches the application as on hardware.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hsa_sys::*;
use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};
use wavescope_workload::{Batch, Error, Launch};

use crate::rig::{Rig, SOON, hsa, on_changed_gpu, on_runtime, on_runtime_with};

/// Bit of a node's capability: its firmware supports debugging, so that the runtime listens for exceptions.
const DEBUG_FIRMWARE: u64 = 1 << 29;

/// Runs one packet that no processor takes and returns what the queue's error callback was given.
fn failure_of(rig: &Rig, packet: AqlPacket) -> hsa_status_t {
    let queue = rig.application.queue(rig.gpu(), 64).unwrap();
    let mut batch = Batch::new();
    batch.packet(packet);
    let submission = queue.submit(&batch).unwrap();
    let end = Instant::now() + SOON;
    let status = loop {
        match queue.health() {
            Err(Error::QueueFailed { status, .. }) => break status,
            other => assert!(Instant::now() < end, "{other:?}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    // It never completes; what it holds may go with the process.
    std::mem::forget(submission);
    status
}

fn unknown_packet() -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType(6), true, Fence::System, Fence::System));
    packet
}

/// A packet with a command buffer somewhere.
fn commands_at(address: u64, dwords: u32) -> AqlPacket {
    // Format 1 (PM4 IB), INDIRECT_BUFFER with three dwords behind it, ten dwords left.
    let (low, high) = (address as u32, (address >> 32) as u32);
    let mut packet = AqlPacket([0; 16]);
    packet.0[..6].copy_from_slice(&[1 << 16, 0xC002_3F00, low, high, dwords | 1 << 23, 10]);
    packet.set_header(PacketHeader::new(PacketType::VENDOR_SPECIFIC, true, Fence::System, Fence::System));
    packet
}

fn another_queue_works(rig: &Rig) {
    let (_module, kernel) = rig.empty();
    let queue = rig.application.queue(rig.gpu(), 64).unwrap();
    let mut batch = Batch::new();
    batch.launch(Launch::new(kernel, [64, 1, 1], [64, 1, 1]));
    queue.submit(&batch).unwrap().wait(SOON).unwrap();
}

#[test]
fn unknown_packet_reaches_the_error_callback_as_an_exception_of_the_kernel() {
    let name = "unknown_packet_reaches_the_error_callback_as_an_exception_of_the_kernel";
    on_runtime(&["gfx942", "gfx1201"], module_path!(), name, |rig| {
        assert_eq!(failure_of(rig, unknown_packet()), HSA_STATUS_ERROR_INVALID_PACKET_FORMAT);
        another_queue_works(rig);
    });
}

#[test]
fn unknown_packet_reaches_the_error_callback_through_the_queues_own_signal() {
    let name = "unknown_packet_reaches_the_error_callback_through_the_queues_own_signal";
    let without_firmware = |line: &str| match line.strip_prefix("capability ") {
        Some(value) => format!("capability {}", value.trim().parse::<u64>().unwrap() & !DEBUG_FIRMWARE),
        None => line.to_owned(),
    };
    on_changed_gpu("gfx942", without_firmware, module_path!(), name, |rig| {
        assert_eq!(failure_of(rig, unknown_packet()), HSA_STATUS_ERROR_INVALID_PACKET_FORMAT);
        another_queue_works(rig);
    });
}

static FAULT: AtomicU64 = AtomicU64::new(0);

unsafe extern "C-unwind" fn on_event(event: *const hsa_amd_event_t, _data: *mut c_void) -> hsa_status_t {
    // SAFETY: the runtime passes a valid event for the time of the call.
    let event = unsafe { &*event };
    if event.event_type == HSA_AMD_GPU_MEMORY_FAULT_EVENT {
        // SAFETY: the type says which part of the union is there.
        let fault = unsafe { event.anon_union.memory_fault };
        FAULT.store(fault.virtual_address, Ordering::Release);
    }
    HSA_STATUS_SUCCESS
}

#[test]
fn access_outside_of_mapped_memory_is_a_memory_fault_with_its_page() {
    let name = "access_outside_of_mapped_memory_is_a_memory_fault_with_its_page";
    on_runtime(&["gfx942", "gfx1100"], module_path!(), name, |rig| {
        // Far above anything mapped.
        const NOWHERE: u64 = 0x0000_1234_5678_9000;
        hsa!(rig, amd_ext_.hsa_amd_register_system_event_handler_fn(Some(on_event), std::ptr::null_mut()));
        let queue = rig.application.queue(rig.gpu(), 64).unwrap();
        let mut batch = Batch::new();
        batch.packet(commands_at(NOWHERE + 0x40, 16));
        std::mem::forget(queue.submit(&batch).unwrap());
        let end = Instant::now() + SOON;
        while FAULT.load(Ordering::Acquire) == 0 {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(FAULT.load(Ordering::Acquire), NOWHERE);
    });
}

#[test]
fn fault_plan_stops_a_queue_with_the_status_that_it_names() {
    let name = "fault_plan_stops_a_queue_with_the_status_that_it_names";
    let plan = tempfile::NamedTempFile::new().unwrap();
    // 0x1010 is HSA_STATUS_ERROR_INVALID_CODE_OBJECT.
    let faults = r#"[{"queue_error": {"queue": 2, "packet": 0, "status": 4112}}]"#;
    std::fs::write(plan.path(), faults).unwrap();
    on_runtime_with("gfx942", ("WAVESCOPE_GPU_FAULTS", plan.path()), module_path!(), name, |rig| {
        // The runtime has taken the first queue of the device for itself.
        let mut harmless = AqlPacket([0; 16]);
        harmless.set_header(PacketHeader::new(PacketType::BARRIER_AND, true, Fence::None, Fence::None));
        assert_eq!(failure_of(rig, harmless), HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
        // The second queue is not part of the plan.
        another_queue_works(rig);
    });
}
