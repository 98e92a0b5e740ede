//! Copies by the SDMA engines: what arrives is what was sent.

use std::ffi::c_void;

use hsa_sys::*;
use wavescope_workload::Gpu;

use crate::rig::{Rig, SOON, TARGETS, hsa, on_runtime};

/// Device memory of the first global pool of a GPU.
struct Video<'a> {
    rig: &'a Rig,
    address: *mut c_void,
}

impl<'a> Video<'a> {
    fn allocate(rig: &'a Rig, gpu: &Gpu, bytes: usize) -> Self {
        unsafe extern "C-unwind" fn first(pool: hsa_amd_memory_pool_t, found: *mut c_void) -> hsa_status_t {
            // SAFETY: `found` is the option below, borrowed by nobody else during the call.
            unsafe { &mut *found.cast::<Option<hsa_amd_memory_pool_t>>() }.get_or_insert(pool);
            HSA_STATUS_SUCCESS
        }
        let mut pool: Option<hsa_amd_memory_pool_t> = None;
        let found = (&raw mut pool).cast();
        hsa!(rig, amd_ext_.hsa_amd_agent_iterate_memory_pools_fn(gpu.agent(), Some(first), found));
        let mut address = std::ptr::null_mut();
        hsa!(rig, amd_ext_.hsa_amd_memory_pool_allocate_fn(pool.unwrap(), bytes, 0, &raw mut address));
        Self { rig, address }
    }

    fn at(&self, offset: usize) -> *mut c_void {
        self.address.wrapping_byte_add(offset)
    }
}

impl Drop for Video<'_> {
    fn drop(&mut self) {
        hsa!(self.rig, amd_ext_.hsa_amd_memory_pool_free_fn(self.address));
    }
}

fn cpu(rig: &Rig) -> hsa_agent_t {
    unsafe extern "C-unwind" fn first(agent: hsa_agent_t, found: *mut c_void) -> hsa_status_t {
        // SAFETY: `found` is the option below, borrowed by nobody else during the call.
        unsafe { &mut *found.cast::<Option<hsa_agent_t>>() }.get_or_insert(agent);
        HSA_STATUS_SUCCESS
    }
    let mut agent: Option<hsa_agent_t> = None;
    hsa!(rig, core_.hsa_iterate_agents_fn(Some(first), (&raw mut agent).cast()));
    agent.unwrap()
}

/// A pattern in which no two blocks of 256 bytes are equal.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index ^ index >> 8 ^ index >> 16) as u8).collect()
}

/// One copy, waited for.
fn copy(
    rig: &Rig,
    (to, to_agent): (*mut c_void, hsa_agent_t),
    (from, from_agent): (*mut c_void, hsa_agent_t),
    bytes: usize,
) {
    let done = rig.application.signal(1).unwrap();
    let (none, handle) = (std::ptr::null(), done.handle());
    hsa!(rig, amd_ext_.hsa_amd_memory_async_copy_fn(to, to_agent, from, from_agent, bytes, 0, none, handle));
    done.wait_below(1, SOON).unwrap();
}

#[test]
fn bytes_come_back_from_video_memory_as_they_went() {
    on_runtime(&TARGETS, module_path!(), "bytes_come_back_from_video_memory_as_they_went", |rig| {
        // Around the limit of one packet (4 MiB) where packets count 22 bits.
        const SIZES: [usize; 7] = [1, 63, 4096, 4_194_271, 4_194_273, 9_000_001, 1 << 24];
        let (host, device) = (cpu(rig), rig.gpu().agent());
        let video = Video::allocate(rig, rig.gpu(), (1 << 24) + 64);
        let pattern = pattern(1 << 24);
        for (shift, bytes) in SIZES.into_iter().enumerate() {
            let mut sent = rig.application.buffer(rig.gpu(), bytes).unwrap();
            let mut back = rig.application.buffer(rig.gpu(), bytes).unwrap();
            sent.bytes_mut().copy_from_slice(&pattern[..bytes]);
            back.bytes_mut().fill(0xA5);
            copy(rig, (video.at(shift), device), (sent.address() as *mut c_void, host), bytes);
            copy(rig, (back.address() as *mut c_void, host), (video.at(shift), device), bytes);
            assert!(back.bytes() == &pattern[..bytes], "{bytes} bytes at {shift}");
        }
    });
}

