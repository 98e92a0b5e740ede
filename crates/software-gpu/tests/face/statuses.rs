//! Start, end, and what is not there.

use std::ffi::CStr;

use hsa_sys::*;
use wavescope_software_gpu::face::{Error, Options, SoftwareRuntime};

use crate::rig::{Rig, hsa};

fn text(table: *mut HsaApiTable, status: hsa_status_t) -> String {
    let mut text = std::ptr::null();
    assert_eq!(hsa!(table, core_.hsa_status_string_fn(status, &raw mut text)), HSA_STATUS_SUCCESS);
    // SAFETY: a terminated string on success.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

#[test]
fn entries_that_are_not_provided_name_themselves() {
    let rig = Rig::new();
    let table = rig.table();
    let null = std::ptr::null_mut();
    let status = hsa!(table, amd_ext_.hsa_amd_svm_attributes_set_fn(null, 0, std::ptr::null_mut(), 0));
    assert_ne!(status, HSA_STATUS_SUCCESS);
    assert!(text(table, status).starts_with("hsa_amd_svm_attributes_set is not provided"));
    let status = hsa!(table, core_.hsa_code_object_destroy_fn(hsa_code_object_t { handle: 1 }));
    assert!(text(table, status).starts_with("hsa_code_object_destroy is not provided"));
    assert!(text(table, HSA_STATUS_ERROR_INVALID_AGENT).contains("INVALID_AGENT"));
}

#[test]
fn no_slot_of_the_table_is_null() {
    let rig = Rig::new();
    // SAFETY: the table lives for ever.
    let root = unsafe { *rig.table() };
    let parts: [(*const u64, usize); 6] = [
        (root.core_.cast_const().cast(), size_of::<CoreApiTable>()),
        (root.amd_ext_.cast_const().cast(), size_of::<AmdExtTable>()),
        (root.finalizer_ext_.cast_const().cast(), size_of::<FinalizerExtTable>()),
        (root.image_ext_.cast_const().cast(), size_of::<ImageExtTable>()),
        (root.tools_.cast_const().cast(), size_of::<ToolsApiTable>()),
        (root.pc_sampling_ext_.cast_const().cast(), size_of::<PcSamplingExtTable>()),
    ];
    for (part, bytes) in parts {
        // SAFETY: a live table of this size; its slots are words.
        let words = unsafe { std::slice::from_raw_parts(part, bytes / 8) };
        assert_eq!(words[0] >> 32, bytes as u64, "minor version is the size");
        assert!(words[2..].iter().all(|&slot| slot != 0));
    }
}

#[test]
fn runtime_counts_its_users_and_starts_again() {
    let rig = Rig::new();
    let table = rig.table();
    let mut now = 0_u64;
    let mut timestamp = || {
        let attribute = HSA_SYSTEM_INFO_TIMESTAMP;
        hsa!(table, core_.hsa_system_get_info_fn(attribute, (&raw mut now).cast()))
    };
    // One reference by the handle, one by the application.
    assert_eq!(hsa!(table, core_.hsa_shut_down_fn()), HSA_STATUS_SUCCESS);
    assert_eq!(timestamp(), HSA_STATUS_SUCCESS);
    assert_eq!(hsa!(table, core_.hsa_shut_down_fn()), HSA_STATUS_SUCCESS);
    assert_eq!(timestamp(), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_eq!(hsa!(table, core_.hsa_shut_down_fn()), HSA_STATUS_ERROR_NOT_INITIALIZED);
    for _ in 0..3 {
        assert_eq!(hsa!(table, core_.hsa_init_fn()), HSA_STATUS_SUCCESS);
    }
    assert_eq!(timestamp(), HSA_STATUS_SUCCESS);
    // SAFETY: the runtime lives; nobody replaces entries.
    let again = unsafe { wavescope_workload::Application::open(table) }.unwrap();
    let queue = again.queue(&again.gpus()[0], 64).unwrap();
    let done = again.signal(1).unwrap();
    let mut batch = wavescope_workload::Batch::new();
    batch.barrier(wavescope_workload::Dependency::All, &[], Some(&done));
    let submission = queue.submit(&batch).unwrap();
    done.wait_below(1, crate::rig::SOON).unwrap();
    drop(submission);
}

#[test]
fn second_runtime_of_the_process_is_refused_while_the_first_lives() {
    let rig = Rig::new();
    let second = SoftwareRuntime::start(Options::preset("gfx1100".parse().unwrap(), 1));
    assert!(matches!(second, Err(Error::AlreadyRunning)));
    drop(rig);
    let _third = Rig::for_target("gfx1100");
}

#[test]
fn agents_say_what_the_topology_says() {
    let rig = Rig::with(Options::preset("gfx942".parse().unwrap(), 2));
    assert_eq!(rig.application.gpus().len(), 2);
    // Data sheet of MI300X and the topology table of the facts: 304 CUs, 32 engines, 8 XCCs, one array per engine.
    for gpu in rig.application.gpus() {
        let number = |attribute: hsa_amd_agent_info_t| {
            let mut value = 0_u32;
            let attribute = hsa_agent_info_t(attribute.0);
            let out = (&raw mut value).cast();
            let status = hsa!(rig.table(), core_.hsa_agent_get_info_fn(gpu.agent(), attribute, out));
            assert_eq!(status, HSA_STATUS_SUCCESS);
            value
        };
        assert_eq!(number(HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT), 304);
        assert_eq!(number(HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES), 32);
        assert_eq!(number(HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE), 1);
        assert_eq!(number(HSA_AMD_AGENT_INFO_NUM_XCC), 8);
        assert_eq!(number(HSA_AMD_AGENT_INFO_CHIP_ID), 29_857);
        assert_eq!(number(HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU), 32);
    }
}

#[test]
fn wrong_handles_are_named_by_their_status() {
    let rig = Rig::new();
    let table = rig.table();
    let mut value = [0_u8; 64];
    let out = value.as_mut_ptr().cast();
    let agent = hsa_agent_t { handle: 0x4167_0005 };
    assert_eq!(
        hsa!(table, core_.hsa_agent_get_info_fn(agent, HSA_AGENT_INFO_NAME, out)),
        HSA_STATUS_ERROR_INVALID_AGENT
    );
    let pool = hsa_amd_memory_pool_t { handle: 3 };
    assert_eq!(
        hsa!(table, amd_ext_.hsa_amd_memory_pool_get_info_fn(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE, out)),
        HSA_STATUS_ERROR_INVALID_MEMORY_POOL
    );
    let executable = hsa_executable_t { handle: 3 };
    assert_eq!(
        hsa!(table, core_.hsa_executable_freeze_fn(executable, std::ptr::null())),
        HSA_STATUS_ERROR_INVALID_EXECUTABLE
    );
    assert_eq!(
        hsa!(table, core_.hsa_agent_get_info_fn(rig.gpu().agent(), hsa_agent_info_t(0x7777), out)),
        HSA_STATUS_ERROR_INVALID_ARGUMENT
    );
}

#[test]
fn forked_child_gets_an_error_and_no_hang() {
    let rig = Rig::new();
    let table = rig.table();
    // SAFETY: the child makes two calls that touch one atomic each, and ends without unwinding or destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut now = 0_u64;
        let attribute = HSA_SYSTEM_INFO_TIMESTAMP;
        let info = hsa!(table, core_.hsa_system_get_info_fn(attribute, (&raw mut now).cast()));
        let init = hsa!(table, core_.hsa_init_fn());
        let refused = [info, init].iter().all(|&status| status == HSA_STATUS_ERROR_NOT_INITIALIZED);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if refused { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: the child of this test, and a live integer.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child's calls were not refused");
    rig.application.timestamp_ns().unwrap();
}
