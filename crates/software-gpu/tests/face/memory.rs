//! Memory: pools, access rights, locked memory, copies.

use std::ffi::c_void;
use std::sync::mpsc;

use hsa_sys::*;
use wavescope_workload::{Batch, Launch, kernels};

use crate::rig::{Rig, SOON, hsa};

fn pool(rig: &Rig, agent: hsa_agent_t, flags: u32) -> hsa_amd_memory_pool_t {
    unsafe extern "C-unwind" fn collect(pool: hsa_amd_memory_pool_t, list: *mut c_void) -> hsa_status_t {
        // SAFETY: the list that the caller below passes.
        unsafe { &mut *list.cast::<Vec<hsa_amd_memory_pool_t>>() }.push(pool);
        HSA_STATUS_SUCCESS
    }
    let mut pools = Vec::<hsa_amd_memory_pool_t>::new();
    let list = (&raw mut pools).cast();
    hsa!(rig.table(), amd_ext_.hsa_amd_agent_iterate_memory_pools_fn(agent, Some(collect), list));
    let has_flags = |pool: &hsa_amd_memory_pool_t| {
        let mut found = 0_u32;
        let attribute = HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS;
        hsa!(
            rig.table(),
            amd_ext_.hsa_amd_memory_pool_get_info_fn(*pool, attribute, (&raw mut found).cast())
        );
        found == flags
    };
    pools.into_iter().find(has_flags).unwrap()
}

fn allocate(rig: &Rig, pool: hsa_amd_memory_pool_t, bytes: usize) -> Result<*mut c_void, hsa_status_t> {
    let mut base = std::ptr::null_mut();
    let status = hsa!(rig.table(), amd_ext_.hsa_amd_memory_pool_allocate_fn(pool, bytes, 0, &raw mut base));
    if status == HSA_STATUS_SUCCESS { Ok(base) } else { Err(status) }
}

#[test]
fn device_memory_is_as_large_as_the_chip_s_and_no_larger() {
    let rig = Rig::new();
    let coarse = pool(&rig, rig.gpu().agent(), HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED.0);
    // MI300X: 192 GiB.
    let all = allocate(&rig, coarse, 192 << 30).unwrap();
    assert_eq!(allocate(&rig, coarse, 4096), Err(HSA_STATUS_ERROR_OUT_OF_RESOURCES));
    assert_eq!(hsa!(rig.table(), amd_ext_.hsa_amd_memory_pool_free_fn(all)), HSA_STATUS_SUCCESS);
    assert_eq!(
        hsa!(rig.table(), amd_ext_.hsa_amd_memory_pool_free_fn(all)),
        HSA_STATUS_ERROR_INVALID_ALLOCATION
    );
    let page = allocate(&rig, coarse, 1).unwrap();
    hsa!(rig.table(), amd_ext_.hsa_amd_memory_pool_free_fn(page));
}

#[test]
fn kernel_in_unmapped_memory_is_a_memory_fault_that_everybody_hears_of() {
    unsafe extern "C-unwind" fn heard(event: *const hsa_amd_event_t, sender: *mut c_void) -> hsa_status_t {
        // SAFETY: the event lives during the call.
        let event = unsafe { &*event };
        // SAFETY: memory faults are the only events of this runtime.
        let fault = unsafe { event.anon_union.memory_fault };
        // SAFETY: the sender below, which outlives the runtime's use of it.
        let sender = unsafe { &*sender.cast::<mpsc::Sender<(hsa_agent_t, u64)>>() };
        sender.send((fault.agent, fault.virtual_address)).unwrap();
        HSA_STATUS_SUCCESS
    }
    let (sender, faults) = mpsc::channel::<(hsa_agent_t, u64)>();
    let rig = Rig::new();
    let data = (&raw const sender).cast_mut().cast();
    hsa!(rig.table(), amd_ext_.hsa_amd_register_system_event_handler_fn(Some(heard), data));
    let module = rig.application.load(rig.gpu(), kernels::vectors("gfx942").unwrap()).unwrap();
    let queue = rig.application.queue(rig.gpu(), 64).unwrap();
    let mut kernel = module.kernel("empty").unwrap();
    kernel.object = 0x10_0000;
    let mut batch = Batch::new();
    batch.launch(Launch::new(kernel, [64, 1, 1], [64, 1, 1]));
    let submission = queue.submit(&batch).unwrap();
    let (agent, address) = faults.recv_timeout(SOON).unwrap();
    assert_eq!(agent, rig.gpu().agent());
    assert!((0x10_0000..0x10_0040).contains(&address), "{address:#x}");
    let start = std::time::Instant::now();
    while queue.health().is_ok() {
        assert!(start.elapsed() < SOON, "the error never reached the application");
        std::thread::yield_now();
    }
    let failed = queue.health().unwrap_err();
    assert!(failed.to_string().contains("MEMORY_FAULT"), "{failed}");
    assert!(!submission.is_complete().unwrap());
}

