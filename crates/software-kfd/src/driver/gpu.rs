//! One GPU: its node, the device of the model behind it, its memory's state and its doorbells.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wavescope_software_gpu::{Device, DeviceOptions};

use super::address_map::AddressMap;
use super::backing::Backing;
use super::error::Error;
use super::host::GpuHost;
use super::topology::Node;
use super::watch::Watch;
use crate::errno::Errno;

/// A GPU.
pub(super) struct Gpu {
    /// Index among the process's GPUs.
    pub(super) index: usize,
    /// What its topology node says.
    pub(super) node: Node,
    /// The model.
    pub(super) device: Device,
    /// What the model sees of the world.
    pub(super) host: Arc<GpuHost>,
    /// Video memory in use, in bytes.
    pub(super) vram_used: Rc<Cell<u64>>,
    /// Its doorbells.
    pub(super) doorbells: Doorbells,
}

impl Gpu {
    pub(super) fn new(
        node: Node,
        map: &Arc<AddressMap>,
        watch: &Arc<Watch>,
        backing: &Backing,
        options: DeviceOptions,
    ) -> Result<Self, Error> {
        let index = node.agent.id.0 as usize;
        let doorbells = Doorbells::new(backing).map_err(|Errno(number)| Error::Backing {
            call: "mmap",
            source: std::io::Error::from_raw_os_error(number),
        })?;
        let (map, watch) = (Arc::clone(map), Arc::clone(watch));
        let host = Arc::new(GpuHost::new(index, node.agent.gpu_id, map, watch, doorbells.range()));
        let device = Device::new(node.device_config()?, Arc::clone(&host) as _, options)?;
        Ok(Self { index, node, device, host, vram_used: Rc::default(), doorbells })
    }

    /// The id by which the runtime names it.
    pub(super) fn id(&self) -> u32 {
        self.node.agent.gpu_id
    }

    /// All of its video memory.
    pub(super) fn vram_bytes(&self) -> u64 {
        self.node.agent.vram_bytes
    }

    /// Video memory that is free, as the kernel rounds it (`amdgpu_amdkfd_get_available_memory`).
    pub(super) fn vram_available(&self) -> u64 {
        /// `VRAM_AVAILABLITY_ALIGN`.
        const GRANULARITY: u64 = 1 << 21;
        self.vram_bytes().saturating_sub(self.vram_used.get()) / GRANULARITY * GRANULARITY
    }
}

/// Doorbells of one process on one GPU: 1024 words of 64 bits (`kfd_doorbell_process_slice`).
pub(super) struct Doorbells {
    offset: u64,
    /// Where the driver itself sees them.
    address: u64,
    taken: RefCell<[bool; Self::COUNT]>,
}

impl Doorbells {
    const COUNT: usize = 1024;
    const WORD_BYTES: u64 = 8;

    fn new(backing: &Backing) -> Result<Self, Errno> {
        let bytes = Self::COUNT as u64 * Self::WORD_BYTES;
        // The runtime finds the page by the offset's low bits.
        let offset = backing.take(bytes, bytes)?;
        let address = backing.map(offset, bytes)?;
        Ok(Self { offset, address, taken: RefCell::new([false; Self::COUNT]) })
    }

    /// Length of the doorbells of a process.
    pub(super) fn bytes(&self) -> u64 {
        Self::COUNT as u64 * Self::WORD_BYTES
    }

    /// Where they lie in the memory file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the driver sees them.
    fn range(&self) -> Range<u64> {
        self.address..self.address + self.bytes()
    }

    /// Takes a doorbell and presets it.
    pub(super) fn take(&self) -> Result<Doorbell, Errno> {
        let mut taken = self.taken.borrow_mut();
        let index = taken.iter().position(|taken| !taken).ok_or(Errno(libc::ENOSPC))?;
        taken[index] = true;
        let at = index as u64 * Self::WORD_BYTES;
        let doorbell = Doorbell { index, offset: self.offset + at, address: self.address + at };
        doorbell.word().store(Doorbell::PRESET, Ordering::Release);
        Ok(doorbell)
    }

    /// Gives a doorbell back.
    pub(super) fn release(&self, doorbell: Doorbell) {
        self.taken.borrow_mut()[doorbell.index] = false;
    }
}

/// One doorbell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doorbell {
    index: usize,
    /// Where it lies in the memory file.
    pub(super) offset: u64,
    /// Where the driver sees it.
    pub(super) address: u64,
}

impl Doorbell {
    /// Value of a doorbell that was never rung.
    pub(super) const PRESET: u64 = u64::MAX;

    /// The word itself.
    pub(super) fn word(&self) -> &'static AtomicU64 {
        // SAFETY: `Doorbells` mapped the page that `address` lies in and never unmaps it; the word is aligned, and the
        // application, too, writes it in one piece, as hardware demands.
        unsafe { AtomicU64::from_ptr(self.address as *mut u64) }
    }
}
