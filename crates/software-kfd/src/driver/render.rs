//! The requests of a render node (`/dev/dri/renderD*`).

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::Driver;
use super::address_map::{GpuSet, Range};
use super::backing::reserve_at;
use super::caller::{Argument, write_array};
use super::clock;
use super::gpu::Gpu;
use super::memory::{Buffer, Memory};
use crate::abi::drm::*;
use crate::abi::request;
use crate::errno::{Answer, Errno};

/// Version of the amdgpu driver that is played.
const DRIVER_VERSION: (i32, i32) = (3, 64);
const DRIVER_NAME: &[u8] = b"amdgpu";
const DRIVER_DATE: &[u8] = b"20150101";
const DRIVER_DESCRIPTION: &[u8] = b"AMD GPU";

/// `DRM_CLOEXEC`.
const CLOSE_ON_EXEC: u32 = libc::O_CLOEXEC as u32;

/// `AMDGPU_VM_PAGE_READABLE`, `_WRITEABLE`.
const READABLE: u32 = 1 << 1;
const WRITEABLE: u32 = 1 << 2;

/// GPU addresses below the 47-bit hole, and above it (`AMDGPU_GMC_HOLE_START`, `_END`).
const VA: (u64, u64) = (1 << 21, 1 << 47);
const HIGH_VA: (u64, u64) = (0xFFFF_8000_0000_0000, 0xFFFF_FFFF_FFFF_F000);

/// A buffer that GEM put at an address.
struct Mapping {
    buffer: Rc<Buffer>,
    bytes: u64,
    gpus: GpuSet,
    writable: bool,
}

/// GEM objects and their mappings.
#[derive(Default)]
pub(super) struct Gem {
    /// By GPU and handle.
    handles: HashMap<(usize, u32), Rc<Buffer>>,
    mappings: BTreeMap<u64, Mapping>,
    last_handle: u32,
}

impl Driver {
    /// Answers one request to the render node of GPU `index`.
    pub(super) fn render(&mut self, index: usize, code: u32, address: u64) -> Answer {
        if request::kind(code) != request::DRM {
            return Err(Errno(libc::ENOTTY));
        }
        let Self { gpus, memory, gem, .. } = self;
        let gpu = gpus.get(index).ok_or(Errno(libc::ENODEV))?;
        let argument = Argument::new(code, address);
        match request::number(code) {
            number::VERSION => argument.update(version),
            number::GET_CLIENT => argument.update(|args: &mut Client| {
                args.authenticated = 1;
                Ok(())
            }),
            number::INFO => argument.update(|args: &mut Info| info(gpu, args)),
            number::GEM_CLOSE => argument.update(|args: &mut GemClose| gem.close(index, args.handle)),
            number::PRIME_FD_TO_HANDLE => argument.update(|args: &mut Prime| {
                args.handle = gem.handle_of(index, memory.exported(args.fd)?);
                Ok(())
            }),
            number::PRIME_HANDLE_TO_FD => argument.update(|args: &mut Prime| {
                let buffer = Rc::clone(gem.buffer(index, args.handle)?);
                args.fd = memory.export_buffer(buffer, args.flags & CLOSE_ON_EXEC != 0)?;
                Ok(())
            }),
            number::GEM_MMAP => argument.update(|args: &mut GemMmap| {
                args.handle_or_offset = gem.buffer(index, args.handle_or_offset as u32)?.offset;
                Ok(())
            }),
            number::GEM_VA => argument.update(|args: &mut GemVa| gem.map_or_unmap(index, memory, args)),
            _ => Err(Errno(libc::ENOTTY)),
        }
    }

    /// The GPU whose render node has this minor number.
    pub(super) fn render_node(&self, minor: u32) -> Option<usize> {
        self.gpus.iter().position(|gpu| gpu.node.render_minor == minor)
    }
}

impl Gem {
    fn buffer(&self, gpu: usize, handle: u32) -> Result<&Rc<Buffer>, Errno> {
        self.handles.get(&(gpu, handle)).ok_or(Errno(libc::ENOENT))
    }

    /// The handle of a buffer on a GPU: always the same while it is open.
    fn handle_of(&mut self, gpu: usize, buffer: Rc<Buffer>) -> u32 {
        let known = self.handles.iter().find(|((on, _), known)| *on == gpu && Rc::ptr_eq(known, &buffer));
        if let Some(((_, handle), _)) = known {
            return *handle;
        }
        self.last_handle += 1;
        self.handles.insert((gpu, self.last_handle), buffer);
        self.last_handle
    }

    fn close(&mut self, gpu: usize, handle: u32) -> Answer {
        self.handles.remove(&(gpu, handle)).map(drop).ok_or(Errno(libc::EINVAL))
    }

    fn map_or_unmap(&mut self, gpu: usize, memory: &Memory, args: &GemVa) -> Answer {
        match args.operation {
            va_operation::MAP => self.map(gpu, memory, args),
            va_operation::REPLACE => {
                self.clear(gpu, memory, args.va, args.bytes)?;
                self.map(gpu, memory, args)
            }
            va_operation::UNMAP if self.mappings.contains_key(&args.va) => self.unmap(gpu, memory, args.va),
            va_operation::UNMAP => Err(Errno(libc::ENOENT)),
            va_operation::CLEAR => self.clear(gpu, memory, args.va, args.bytes),
            _ => Err(Errno(libc::EINVAL)),
        }
    }