#[test]
fn pointer_info_tells_owner_size_and_who_may_access() {
    let rig = Rig::new();
    let gpu = rig.gpu().agent();
    let coarse = pool(&rig, gpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED.0);
    let base = allocate(&rig, coarse, 10_000).unwrap();
    let info = |pointer: *const c_void| {
        let mut info = hsa_amd_pointer_info_t::zeroed();
        info.size = size_of::<hsa_amd_pointer_info_t>() as u32;
        let (count, list) = (std::ptr::null_mut(), std::ptr::null_mut());
        let status =
            hsa!(rig.table(), amd_ext_.hsa_amd_pointer_info_fn(pointer, &raw mut info, None, count, list));
        assert_eq!(status, HSA_STATUS_SUCCESS);
        info
    };
    let inside = info(base.wrapping_byte_add(9_999));
    assert_eq!(inside.type_, HSA_EXT_POINTER_TYPE_HSA);
    assert_eq!((inside.agentBaseAddress, inside.sizeInBytes), (base, 10_000));
    assert_eq!(inside.agentOwner, gpu);
    let local = 0_u8;
    assert_eq!(info((&raw const local).cast()).type_, HSA_EXT_POINTER_TYPE_UNKNOWN);
    hsa!(rig.table(), amd_ext_.hsa_amd_memory_pool_free_fn(base));
}

#[test]
fn asynchronous_copy_waits_for_its_signals_and_leaves_times() {
    let rig = Rig::new();
    let gpu = rig.gpu().agent();
    let source: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let target = rig.application.buffer(rig.gpu(), source.len()).unwrap();
    let (gate, done) = (rig.application.signal(1).unwrap(), rig.application.signal(1).unwrap());
    let dependency = gate.handle();
    let status = hsa!(
        rig.table(),
        amd_ext_.hsa_amd_memory_async_copy_fn(
            std::ptr::with_exposed_provenance_mut(target.address() as usize),
            gpu,
            source.as_ptr().cast(),
            gpu,
            source.len(),
            1,
            &raw const dependency,
            done.handle(),
        )
    );
    assert_eq!(status, HSA_STATUS_SUCCESS);
    assert!(done.wait_below(1, std::time::Duration::from_millis(2)).is_err());
    assert!(target.bytes().iter().all(|&byte| byte == 0), "copied before its dependency");
    let before = rig.application.timestamp_ns().unwrap();
    gate.store(0).unwrap();
    done.wait_below(1, SOON).unwrap();
    assert_eq!(target.bytes(), source);
    let mut times = hsa_amd_profiling_async_copy_time_t::zeroed();
    hsa!(rig.table(), amd_ext_.hsa_amd_profiling_get_async_copy_time_fn(done.handle(), &raw mut times));
    assert!(times.start + 10 >= before && times.end >= times.start, "{times:?} after {before}");
}

#[test]
fn locked_memory_is_known_until_its_last_lock_is_gone() {
    let rig = Rig::new();
    let mut host = vec![0_u64; 512];
    let base: *mut c_void = host.as_mut_ptr().cast();
    let kind = || {
        let mut info = hsa_amd_pointer_info_t::zeroed();
        info.size = size_of::<hsa_amd_pointer_info_t>() as u32;
        let (count, list) = (std::ptr::null_mut(), std::ptr::null_mut());
        hsa!(rig.table(), amd_ext_.hsa_amd_pointer_info_fn(base, &raw mut info, None, count, list));
        info.type_
    };
    for _ in 0..2 {
        let mut seen = std::ptr::null_mut();
        let all = std::ptr::null_mut();
        hsa!(rig.table(), amd_ext_.hsa_amd_memory_lock_fn(base, 4096, all, 0, &raw mut seen));
        assert_eq!(seen, base);
    }
    hsa!(rig.table(), amd_ext_.hsa_amd_memory_unlock_fn(base));
    assert_eq!(kind(), HSA_EXT_POINTER_TYPE_LOCKED);
    hsa!(rig.table(), amd_ext_.hsa_amd_memory_unlock_fn(base));
    assert_eq!(kind(), HSA_EXT_POINTER_TYPE_UNKNOWN);
}
