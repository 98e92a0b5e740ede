//! Memory of the GPUs: allocations, their mapping, sharing as exported buffers, GEM objects.
//!
//! A [`Buffer`] is a range of the memory file with everything that keeps it alive: the runtime's handle, descriptors
//! of an export, GEM handles, mappings by GEM. The last one to go gives the memory back.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::address_map::{AddressMap, GpuSet, Range};
use super::backing::{Backing, PAGE, reserve_at};
use super::gpu::Gpu;
use crate::abi::kfd::memory_flags as flag;
use crate::errno::{Answer, Errno};
use crate::fds::{self, File};

/// What a buffer is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Memory of the GPU.
    Video,
    /// System memory from the driver.
    System,
    /// Memory of the application, registered.
    User,
    /// The GPU's doorbells.
    Doorbells,
    /// The page with the registers that flush host-written data.
    Registers,
}

impl Kind {
    /// The one kind that allocation flags name.
    fn from_flags(flags: u32) -> Result<Self, Errno> {
        let kinds = [
            (flag::VRAM, Self::Video),
            (flag::GTT, Self::System),
            (flag::USERPTR, Self::User),
            (flag::DOORBELL, Self::Doorbells),
            (flag::MMIO_REMAP, Self::Registers),
        ];
        let mut named = kinds.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, kind)| *kind);
        match (named.next(), named.next()) {
            (Some(kind), None) => Ok(kind),
            _ => Err(Errno(libc::EINVAL)),
        }
    }
}

/// A range of the memory file, or of the application's memory.
#[derive(Debug)]
pub(super) struct Buffer {
    backing: Rc<Backing>,
    /// Video memory in use on the buffer's GPU.
    vram_used: Rc<Cell<u64>>,
    /// Where it lies in the memory file.
    pub(super) offset: u64,
    /// Length.
    pub(super) bytes: u64,
    /// The GPU that it was allocated on.
    pub(super) gpu: usize,
    /// Flags of the allocation.
    pub(super) flags: u32,
    kind: Kind,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.kind == Kind::Video {
            self.vram_used.set(self.vram_used.get() - self.bytes);
        }
        if matches!(self.kind, Kind::Video | Kind::System | Kind::Registers) {
            self.backing.release(self.offset, self.bytes);
        }
    }
}

/// What the runtime holds a handle on.
#[derive(Debug)]
struct Allocation {
    buffer: Rc<Buffer>,
    va: u64,
    gpus: GpuSet,
    /// The driver put the buffer at `va`, so it takes it away.
    mapped_here: bool,
}

/// A request for memory, as `kfd_ioctl_alloc_memory_of_gpu_args` puts it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Where the GPUs will see it; 0: nowhere yet.
    pub(super) va: u64,
    /// Length.
    pub(super) bytes: u64,
    /// Where user memory lies for the CPU.
    pub(super) cpu_address: u64,
    /// Kind and access.
    pub(super) flags: u32,
}

/// All memory of the process's GPUs.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) backing: Rc<Backing>,
    pub(super) map: Arc<AddressMap>,
    allocations: HashMap<u64, Allocation>,
    exports: HashMap<u16, Rc<Buffer>>,
    next_handle: u32,
}

impl Memory {
    pub(super) fn new(backing: Rc<Backing>, map: Arc<AddressMap>) -> Self {
        let (allocations, exports) = (HashMap::new(), HashMap::new());
        Self { backing, map, allocations, exports, next_handle: 1 }
    }

    /// Allocates; returns the handle and the offset at which the runtime maps the memory for the CPU.
    pub(super) fn allocate(&mut self, gpu: &Gpu, request: Request) -> Result<(u64, u64), Errno> {
        self.sweep();
        let kind = Kind::from_flags(request.flags)?;
        let bytes = request.bytes.checked_next_multiple_of(PAGE).filter(|&bytes| bytes > 0);
        let bytes = bytes.ok_or(Errno(libc::EINVAL))?;
        let offset = match kind {
            Kind::Video => {
                let used = gpu.vram_used.get().checked_add(bytes).ok_or(Errno(libc::ENOMEM))?;
                if used > gpu.vram_bytes() || gpu.device.allocation_fails() {
                    return Err(Errno(libc::ENOMEM));
                }
                let offset = self.backing.take(bytes, PAGE)?;
                gpu.vram_used.set(used);
                offset
            }
            Kind::System if gpu.device.allocation_fails() => return Err(Errno(libc::ENOMEM)),
            Kind::System | Kind::Registers => self.backing.take(bytes, PAGE)?,
            // GPU addresses are CPU addresses: user memory is seen where it is or not at all.
            Kind::User if request.va != request.cpu_address => return Err(Errno(libc::EINVAL)),
            Kind::User => request.cpu_address,
            Kind::Doorbells if bytes != gpu.doorbells.bytes() => return Err(Errno(libc::EINVAL)),
            Kind::Doorbells => gpu.doorbells.offset(),
        };
        let buffer = Rc::new(Buffer {
            backing: Rc::clone(&self.backing),
            vram_used: Rc::clone(&gpu.vram_used),
            offset,
            bytes,
            gpu: gpu.index,
            flags: request.flags,
            kind,
        });
        Ok((self.hold(gpu, buffer, request.va), offset))
    }

