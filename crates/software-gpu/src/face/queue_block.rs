//! A queue's memory: `amd_queue_v2_t`, whose head is the `hsa_queue_t` that applications hold, and the ring.
//!
//! Everything that several parties touch is accessed through atomics at the offsets of `amd_hsa_queue.h`.

use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use hsa_sys::{
    AMD_QUEUE_PROPERTIES_ENABLE_PROFILING, AMD_QUEUE_PROPERTIES_IS_PTR64, HSA_QUEUE_FEATURE_KERNEL_DISPATCH,
    amd_queue_v2_t, hsa_queue_t, hsa_queue_type32_t, hsa_signal_t,
};
use wavescope_core::{AqlPacket, PacketType};

use super::agents::Gpu;
use super::allocations::Allocations;
use super::error::Outcome;

/// Offsets that the architecture fixes: applications read and write the indices there themselves.
const WRITE_INDEX: usize = 0x38;
const READ_INDEX: usize = 0x80;
const _: () = assert!(offset_of!(amd_queue_v2_t, write_dispatch_id) == WRITE_INDEX);
const _: () = assert!(offset_of!(amd_queue_v2_t, read_dispatch_id) == READ_INDEX);
const _: () = assert!(offset_of!(amd_queue_v2_t, hsa_queue) == 0);

/// The doorbell's word lies behind the structure, past the pointer to the runtime's object that ROCr keeps there.
const DOORBELL_WORD: usize = size_of::<amd_queue_v2_t>() + 64;

const BLOCK_BYTES: u64 = DOORBELL_WORD as u64 + 64;

/// What an invalid packet looks like that the runtime, not the application, left behind: ROCr sets BARRIER too.
const CONSUMED: u16 = PacketType::INVALID.0 as u16 | 1 << 8;

/// What the device of a queue is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) compute_units: u32,
    pub(super) waves_per_cu: u32,
}

impl Limits {
    pub(super) fn of(gpu: &Gpu) -> Self {
        let agent = &gpu.agent;
        Self { compute_units: agent.compute_units, waves_per_cu: agent.simds_per_cu * agent.waves_per_simd }
    }
}

/// The memory of one queue; freed when dropped.
pub(super) struct QueueBlock {
    memory: Arc<Allocations>,
    block: u64,
    ring: u64,
    packets: u32,
}

impl QueueBlock {
    /// Allocates a queue of `packets` packets, a power of two, all INVALID.
    pub(super) fn allocate(memory: &Arc<Allocations>, packets: u32) -> Outcome<Self> {
        let block = memory.allocate_internal(BLOCK_BYTES)?;
        let ring = match memory.allocate_internal(u64::from(packets) * size_of::<AqlPacket>() as u64) {
            Ok(ring) => ring,
            Err(failure) => {
                memory.free(block)?;
                return Err(failure);
            }
        };
        let queue = Self { memory: Arc::clone(memory), block, ring, packets };
        for index in 0..u64::from(packets) {
            queue.header(index).store(u16::from(PacketType::INVALID.0), Ordering::Relaxed);
        }
        queue.doorbell_word().store(u64::MAX, Ordering::Relaxed);
        Ok(queue)
    }

    /// Fills in what an application reads. Call it before the queue is handed out.
    pub(super) fn describe(&self, id: u64, kind: hsa_queue_type32_t, doorbell: hsa_signal_t, limits: Limits) {
        let mut queue = amd_queue_v2_t::zeroed();
        queue.hsa_queue = hsa_queue_t {
            type_: kind,
            features: HSA_QUEUE_FEATURE_KERNEL_DISPATCH.0,
            base_address: std::ptr::with_exposed_provenance_mut(self.ring as usize),
            doorbell_signal: doorbell,
            size: self.packets,
            reserved1: 0,
            id,
        };
        // Upper halves of the apertures that the kernel driver gives (kfd_flat_memory.c).
        queue.group_segment_aperture_base_hi = 0x0001_0000;
        queue.private_segment_aperture_base_hi = 0x0002_0000;
        queue.max_cu_id = limits.compute_units - 1;
        queue.max_wave_id = limits.waves_per_cu - 1;
        queue.read_dispatch_id_field_base_byte_offset = READ_INDEX as u32;
        queue.queue_properties = AMD_QUEUE_PROPERTIES_IS_PTR64.0.cast_unsigned();
        // SAFETY: the block was allocated with at least this size and page alignment, and nobody else knows it yet.
        unsafe { std::ptr::with_exposed_provenance_mut::<amd_queue_v2_t>(self.block as usize).write(queue) };
    }

    /// What the application holds.
    pub(super) fn pointer(&self) -> *mut hsa_queue_t {
        std::ptr::with_exposed_provenance_mut(self.block as usize)
    }

    pub(super) fn address(&self) -> u64 {
        self.block
    }

    pub(super) fn ring_address(&self) -> u64 {
        self.ring
    }

    pub(super) fn packets(&self) -> u32 {
        self.packets
    }

    pub(super) fn write_index_address(&self) -> u64 {
        self.block + WRITE_INDEX as u64
    }

    pub(super) fn read_index_address(&self) -> u64 {
        self.block + READ_INDEX as u64
    }

    pub(super) fn write_index(&self) -> &AtomicU64 {
        self.word(WRITE_INDEX)
    }