#[test]
fn copy_waits_for_the_signals_that_it_depends_on() {
    on_runtime(
        &["gfx942", "gfx1100"],
        module_path!(),
        "copy_waits_for_the_signals_that_it_depends_on",
        |rig| {
            let (host, device) = (cpu(rig), rig.gpu().agent());
            let video = Video::allocate(rig, rig.gpu(), 4096);
            let mut sent = rig.application.buffer(rig.gpu(), 4096).unwrap();
            sent.bytes_mut().fill(7);
            // One needs both halves of its 64 bits to become 0.
            let gates = [rig.application.signal(1 << 40 | 1).unwrap(), rig.application.signal(1).unwrap()];
            let handles = gates.each_ref().map(|gate| gate.handle());
            let done = rig.application.signal(1).unwrap();
            let from = sent.address() as *mut c_void;
            let list = handles.as_ptr();
            hsa!(
                rig,
                amd_ext_.hsa_amd_memory_async_copy_fn(
                    video.at(0),
                    device,
                    from,
                    host,
                    4096,
                    2,
                    list,
                    done.handle()
                )
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(done.load().unwrap(), 1);
            gates[0].store(0).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(done.load().unwrap(), 1);
            gates[1].store(0).unwrap();
            done.wait_below(1, SOON).unwrap();
        },
    );
}

#[test]
fn copy_times_are_nanoseconds_of_the_system_clock() {
    on_runtime(&TARGETS, module_path!(), "copy_times_are_nanoseconds_of_the_system_clock", |rig| {
        const BYTES: usize = 1 << 23;
        hsa!(rig, amd_ext_.hsa_amd_profiling_async_copy_enable_fn(true));
        let (host, device) = (cpu(rig), rig.gpu().agent());
        let video = Video::allocate(rig, rig.gpu(), BYTES);
        let sent = rig.application.buffer(rig.gpu(), BYTES).unwrap();
        let done = rig.application.signal(1).unwrap();
        let (from, none) = (sent.address() as *mut c_void, std::ptr::null());
        let before = rig.application.timestamp_ns().unwrap();
        hsa!(
            rig,
            amd_ext_.hsa_amd_memory_async_copy_fn(
                video.at(0),
                device,
                from,
                host,
                BYTES,
                0,
                none,
                done.handle()
            )
        );
        done.wait_below(1, SOON).unwrap();
        let after = rig.application.timestamp_ns().unwrap();
        let mut times = hsa_amd_profiling_async_copy_time_t::zeroed();
        hsa!(rig, amd_ext_.hsa_amd_profiling_get_async_copy_time_fn(done.handle(), &raw mut times));
        // ROCr fits the GPU clock to the system clock: allow it a tenth of a millisecond.
        const FIT_NS: u64 = 100_000;
        assert!(before <= times.start + FIT_NS, "{before} {times:?}");
        assert!(times.start < times.end && times.end <= after + FIT_NS, "{times:?} {after}");
    });
}

#[test]
fn box_is_copied_out_of_a_volume_into_another() {
    on_runtime(&TARGETS, module_path!(), "box_is_copied_out_of_a_volume_into_another", |rig| {
        const PITCH: usize = 256;
        const SLICE: usize = 256 * 16;
        const BYTES: usize = SLICE * 4;
        let device = rig.gpu().agent();
        let video = Video::allocate(rig, rig.gpu(), BYTES);
        let mut sent = rig.application.buffer(rig.gpu(), BYTES).unwrap();
        let mut back = rig.application.buffer(rig.gpu(), BYTES).unwrap();
        sent.bytes_mut().copy_from_slice(&pattern(BYTES));
        back.bytes_mut().fill(0);
        let volume = |base| hsa_pitched_ptr_t { base, pitch: PITCH, slice: SLICE };
        let range = hsa_dim3_t { x: 101, y: 5, z: 2 };
        let boxed = |to: hsa_pitched_ptr_t, to_at, from: hsa_pitched_ptr_t, from_at, direction| {
            let done = rig.application.signal(1).unwrap();
            let (none, handle) = (std::ptr::null(), done.handle());
            hsa!(
                rig,
                amd_ext_.hsa_amd_memory_async_copy_rect_fn(
                    &raw const to,
                    &raw const to_at,
                    &raw const from,
                    &raw const from_at,
                    &raw const range,
                    device,
                    direction,
                    0,
                    none,
                    handle,
                )
            );
            done.wait_below(1, SOON).unwrap();
        };
        let (there, here) = (hsa_dim3_t { x: 8, y: 2, z: 1 }, hsa_dim3_t { x: 3, y: 1, z: 2 });
        let (sent_at, back_at) = (sent.address() as *mut c_void, back.address() as *mut c_void);
        boxed(volume(video.at(0)), there, volume(sent_at), here, hsa_amd_copy_direction_t(1));
        boxed(volume(back_at), here, volume(video.at(0)), there, hsa_amd_copy_direction_t(2));
        let mut expected = vec![0; BYTES];
        for (z, y) in (0..2).flat_map(|z| (0..5).map(move |y| (z, y))) {
            let row = (here.z as usize + z) * SLICE + (here.y as usize + y) * PITCH + here.x as usize;
            expected[row..row + 101].copy_from_slice(&pattern(BYTES)[row..row + 101]);
        }
        assert!(back.bytes() == expected);
    });
}

#[test]
fn gpus_copy_to_each_other() {
    on_runtime(&["gfx942-x2", "gfx1100-x2"], module_path!(), "gpus_copy_to_each_other", |rig| {
        const BYTES: usize = 1 << 20;
        let [first, second] = rig.application.gpus() else { panic!("not two GPUs") };
        let host = cpu(rig);
        let (near, far) = (Video::allocate(rig, first, BYTES), Video::allocate(rig, second, BYTES));
        let both = [first.agent(), second.agent()];
        for memory in [&near, &far] {
            let flags = std::ptr::null();
            hsa!(rig, amd_ext_.hsa_amd_agents_allow_access_fn(2, both.as_ptr(), flags, memory.at(0)));
        }
        let mut sent = rig.application.buffer(first, BYTES).unwrap();
        let mut back = rig.application.buffer(second, BYTES).unwrap();
        sent.bytes_mut().copy_from_slice(&pattern(BYTES));
        back.bytes_mut().fill(0);
        copy(rig, (near.at(0), first.agent()), (sent.address() as *mut c_void, host), BYTES);
        copy(rig, (far.at(0), second.agent()), (near.at(0), first.agent()), BYTES);
        copy(rig, (back.address() as *mut c_void, host), (far.at(0), second.agent()), BYTES);
        assert!(back.bytes() == pattern(BYTES));
    });
}

#[test]
fn video_memory_ends_where_the_topology_says() {
    on_runtime(&["gfx1100"], module_path!(), "video_memory_ends_where_the_topology_says", |rig| {
        // 24,560 MiB: most of it at once, and then no second time.
        const MOST: usize = 20 << 30;
        let most = Video::allocate(rig, rig.gpu(), MOST);
        let second = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            drop(Video::allocate(rig, rig.gpu(), MOST));
        }));
        assert!(second.is_err());
        drop(most);
        drop(Video::allocate(rig, rig.gpu(), MOST));
    });
}