    fn hold(&mut self, gpu: &Gpu, buffer: Rc<Buffer>, va: u64) -> u64 {
        let handle = u64::from(gpu.id()) << 32 | u64::from(self.next_handle);
        self.next_handle += 1;
        self.allocations.insert(handle, Allocation { buffer, va, gpus: 0, mapped_here: false });
        handle
    }

    /// Gives a handle back. As the kernel, refuses one that is still mapped to a GPU.
    pub(super) fn free(&mut self, handle: u64) -> Answer {
        if self.allocation(handle)?.gpus != 0 {
            return Err(Errno(libc::EBUSY));
        }
        self.allocations.remove(&handle);
        Ok(())
    }

    /// Lets one more GPU see an allocation.
    pub(super) fn map_to(&mut self, handle: u64, gpu: usize) -> Answer {
        let allocation = self.allocations.get_mut(&handle).ok_or(Errno(libc::EINVAL))?;
        if allocation.va == 0 {
            return Err(Errno(libc::EINVAL));
        }
        let hidden = allocation.buffer.kind == Kind::Video && allocation.buffer.flags & flag::PUBLIC == 0;
        if hidden && !allocation.mapped_here {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let Buffer { offset, bytes, .. } = *allocation.buffer;
            self.backing.map_at(allocation.va, offset, bytes, protection)?;
            allocation.mapped_here = true;
        }
        allocation.gpus |= 1 << gpu;
        self.map.insert(allocation.range());
        Ok(())
    }

    /// Hides an allocation from one GPU.
    pub(super) fn unmap_from(&mut self, handle: u64, gpu: usize) -> Answer {
        let allocation = self.allocations.get_mut(&handle).ok_or(Errno(libc::EINVAL))?;
        if allocation.gpus >> gpu & 1 == 0 {
            return Ok(());
        }
        allocation.gpus &= !(1 << gpu);
        if allocation.gpus != 0 {
            self.map.insert(allocation.range());
            return Ok(());
        }
        self.map.remove(allocation.va);
        if std::mem::take(&mut allocation.mapped_here) {
            reserve_at(allocation.va, allocation.buffer.bytes)?;
        }
        Ok(())
    }

    fn allocation(&self, handle: u64) -> Result<&Allocation, Errno> {
        self.allocations.get(&handle).ok_or(Errno(libc::EINVAL))
    }

    /// Exports an allocation: a descriptor whose size is the buffer's.
    pub(super) fn export(&mut self, handle: u64, close_on_exec: bool) -> Result<i32, Errno> {
        let buffer = Rc::clone(&self.allocation(handle)?.buffer);
        self.export_buffer(buffer, close_on_exec)
    }

    /// Exports a buffer.
    pub(super) fn export_buffer(&mut self, buffer: Rc<Buffer>, close_on_exec: bool) -> Result<i32, Errno> {
        if !matches!(buffer.kind, Kind::Video | Kind::System) {
            return Err(Errno(libc::EINVAL));
        }
        self.sweep();
        let free = |slot: &u16| !self.exports.contains_key(slot);
        let slot = (0..fds::DMABUF_LIMIT as u16).find(free).ok_or(Errno(libc::EMFILE))?;
        let fd = self.backing.duplicate(close_on_exec)?;
        fds::set_dmabuf_bytes(slot, buffer.bytes);
        fds::insert(fd, File::DmaBuf(slot));
        self.exports.insert(slot, buffer);
        Ok(fd)
    }

    /// The buffer behind a descriptor.
    pub(super) fn exported(&self, fd: i32) -> Result<Rc<Buffer>, Errno> {
        match fds::get_certain(fd) {
            Some(File::DmaBuf(slot)) => self.exports.get(&slot).map(Rc::clone).ok_or(Errno(libc::EINVAL)),
            _ => Err(Errno(libc::EINVAL)),
        }
    }

    /// Makes a handle for an exported buffer.
    pub(super) fn import(&mut self, gpu: &Gpu, fd: i32, va: u64) -> Result<u64, Errno> {
        let buffer = self.exported(fd)?;
        Ok(self.hold(gpu, buffer, va))
    }

    /// Drops exports whose last descriptor was closed.
    pub(super) fn sweep(&mut self) {
        self.exports.retain(|&slot, _| !fds::dmabuf_is_closed(slot));
    }
}

impl Allocation {
    fn range(&self) -> Range {
        let writable = self.buffer.flags & flag::WRITABLE != 0;
        Range { base: self.va, end: self.va + self.buffer.bytes, gpus: self.gpus, writable }
    }
}
