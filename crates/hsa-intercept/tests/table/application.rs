//! The application above the table.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use hsa_sys::{
    HSA_STATUS_SUCCESS, hsa_agent_t, hsa_amd_profiling_dispatch_time_t, hsa_queue_t, hsa_signal_t,
    hsa_status_t,
};
use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};
use wavescope_hsa_intercept::{Interceptor, Options, Technique};

use crate::runtime::{self, Callback, Runtime, object};

/// Both techniques.
pub(crate) const TECHNIQUES: [Technique; 2] = [Technique::Runtime, Technique::Doorbell];

impl Runtime {
    pub(crate) fn install(&self, technique: Technique) -> Arc<Interceptor> {
        self.install_with(Options { technique: Some(technique), ..Options::default() })
    }

    pub(crate) fn install_with(&self, options: Options) -> Arc<Interceptor> {
        // SAFETY: a table of the scripted runtime, which nobody else uses now.
        unsafe { Interceptor::install(self.table, None, options) }.unwrap()
    }

    pub(crate) fn try_queue(
        &self,
        agent: hsa_agent_t,
        size: u32,
        callback: Callback,
        data: *mut c_void,
    ) -> Result<*mut hsa_queue_t, hsa_status_t> {
        let mut queue = std::ptr::null_mut();
        let create = self.core().hsa_queue_create_fn.unwrap();
        // SAFETY: the arguments are in order.
        match unsafe { create(agent, size, 0, callback, data, u32::MAX, u32::MAX, &raw mut queue) } {
            HSA_STATUS_SUCCESS => Ok(queue),
            status => Err(status),
        }
    }

    pub(crate) fn queue(&self, size: u32) -> *mut hsa_queue_t {
        self.try_queue(runtime::gpu(0), size, None, std::ptr::null_mut()).unwrap()
    }

    pub(crate) fn destroy(&self, queue: *mut hsa_queue_t) -> hsa_status_t {
        // SAFETY: the queue is the application's.
        unsafe { self.core().hsa_queue_destroy_fn.unwrap()(queue) }
    }

    /// Calls `hsa_shut_down`; how many signals were left when the runtime was asked.
    pub(crate) fn end(&self) -> i64 {
        // SAFETY: no arguments.
        assert_eq!(unsafe { self.core().hsa_shut_down_fn.unwrap()() }, HSA_STATUS_SUCCESS);
        runtime::state().left_at_end.lock().unwrap().pop().unwrap()
    }

    pub(crate) fn signal(&self, value: i64) -> u64 {
        let mut signal = hsa_signal_t { handle: 0 };
        let create = self.core().hsa_signal_create_fn.unwrap();
        // SAFETY: the arguments are in order.
        assert_eq!(unsafe { create(value, 0, std::ptr::null(), &raw mut signal) }, HSA_STATUS_SUCCESS);
        signal.handle
    }

    pub(crate) fn store(&self, signal: u64, value: i64) {
        // SAFETY: the signal lives.
        unsafe { self.core().hsa_signal_store_screlease_fn.unwrap()(hsa_signal_t { handle: signal }, value) };
    }

    pub(crate) fn silent_store(&self, signal: u64, value: i64) {
        // SAFETY: the signal lives.
        unsafe {
            self.core().hsa_signal_silent_store_relaxed_fn.unwrap()(hsa_signal_t { handle: signal }, value)
        };
    }

    /// What the application is told of the kernel that completed `signal`.
    pub(crate) fn times(&self, signal: u64) -> (u64, u64) {
        let mut time = hsa_amd_profiling_dispatch_time_t::zeroed();
        let get = self.amd().hsa_amd_profiling_get_dispatch_time_fn.unwrap();
        // SAFETY: the arguments are in order.
        let status = unsafe { get(runtime::gpu(0), hsa_signal_t { handle: signal }, &raw mut time) };
        assert_eq!(status, HSA_STATUS_SUCCESS);
        (time.start, time.end)
    }

    pub(crate) fn reserve(&self, queue: *mut hsa_queue_t, count: u64) -> u64 {
        // SAFETY: the queue lives.
        unsafe { self.core().hsa_queue_add_write_index_scacq_screl_fn.unwrap()(queue, count) }
    }

    pub(crate) fn read_index(&self, queue: *mut hsa_queue_t) -> u64 {
        // SAFETY: the queue lives.
        unsafe { self.core().hsa_queue_load_read_index_scacquire_fn.unwrap()(queue) }
    }

    /// Submits packets with one doorbell.
    pub(crate) fn submit(&self, queue: *mut hsa_queue_t, packets: &[AqlPacket]) {
        let first = self.reserve(queue, packets.len() as u64);
        for (index, packet) in (first..).zip(packets) {
            write(queue, index, packet);
        }
        self.store(doorbell(queue), (first as usize + packets.len() - 1) as i64);
    }
}

/// Lent to threads: only entries of the table are called.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a>(pub(crate) &'a Runtime);

// SAFETY: the runtime's entries are thread-safe, and nobody changes the table.
unsafe impl Send for Shared<'_> {}
// SAFETY: as above.
unsafe impl Sync for Shared<'_> {}

impl Shared<'_> {
    pub(crate) fn get(&self) -> &Runtime {
        self.0
    }
}

/// `hsa_queue_destroy` of the table, for callbacks, which know no runtime.
#[derive(Clone, Copy)]
pub(crate) struct Destroy(usize);

impl Destroy {
    pub(crate) fn of(runtime: &Runtime) -> Self {
        Self(runtime.core().hsa_queue_destroy_fn.unwrap() as *const () as usize)
    }

    /// Destroys the queue at an address.
    pub(crate) fn call(self, queue: usize) -> hsa_status_t {
        type Entry = unsafe extern "C-unwind" fn(*mut hsa_queue_t) -> hsa_status_t;
        // SAFETY: the entry that was stored there.
        let destroy = unsafe { std::mem::transmute::<usize, Entry>(self.0) };
        // SAFETY: a queue of the test.
        unsafe { destroy(std::ptr::with_exposed_provenance_mut(queue)) }
    }
}

pub(crate) fn doorbell(queue: *mut hsa_queue_t) -> u64 {
    // SAFETY: the queue lives.
    unsafe { (*queue).doorbell_signal }.handle
}

/// Writes a slot as applications do: the body, then the header with release order.
pub(crate) fn write(queue: *mut hsa_queue_t, index: u64, packet: &AqlPacket) {
    // SAFETY: the queue lives, and nobody changes these fields.
    let header = unsafe { &*queue };
    let base = header.base_address.cast::<AqlPacket>();
    let slot = base.wrapping_add((index % u64::from(header.size)) as usize);
    let mut invalid = *packet;
    invalid.set_header(PacketHeader::new(PacketType::INVALID, false, Fence::None, Fence::None));
    // SAFETY: a reserved slot.
    unsafe { slot.write(invalid) };
    // SAFETY: aligned, in the ring; everybody accesses the header atomically.
    unsafe { AtomicU16::from_ptr(slot.cast()) }.store(packet.header().0, Ordering::Release);
}

/// Numbers of the kernels that ran on the queue behind this one.
pub(crate) fn ran(queue: *mut hsa_queue_t) -> Vec<u64> {
    object(queue).kernels.lock().unwrap().clone()
}
