//! The requests of `/dev/kfd`.

use std::ffi::c_int;

use super::backing::PAGE;
use super::caller::{Argument, read_array, write_array};
use super::clock::{self, Counters};
use super::gpu::Gpu;
use super::memory::Request;
use super::{Driver, find, find_index};
use crate::abi::kfd::*;
use crate::abi::request;
use crate::errno::{Answer, Errno};
use crate::events;

/// `KFD_MMAP_TYPE_EVENTS`: the runtime takes any value but 0 as a sign that the event has a slot.
const EVENT_PAGE: u64 = 2 << 62;

/// Apertures of every GPU (`kfd_init_apertures_v9`): local memory, scratch, and GPU addresses. The limit of 47 bits
/// makes the runtime choose addresses that the CPU can have, too.
const APERTURES: Apertures = Apertures {
    lds_base: 0x1_0000_0000_0000,
    lds_limit: 0x1_0000_FFFF_FFFF,
    scratch_base: 0x2_0000_0000_0000,
    scratch_limit: 0x2_0000_FFFF_FFFF,
    gpuvm_base: 0x4000,
    gpuvm_limit: 0x7FFF_FFFF_FFFF,
    gpu_id: 0,
    pad: 0,
};

impl Driver {
    /// Answers one request.
    pub(super) fn kfd(&mut self, code: u32, address: u64) -> Answer {
        if request::kind(code) != request::KFD {
            return Err(Errno(libc::ENOTTY));
        }
        let argument = Argument::new(code, address);
        match request::number(code) {
            number::GET_VERSION => argument.update(|args: &mut GetVersion| {
                (args.major, args.minor) = VERSION;
                Ok(())
            }),
            number::GET_CLOCK_COUNTERS => argument.update(|args| self.clock_counters(args)),
            number::GET_PROCESS_APERTURES_NEW => argument.update(|args| self.apertures(args)),
            number::CREATE_EVENT => argument.update(create_event),
            number::DESTROY_EVENT => argument.update(|args: &mut EventId| events::destroy(args.event_id)),
            number::SET_XNACK_MODE => argument.update(xnack_mode),
            number::RUNTIME_ENABLE => Ok(()),
            // `kfd_ioctl_set_debug_trap` for a process that is not traced.
            number::DBG_TRAP => Err(Errno(libc::EPERM)),
            number::SMI_EVENTS => argument.update(|args| self.smi_events(args)),
            number::GET_TILE_CONFIG => argument.update(|args: &mut GetTileConfig| {
                find(&self.gpus, args.gpu_id)?;
                (args.tiles, args.macro_tiles) = (0, 0);
                (args.gb_addr_config, args.banks, args.ranks) = (0, 0, 0);
                Ok(())
            }),
            number::SET_MEMORY_POLICY => argument.update(|args: &mut MemoryPolicy| self.known(args.gpu_id)),
            number::SET_SCRATCH_BACKING_VA => {
                argument.update(|args: &mut ScratchBacking| self.known(args.gpu_id))
            }
            number::SET_TRAP_HANDLER => argument.update(|args: &mut TrapHandler| self.known(args.gpu_id)),
            number::ACQUIRE_VM => argument.update(|args: &mut AcquireVm| self.known(args.gpu_id)),
            number::SVM => self.svm(argument),
            other => self.queue_request(other, argument).or_else(|error| match error {
                Unanswered => self.memory_request(other, argument),
                Answered(error) => Err(error),
            }),
        }
    }

    fn queue_request(&mut self, number: u8, argument: Argument) -> Result<(), Refusal> {
        let Self { gpus, queues, .. } = self;
        Ok(match number {
            number::CREATE_QUEUE => {
                argument.update(|args: &mut CreateQueue| queues.create(find(gpus, args.gpu_id)?, args))
            }
            number::DESTROY_QUEUE => {
                argument.update(|args: &mut DestroyQueue| queues.destroy(gpus, args.queue_id))
            }
            number::UPDATE_QUEUE => {
                argument.update(|args: &mut UpdateQueue| queues.update(gpus, args.queue_id, args.percentage))
            }
            number::SET_CU_MASK => argument.update(|args: &mut CuMask| {
                if queues.contains(args.queue_id) { Ok(()) } else { Err(Errno(libc::EFAULT)) }
            }),
            number::ALLOC_QUEUE_GWS => argument.update(|args: &mut AllocGws| {
                args.first = 0;
                queues.set_gws(gpus, args.queue_id, args.count)
            }),
            _ => return Err(Unanswered),
        }?)
    }

