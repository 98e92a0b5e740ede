//! Rings written by hand, as applications do that do not go through a library.

use std::mem::offset_of;
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU64, Ordering};

use hsa_sys::{
    AMD_SIGNAL_KIND_DOORBELL, AmdExtTable, CoreApiTable, HSA_QUEUE_TYPE_MULTI, HSA_STATUS_SUCCESS,
    amd_queue_v2_t, amd_signal_t, hsa_queue_t,
};
use wavescope_core::{AqlPacket, Fence, PacketHeader, PacketType};
use wavescope_workload::Queue;

use crate::rig::{LIMIT, Rig};

pub(crate) fn core(rig: &Rig) -> &CoreApiTable {
    // SAFETY: the runtime's table lives as long as the rig.
    let table = unsafe { &*rig.table };
    // SAFETY: likewise.
    unsafe { &*table.core_ }
}

pub(crate) fn amd(rig: &Rig) -> &AmdExtTable {
    // SAFETY: as in `core`.
    let table = unsafe { &*rig.table };
    // SAFETY: likewise.
    unsafe { &*table.amd_ext_ }
}

/// A dispatch packet of the kernel that a launch would name, for tests that write rings themselves.
pub(crate) fn packet(rig: &Rig, waves: u32, completion: u64) -> AqlPacket {
    packet_on(rig, 0, waves, completion)
}

/// The same for any GPU.
pub(crate) fn packet_on(rig: &Rig, gpu: usize, waves: u32, completion: u64) -> AqlPacket {
    let mut packet = AqlPacket([0; 16]);
    packet.set_header(PacketHeader::new(PacketType::KERNEL_DISPATCH, false, Fence::System, Fence::System));
    packet.0[0] |= 1 << 16;
    packet.0[1] = 64 | 1 << 16;
    packet.0[2] = 1;
    (packet.0[3], packet.0[4], packet.0[5]) = (64 * waves, 1, 1);
    let object = rig.kernel(gpu, "empty").object;
    (packet.0[8], packet.0[9]) = (object as u32, (object >> 32) as u32);
    packet.set_completion_signal(completion);
    packet
}

/// Writes a slot as an application does: the body, then the header with release order.
pub(crate) fn write(queue: &Queue, index: u64, packet: &AqlPacket) {
    // SAFETY: the queue lives; its base address is a ring of `capacity` packets.
    let base = unsafe { (*queue.raw()).base_address }.cast::<AqlPacket>();
    let slot = base.wrapping_add((index % u64::from(queue.capacity())) as usize);
    let mut invalid = *packet;
    invalid.set_header(PacketHeader::new(PacketType::INVALID, false, Fence::None, Fence::None));
    // SAFETY: the slot was reserved by the caller.
    unsafe { slot.write(invalid) };
    // SAFETY: aligned, in the ring, and everybody accesses the header atomically.
    let header = unsafe { AtomicU16::from_ptr(slot.cast()) };
    header.store(packet.header().0, Ordering::Release);
}

pub(crate) fn ring(rig: &Rig, queue: &Queue, index: u64) {
    let store = core(rig).hsa_signal_store_screlease_fn.unwrap();
    // SAFETY: the queue lives, and so does its doorbell.
    let doorbell = unsafe { (*queue.raw()).doorbell_signal };
    // SAFETY: likewise.
    unsafe { store(doorbell, index.cast_signed()) };
}

pub(crate) fn reserve(rig: &Rig, queue: &Queue, count: u64) -> u64 {
    let add = core(rig).hsa_queue_add_write_index_scacq_screl_fn.unwrap();
    // SAFETY: the queue lives.
    unsafe { add(queue.raw(), count) }
}

/// Writes packets as soon as there is room, and rings once.
pub(crate) fn submit(rig: &Rig, queue: &Queue, packets: &[AqlPacket]) {
    let count = packets.len() as u64;
    let first = reserve(rig, queue, count);
    let load = core(rig).hsa_queue_load_read_index_scacquire_fn.unwrap();
    let started = std::time::Instant::now();
    // SAFETY: the queue lives.
    while first + count > unsafe { load(queue.raw()) } + u64::from(queue.capacity()) {
        assert!(started.elapsed() < LIMIT, "the queue stays full");
        std::thread::yield_now();
    }
    (first..).zip(packets).for_each(|(index, packet)| write(queue, index, packet));
    ring(rig, queue, first + count - 1);
}