    fn map(&mut self, gpu: usize, memory: &Memory, args: &GemVa) -> Answer {
        let buffer = Rc::clone(self.buffer(gpu, args.handle)?);
        let end = args.offset.checked_add(args.bytes);
        if args.bytes == 0 || args.va == 0 || end.is_none_or(|end| end > buffer.bytes) {
            return Err(Errno(libc::EINVAL));
        }
        let writable = args.flags & WRITEABLE != 0;
        match self.mappings.get_mut(&args.va) {
            // A further GPU sees the same memory at the same place.
            Some(mapping) if Rc::ptr_eq(&mapping.buffer, &buffer) && mapping.bytes == args.bytes => {
                mapping.gpus |= 1 << gpu;
                mapping.writable |= writable;
            }
            Some(_) => return Err(Errno(libc::EINVAL)),
            None => {
                let mut protection = libc::PROT_NONE;
                for (bit, access) in [(READABLE, libc::PROT_READ), (WRITEABLE, libc::PROT_WRITE)] {
                    protection |= if args.flags & bit != 0 { access } else { 0 };
                }
                memory.backing.map_at(args.va, buffer.offset + args.offset, args.bytes, protection)?;
                let mapping = Mapping { buffer, bytes: args.bytes, gpus: 1 << gpu, writable };
                self.mappings.insert(args.va, mapping);
            }
        }
        self.publish(memory, args.va);
        Ok(())
    }

    fn unmap(&mut self, gpu: usize, memory: &Memory, va: u64) -> Answer {
        let Some(mapping) = self.mappings.get_mut(&va) else { return Ok(()) };
        mapping.gpus &= !(1 << gpu);
        let (gpus, bytes) = (mapping.gpus, mapping.bytes);
        if gpus != 0 {
            self.publish(memory, va);
            return Ok(());
        }
        memory.map.remove(va);
        self.mappings.remove(&va);
        reserve_at(va, bytes)
    }

    fn clear(&mut self, gpu: usize, memory: &Memory, va: u64, bytes: u64) -> Answer {
        let inside: Vec<u64> =
            self.mappings.range(va..va.saturating_add(bytes)).map(|(base, _)| *base).collect();
        inside.into_iter().try_for_each(|base| self.unmap(gpu, memory, base))
    }

    fn publish(&self, memory: &Memory, va: u64) {
        if let Some(Mapping { bytes, gpus, writable, .. }) = self.mappings.get(&va) {
            memory.map.insert(Range { base: va, end: va + bytes, gpus: *gpus, writable: *writable });
        }
    }
}

fn version(args: &mut Version) -> Answer {
    (args.major, args.minor) = DRIVER_VERSION;
    args.patch = 0;
    let texts = [
        (&mut args.name_bytes, args.name, DRIVER_NAME),
        (&mut args.date_bytes, args.date, DRIVER_DATE),
        (&mut args.description_bytes, args.description, DRIVER_DESCRIPTION),
    ];
    for (room, address, text) in texts {
        // The first call asks for the lengths, the second has room.
        if address != 0 {
            write_array(address, &text[..text.len().min(*room as usize)])?;
        }
        *room = text.len() as u64;
    }
    Ok(())
}

fn info(gpu: &Gpu, args: &Info) -> Answer {
    let used = gpu.vram_used.get();
    let answer = match args.query {
        query::ACCEL_WORKING => bytes_of(&1_u32),
        query::TIMESTAMP => bytes_of(&clock::gpu_ticks()),
        query::VRAM_USAGE | query::VIS_VRAM_USAGE => bytes_of(&used),
        query::GTT_USAGE => bytes_of(&0_u64),
        query::VRAM_GTT => {
            let vram = gpu.vram_bytes();
            bytes_of(&VramGtt { vram, visible_vram: vram, gtt: vram })
        }
        query::DEV_INFO => bytes_of(&device_info(gpu)),
        query::MEMORY => bytes_of(&memory_info(gpu, used)),
        // Firmware, IP blocks, registers: nothing that anybody decides by.
        _ => Vec::new(),
    };
    let mut answer = answer;
    answer.resize(args.return_bytes as usize, 0);
    write_array(args.return_pointer, &answer)
}

fn device_info(gpu: &Gpu) -> DeviceInfo {
    let agent = &gpu.node.agent;
    DeviceInfo {
        device_id: agent.device_id,
        pci_revision: gpu.node.pci_revision,
        family: gpu.node.family,
        shader_engines: agent.shader_engines,
        arrays_per_engine: agent.arrays_per_engine,
        counter_khz: (wavescope_software_gpu::TICKS_PER_SECOND / 1000) as u32,
        engine_khz: u64::from(agent.max_engine_clock_mhz) * 1000,
        memory_khz: u64::from(agent.max_memory_clock_mhz) * 1000,
        active_cus: agent.compute_units,
        va_offset: VA.0,
        va_max: VA.1,
        va_alignment: 4096,
        fragment: 1 << 21,
        gart_page: 4096,
        wave_size: agent.wave_size,
        cu_per_array: agent.cu_slots_per_array,
        high_va_offset: HIGH_VA.0,
        high_va_max: HIGH_VA.1,
        ..DeviceInfo::default()
    }
}

fn memory_info(gpu: &Gpu, used: u64) -> MemoryInfo {
    let total = gpu.vram_bytes();
    let heap = Heap { total, usable: total, used, largest: total };
    MemoryInfo { vram: heap, visible_vram: heap, gtt: Heap { used: 0, ..heap } }
}

fn bytes_of<T: crate::abi::kfd::Plain>(value: &T) -> Vec<u8> {
    let start = std::ptr::from_ref(value).cast::<u8>();
    // SAFETY: `Plain` has no padding, so all of its bytes are initialised; the slice ends before the borrow does.
    unsafe { std::slice::from_raw_parts(start, size_of::<T>()) }.to_vec()
}