    fn memory_request(&mut self, number: u8, argument: Argument) -> Answer {
        let Self { gpus, memory, .. } = self;
        match number {
            number::ALLOC_MEMORY => argument.update(|args: &mut AllocMemory| {
                let AllocMemory { va, bytes, mmap_offset, flags, .. } = *args;
                let request = Request { va, bytes, cpu_address: mmap_offset, flags };
                (args.handle, args.mmap_offset) = memory.allocate(find(gpus, args.gpu_id)?, request)?;
                Ok(())
            }),
            number::FREE_MEMORY => argument.update(|args: &mut FreeMemory| memory.free(args.handle)),
            number::MAP_MEMORY => {
                argument.update(|args| each_gpu(gpus, args, |handle, gpu| memory.map_to(handle, gpu)))
            }
            number::UNMAP_MEMORY => {
                argument.update(|args| each_gpu(gpus, args, |handle, gpu| memory.unmap_from(handle, gpu)))
            }
            number::AVAILABLE_MEMORY => argument.update(|args: &mut AvailableMemory| {
                memory.sweep();
                args.available = find(gpus, args.gpu_id)?.vram_available();
                Ok(())
            }),
            number::EXPORT_DMABUF => argument.update(|args: &mut ExportDmaBuf| {
                args.fd = memory.export(args.handle, args.flags & libc::O_CLOEXEC as u32 != 0)? as u32;
                Ok(())
            }),
            number::GET_DMABUF_INFO => argument.update(|args: &mut DmaBufInfo| {
                let buffer = memory.exported(args.fd as c_int)?;
                (args.bytes, args.metadata_bytes, args.flags) = (buffer.bytes, 0, buffer.flags);
                args.gpu_id = gpus[buffer.gpu].id();
                Ok(())
            }),
            number::IMPORT_DMABUF => argument.update(|args: &mut ImportDmaBuf| {
                args.handle = memory.import(find(gpus, args.gpu_id)?, args.fd as c_int, args.va)?;
                Ok(())
            }),
            _ => Err(Errno(libc::ENOTTY)),
        }
    }

    fn known(&self, gpu_id: u32) -> Answer {
        find(&self.gpus, gpu_id).map(drop)
    }

    fn clock_counters(&self, args: &mut GetClockCounters) -> Answer {
        // The kernel answers also without a GPU, whose counter is then 0.
        let now = Counters::now();
        args.gpu_counter = find(&self.gpus, args.gpu_id).map_or(0, |_| now.gpu);
        (args.cpu_counter, args.system_counter) = (now.cpu, now.system);
        args.system_frequency = clock::SYSTEM_FREQUENCY;
        Ok(())
    }

    /// With no room, only the number of GPUs.
    fn apertures(&self, args: &mut GetApertures) -> Answer {
        if args.nodes == 0 {
            args.nodes = self.gpus.len() as u32;
            return Ok(());
        }
        let apertures = |gpu: &Gpu| Apertures { gpu_id: gpu.id(), ..APERTURES };
        let list: Vec<_> = self.gpus.iter().take(args.nodes as usize).map(apertures).collect();
        write_array(args.pointer, &list)?;
        args.nodes = list.len() as u32;
        Ok(())
    }

    /// A descriptor on which nothing ever happens: events of system management are not modelled. Like the kernel's it
    /// takes the mask of wanted events by `write`.
    fn smi_events(&mut self, args: &mut SmiEvents) -> Answer {
        find(&self.gpus, args.gpu_id)?;
        let mut pair = [0; 2];
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        // SAFETY: `pair` has room for the two descriptors.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) } != 0 {
            return Err(crate::errno::last());
        }
        args.fd = pair[0] as u32;
        // SAFETY: a new descriptor that nobody else owns. It stays open, or the other would read an end of file.
        self.silent.push(unsafe { std::os::fd::FromRawFd::from_raw_fd(pair[1]) });
        Ok(())
    }

    fn svm(&mut self, argument: Argument) -> Answer {
        /// `KFD_IOCTL_SVM_OP_SET_ATTR`, `_GET_ATTR`.
        const OPERATIONS: [u32; 2] = [0, 1];
        let Self { gpus, shared, .. } = self;
        argument.update(|args: &mut Svm| {
            let list = argument.tail::<Svm>();
            let mut attributes: Vec<SvmAttribute> = read_array(list, args.attributes)?;
            let is_gpu = |id| find_index(gpus, id).is_ok();
            match OPERATIONS.iter().position(|operation| *operation == args.operation) {
                Some(0) => shared.set(args.start, args.bytes, &attributes, is_gpu),
                Some(_) => {
                    shared.get(args.start, args.bytes, &mut attributes, is_gpu)?;
                    write_array(list, &attributes)
                }
                None => Err(Errno(libc::EINVAL)),
            }
        })
    }
}

/// What a group of requests says.
enum Refusal {
    /// Not one of the group.
    Unanswered,
    /// The answer is an error.
    Answered(Errno),
}
use Refusal::{Answered, Unanswered};

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        Answered(error)
    }
}

/// Does `work` for each GPU that the arguments name from the first not done on, and counts.
fn each_gpu(gpus: &[Gpu], args: &mut MapMemory, mut work: impl FnMut(u64, usize) -> Answer) -> Answer {
    if args.devices == 0 || args.successes > args.devices {
        return Err(Errno(libc::EINVAL));
    }
    let ids: Vec<u32> = read_array(args.devices_pointer, args.devices)?;
    for id in &ids[args.successes as usize..] {
        work(args.handle, find_index(gpus, *id)?)?;
        args.successes += 1;
    }
    Ok(())
}

fn create_event(args: &mut CreateEvent) -> Answer {
    args.event_id = events::create(args.event_type, args.auto_reset != 0)?;
    // The thunk finds the mailbox of a signal event by these.
    if args.event_type == events::KIND_SIGNAL {
        args.page_offset = EVENT_PAGE;
        args.slot = args.event_id;
    }
    args.trigger_data = args.event_id;
    Ok(())
}

/// Retry faults are off and stay off.
fn xnack_mode(args: &mut XnackMode) -> Answer {
    match args.enabled {
        1.. => Err(Errno(libc::EPERM)),
        _ => {
            args.enabled = 0;
            Ok(())
        }
    }
}

const _: () = assert!(PAGE == 4096, "event slots and doorbells are laid out for this page size");