    pub(super) fn read_index(&self) -> &AtomicU64 {
        self.word(READ_INDEX)
    }

    pub(super) fn doorbell_address(&self) -> u64 {
        self.block + DOORBELL_WORD as u64
    }

    /// The word that the doorbell signal of a hardware queue points at.
    pub(super) fn doorbell_word(&self) -> &AtomicU64 {
        self.word(DOORBELL_WORD)
    }

    /// Switches the profiling bit that the packet processor looks at.
    pub(super) fn set_profiling(&self, enabled: bool) {
        const BIT: u32 = AMD_QUEUE_PROPERTIES_ENABLE_PROFILING.0.cast_unsigned();
        let properties: &AtomicU32 = self.word(offset_of!(amd_queue_v2_t, queue_properties));
        if enabled {
            properties.fetch_or(BIT, Ordering::Relaxed);
        } else {
            properties.fetch_and(!BIT, Ordering::Relaxed);
        }
    }

    /// The header of the packet with this index.
    pub(super) fn header(&self, index: u64) -> &AtomicU16 {
        let slot = self.ring + self.slot(index) * size_of::<AqlPacket>() as u64;
        // SAFETY: the slot lies in the ring, which lives as long as `self`; slots are aligned; everybody accesses
        // headers of a running queue as atomic words.
        unsafe { AtomicU16::from_ptr(std::ptr::with_exposed_provenance_mut(slot as usize)) }
    }

    /// Whether the producer has finished this packet.
    pub(super) fn is_valid(&self, index: u64) -> bool {
        let header = self.header(index).load(Ordering::Acquire);
        header as u8 != PacketType::INVALID.0
    }

    /// Copies a finished packet out.
    pub(super) fn load(&self, index: u64) -> AqlPacket {
        AqlPacket(std::array::from_fn(|dword| self.dword(index, dword).load(Ordering::Relaxed)))
    }

    /// Writes all of a packet but its first dword, whose type stays INVALID.
    pub(super) fn store_body(&self, index: u64, packet: &AqlPacket) {
        for (dword, &value) in packet.0.iter().enumerate().skip(1) {
            self.dword(index, dword).store(value, Ordering::Relaxed);
        }
    }

    /// Makes a packet valid whose body was stored.
    pub(super) fn publish(&self, index: u64, packet: &AqlPacket) {
        self.dword(index, 0).store(packet.0[0], Ordering::Release);
    }

    /// Gives the place back to the producer.
    pub(super) fn invalidate(&self, index: u64) {
        self.header(index).store(CONSUMED, Ordering::Release);
    }

    /// Address of a packet.
    pub(super) fn packet_pointer(&self, index: u64) -> *const AqlPacket {
        let slot = self.ring + self.slot(index) * size_of::<AqlPacket>() as u64;
        std::ptr::with_exposed_provenance(slot as usize)
    }

    /// Place of a packet in the ring.
    pub(super) fn slot(&self, index: u64) -> u64 {
        index & u64::from(self.packets - 1)
    }

    fn dword(&self, index: u64, dword: usize) -> &AtomicU32 {
        let slot = self.ring + self.slot(index) * size_of::<AqlPacket>() as u64;
        let address = slot as usize + dword * size_of::<u32>();
        // SAFETY: `dword` is below 16 at every caller, so the word lies in the ring, which lives as long as `self`
        // and is aligned; producers and consumers hand packets over through the header.
        unsafe { AtomicU32::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }
    }

    /// The word at `offset` of the block.
    fn word<W: BlockWord>(&self, offset: usize) -> &W {
        let word = std::ptr::with_exposed_provenance::<W>(self.block as usize + offset);
        // SAFETY: `offset` is that of a field of `amd_queue_v2_t` of the word's size, or of the doorbell word behind
        // it; the block has that size, is page-aligned and lives as long as `self`. `BlockWord` is implemented for
        // atomics only.
        unsafe { &*word }
    }
}

/// Atomic words of the block.
trait BlockWord {}
impl BlockWord for AtomicU32 {}
impl BlockWord for AtomicU64 {}

impl Drop for QueueBlock {
    fn drop(&mut self) {
        for base in [self.ring, self.block] {
            if self.memory.free(base).is_err() {
                tracing::error!(base, "queue memory is not known to the runtime that allocated it");
            }
        }
    }
}

/// The write index of a queue handle, which may be a tool's own `amd_queue_v2_t`.
///
/// # Safety
/// `queue` is a live queue as HSA demands: the head of an `amd_queue_v2_t`.
pub(super) unsafe fn write_index<'a>(queue: *const hsa_queue_t) -> &'a AtomicU64 {
    let word = queue.wrapping_byte_add(WRITE_INDEX).cast::<AtomicU64>();
    // SAFETY: by the precondition the word is a field of a live, aligned structure; all parties use atomics.
    unsafe { &*word }
}

/// The read index of a queue handle.
///
/// # Safety
/// As for [`write_index`].
pub(super) unsafe fn read_index<'a>(queue: *const hsa_queue_t) -> &'a AtomicU64 {
    let word = queue.wrapping_byte_add(READ_INDEX).cast::<AtomicU64>();
    // SAFETY: by the precondition the word is a field of a live, aligned structure; all parties use atomics.
    unsafe { &*word }
}