/// A queue that interception does not know: made and used through the runtime's own entries.
pub(crate) struct PlainQueue<'a> {
    rig: &'a Rig,
    queue: *mut hsa_queue_t,
}

impl<'a> PlainQueue<'a> {
    pub(crate) fn new(rig: &'a Rig) -> Self {
        let entries = rig.interceptor.hsa().table();
        let create = entries.core.hsa_queue_create_fn.unwrap();
        let (agent, kind, none) = (rig.gpu(0).agent(), HSA_QUEUE_TYPE_MULTI.0, std::ptr::null_mut());
        let mut queue = std::ptr::null_mut();
        // SAFETY: a GPU of the runtime; the result is ours.
        let status = unsafe { create(agent, 64, kind, None, none, u32::MAX, u32::MAX, &raw mut queue) };
        assert_eq!(status, HSA_STATUS_SUCCESS);
        let profile = entries.amd.hsa_amd_profiling_set_profiler_enabled_fn.unwrap();
        // SAFETY: the queue was just made.
        assert_eq!(unsafe { profile(queue, 1) }, HSA_STATUS_SUCCESS);
        Self { rig, queue }
    }

    /// Adds a packet, of fewer than it has places, and rings.
    pub(crate) fn submit(&self, packet: &AqlPacket) {
        let entries = &self.rig.interceptor.hsa().table().core;
        let add = entries.hsa_queue_add_write_index_scacq_screl_fn.unwrap();
        // SAFETY: the queue lives.
        let index = unsafe { add(self.queue, 1) };
        // SAFETY: likewise.
        let base = unsafe { (*self.queue).base_address }.cast::<AqlPacket>();
        // SAFETY: the reserved slot, which is not looked at before the doorbell.
        unsafe { base.wrapping_add(index as usize).write(*packet) };
        let store = entries.hsa_signal_store_screlease_fn.unwrap();
        // SAFETY: the queue lives.
        let doorbell = unsafe { (*self.queue).doorbell_signal };
        // SAFETY: the doorbell lives as long as its queue.
        unsafe { store(doorbell, index.cast_signed()) };
    }
}

impl Drop for PlainQueue<'_> {
    fn drop(&mut self) {
        let destroy = self.rig.interceptor.hsa().table().core.hsa_queue_destroy_fn.unwrap();
        // SAFETY: the queue is ours, and used no more.
        assert_eq!(unsafe { destroy(self.queue) }, HSA_STATUS_SUCCESS);
    }
}

/// A queue's own words, as devices see them.
pub(crate) fn queue_word(queue: &Queue, offset: usize) -> &AtomicU64 {
    let word = queue.raw().cast::<u8>().wrapping_add(offset).cast::<u64>();
    // SAFETY: the handle is the head of an `amd_queue_v2_t`, whose index words are accessed atomically.
    unsafe { AtomicU64::from_ptr(word) }
}

/// Reserves slots as a device does, and applications that know the layout: the index is moved in memory.
pub(crate) fn device_reserve(queue: &Queue, count: u64) -> u64 {
    queue_word(queue, offset_of!(amd_queue_v2_t, write_dispatch_id)).fetch_add(count, Ordering::AcqRel)
}

/// What a device does to ring: a plain store, to the signal's value or, by its kind, to where a doorbell signal points
/// (`amd_hsa_signal.h`; ROCm's device library, `hsa_signal_store`).
pub(crate) fn device_store(queue: &Queue, value: i64) {
    // SAFETY: the queue lives.
    let doorbell = unsafe { (*queue.raw()).doorbell_signal };
    let word = |address: usize| {
        // SAFETY: a signal's handle is its address; kind, value and target are aligned and accessed atomically.
        unsafe { AtomicI64::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }
    };
    let signal = doorbell.handle as usize;
    let mut target = signal + offset_of!(amd_signal_t, value);
    let kind = word(signal + offset_of!(amd_signal_t, kind)).load(Ordering::Relaxed);
    if kind == i64::from(AMD_SIGNAL_KIND_DOORBELL.0) {
        target = word(target).load(Ordering::Relaxed) as usize;
    }
    word(target).store(value, Ordering::Release);
}

/// The rig, lent to threads: they only use its thread-safe parts.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a>(pub(crate) &'a Rig);

// SAFETY: application, queues and interception are thread-safe; the table is only read.
unsafe impl Send for Shared<'_> {}
// SAFETY: likewise.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    pub(crate) fn get(self) -> &'a Rig {
        self.0
    }
}
