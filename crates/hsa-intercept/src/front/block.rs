//! The memory of a front: `amd_queue_v2_t` with the runtime's pointer behind it, and the application's ring.

use std::mem::offset_of;
use std::ptr::NonNull;
// The application, and through it the GPU, take part in these words.
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use hsa_sys::{amd_queue_v2_t, hsa_queue_t, hsa_signal_t};
use wavescope_core::{AgentId, AqlPacket, PacketType};
use wavescope_hsa::{Hsa, Memory, MemoryKind};

use crate::device::Signal;

const WRITE_INDEX: usize = offset_of!(amd_queue_v2_t, write_dispatch_id);
const READ_INDEX: usize = offset_of!(amd_queue_v2_t, read_dispatch_id);
const _: () = assert!(WRITE_INDEX == 0x38 && READ_INDEX == 0x80, "where applications look");

/// The runtime finds its object through an unchecked pointer behind the structure (ROCr `core/inc/queue.h`).
const BLOCK_BYTES: usize = size_of::<amd_queue_v2_t>() + size_of::<usize>();

/// Header of a slot that waits for a packet.
const INVALID: u16 = PacketType::INVALID.0 as u16;

/// The block and the ring of one front.
#[derive(Debug)]
pub(crate) struct Block {
    block: Memory,
    ring: Memory,
    packets: u64,
}

impl Block {
    /// Makes a front of `packets` slots for the runtime's queue `hardware`, with `doorbell` as its doorbell.
    ///
    /// # Safety
    /// `hardware` is a queue of the runtime, with the runtime's pointer behind its structure.
    ///
    /// # Errors
    /// No memory.
    pub(crate) unsafe fn new(
        hsa: &Hsa,
        agent: AgentId,
        hardware: NonNull<hsa_queue_t>,
        packets: u32,
        doorbell: Signal,
    ) -> Result<Self, wavescope_hsa::Error> {
        let block = Memory::allocate(hsa, agent, MemoryKind::Host, BLOCK_BYTES)?;
        let ring_bytes = packets as usize * size_of::<AqlPacket>();
        let ring = Memory::allocate(hsa, agent, MemoryKind::Host, ring_bytes)?;
        let target = block.address().cast::<u8>();
        // SAFETY: the source has `BLOCK_BYTES` bytes by this function's contract, the target was allocated with them.
        unsafe { target.copy_from_nonoverlapping(hardware.cast(), BLOCK_BYTES) };
        let mut queue = target.cast::<amd_queue_v2_t>();
        // SAFETY: the block was just filled with a queue, is aligned to a page, and nobody else knows it.
        let queue = unsafe { queue.as_mut() };
        queue.hsa_queue.base_address = ring.address().as_ptr();
        queue.hsa_queue.doorbell_signal = hsa_signal_t { handle: doorbell.0 };
        queue.hsa_queue.size = packets;
        (queue.write_dispatch_id, queue.read_dispatch_id) = (0, 0);
        let front = Self { block, ring, packets: u64::from(packets) };
        (0..front.packets).for_each(|index| front.header(index).store(INVALID, Ordering::Relaxed));
        Ok(front)
    }

    /// What the application holds.
    pub(crate) fn pointer(&self) -> NonNull<hsa_queue_t> {
        self.block.address().cast()
    }

    /// Slots of the ring.
    pub(crate) fn packets(&self) -> u32 {
        self.packets as u32
    }

    pub(crate) fn write_index(&self) -> &AtomicU64 {
        self.word(WRITE_INDEX)
    }

    pub(crate) fn read_index(&self) -> &AtomicU64 {
        self.word(READ_INDEX)
    }

    /// Whether the packet at `index` is there.
    pub(crate) fn is_written(&self, index: u64) -> bool {
        (self.header(index).load(Ordering::Acquire) & 0xFF) != INVALID
    }

    /// Moves the packets from `first` on out of the ring, up to `until` or the first slot that is not written.
    pub(crate) fn take(&self, first: u64, until: u64, into: &mut Vec<AqlPacket>) {
        for index in first..until {
            if !self.is_written(index) {
                break;
            }
            // SAFETY: the slot lies in the ring, and between header and read index its producer leaves it alone.
            into.push(unsafe { self.slot(index).read() });
            // Free for the next lap: INVALID first, then the index that lets producers come.
            self.header(index).store(INVALID, Ordering::Relaxed);
        }
        if !into.is_empty() {
            self.read_index().store(first + into.len() as u64, Ordering::Release);
        }
    }

    fn slot(&self, index: u64) -> NonNull<AqlPacket> {
        let slot = (index % self.packets) as usize;
        // SAFETY: the ring has `packets` slots.
        unsafe { self.ring.address().cast::<AqlPacket>().add(slot) }
    }

    fn header(&self, index: u64) -> &AtomicU16 {
        // SAFETY: aligned, and alive as long as the ring; producers store it atomically.
        unsafe { AtomicU16::from_ptr(self.slot(index).cast().as_ptr()) }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        let word = self.block.address().as_ptr().cast::<u8>().wrapping_add(offset);
        // SAFETY: both offsets lie in the block and are multiples of 8; everybody accesses these words atomically.
        unsafe { AtomicU64::from_ptr(word.cast()) }
    }
}
