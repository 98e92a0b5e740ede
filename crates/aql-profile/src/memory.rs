//! Memory that packets and their data live in: always the caller's.
//!
//! Addresses are plain numbers that mean the same to the GPU and to this process. Nothing in this crate
//! dereferences them; [`Memory`] does.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::status::Status;

/// How a buffer is used (`aqlprofile_buffer_desc_flags_t`, the raw word).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BufferFlags(pub u32);

impl BufferFlags {
    /// Counter output: GPU and host, uncached on the device.
    pub const COUNTER_OUTPUT: Self = Self::new(true, MemoryHint::DEVICE_UNCACHED);
    /// Commands: GPU and host, device memory without coherence.
    pub const COMMANDS: Self = Self::new(true, MemoryHint::DEVICE_NON_COHERENT);
    /// The record that a trace's stop writes: GPU and host, host memory.
    pub const TRACE_CONTROL: Self = Self::new(true, MemoryHint::HOST);
    /// Trace data: GPU only.
    pub const TRACE_DATA: Self = Self::new(false, MemoryHint::DEVICE_NON_COHERENT);
    /// A code-object marker's commands: GPU and host.
    pub const MARKER: Self = Self::new(true, MemoryHint::NONE);

    /// Accessible by the GPU, and by the host if `host`.
    pub const fn new(host: bool, hint: MemoryHint) -> Self {
        Self(1 | (host as u32) << 1 | (hint.0 as u32) << 2)
    }

    /// Whether the GPU reads or writes it.
    pub const fn device_access(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the host reads or writes it directly.
    pub const fn host_access(self) -> bool {
        self.0 & 2 != 0
    }

    /// Where it had best lie.
    pub const fn hint(self) -> MemoryHint {
        MemoryHint((self.0 >> 2 & 0x3F) as u8)
    }
}

impl fmt::Debug for BufferFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (device, host) = (self.device_access(), self.host_access());
        write!(f, "BufferFlags(device {device}, host {host}, hint {})", self.hint().0)
    }
}

/// Where a buffer had best lie (`aqlprofile_memory_hint_t`), unknown values kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryHint(pub u8);

impl MemoryHint {
    /// No preference.
    pub const NONE: Self = Self(0);
    /// Host memory.
    pub const HOST: Self = Self(1);
    /// Device memory, uncached.
    pub const DEVICE_UNCACHED: Self = Self(2);
    /// Device memory, coherent.
    pub const DEVICE_COHERENT: Self = Self(3);
    /// Device memory, not coherent.
    pub const DEVICE_NON_COHERENT: Self = Self(4);
}

/// What a program asks the allocator for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationRequest {
    /// Size.
    pub bytes: u64,
    /// Use.
    pub flags: BufferFlags,
}

/// The caller's memory: upstream's allocation, deallocation and copy callbacks, and plain host access.
///
/// Addresses passed in always lie in a living allocation that this object made, and accesses stay inside it.
/// Output and control buffers must be handed out zeroed: parts of them are never written by anyone.
pub trait Memory: Send + Sync {
    /// Allocates, page-aligned, readable and writable as the flags say.
    ///
    /// # Errors
    /// The status that the program's maker shall see.
    fn allocate(&self, request: AllocationRequest) -> Result<u64, Status>;

    /// Frees an allocation.
    fn free(&self, address: u64);

    /// Copies into a buffer of any kind.
    fn copy_in(&self, address: u64, bytes: &[u8]);

    /// Copies out of a buffer of any kind.
    fn copy_out(&self, address: u64, into: &mut [u8]);

    /// Writes to a buffer with host access directly.
    fn store(&self, address: u64, bytes: &[u8]) {
        self.copy_in(address, bytes);
    }

    /// Writes a zero dword at each of `offsets` from `address`, in a buffer with host access.
    fn store_zeros(&self, address: u64, offsets: &[u64]) {
        for offset in offsets {
            self.store(address + offset, &[0; 4]);
        }
    }

    /// Reads a buffer with host access directly.
    fn load(&self, address: u64, into: &mut [u8]) {
        self.copy_out(address, into);
    }
}

/// An allocation that is freed when it is dropped.
///
/// Memory that the GPU may still write must not be freed: whoever gives up on a GPU forgets the instance that
/// holds it (`std::mem::forget`) and leaks on purpose.
pub struct Buffer {
    memory: Arc<dyn Memory>,
    address: u64,
    request: AllocationRequest,
}

impl Buffer {
    /// Allocates `bytes` bytes for the use that `flags` say.
    ///
    /// # Errors
    /// [`Error::Allocation`] with the allocator's status.
    pub fn allocate(memory: &Arc<dyn Memory>, bytes: u64, flags: BufferFlags) -> Result<Self, Error> {
        let request = AllocationRequest { bytes, flags };
        let address = memory.allocate(request).map_err(|status| Error::Allocation { request, status })?;
        Ok(Self { memory: Arc::clone(memory), address, request })
    }

    /// Where it lies.
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Its size.
    pub const fn bytes(&self) -> u64 {
        self.request.bytes
    }

    /// Its use.
    pub const fn flags(&self) -> BufferFlags {
        self.request.flags
    }

    /// The memory it came from.
    pub fn memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.memory.free(self.address);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:#x} + {:#x}, {:?})", self.address, self.request.bytes, self.request.flags)
    }
}
