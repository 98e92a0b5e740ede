//! The driver: what the kernel would answer. It lives on one thread of its own, behind the [`mailbox`](crate::mailbox).

mod address_map;
mod backing;
mod caller;
mod clock;
mod error;
mod exceptions;
mod gpu;
mod host;
mod kfd;
mod memory;
mod queues;
mod render;
mod sdma;
mod svm;
mod topology;
mod watch;

use std::ffi::c_int;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use wavescope_software_gpu::DeviceOptions;

use address_map::AddressMap;
use backing::Backing;
use error::Error;
use gpu::Gpu;
use memory::Memory;
use queues::Queues;
use render::Gem;
use svm::SharedMemory;

use crate::errno::{Answer, Errno};
use crate::fds::{self, File};
use crate::mailbox::{Call, Handler};
use crate::paths::Device;

/// Everything that the process has of the driver.
pub(super) struct Driver {
    // Queues first: their consumers stop before the memory that they use goes.
    queues: Queues,
    gpus: Vec<Gpu>,
    memory: Memory,
    gem: Gem,
    shared: SharedMemory,
    /// Far ends of descriptors on which nothing happens.
    silent: Vec<OwnedFd>,
}

/// Makes the driver. Called once, on its thread.
pub(crate) fn start() -> Result<Handler, Errno> {
    match Driver::new() {
        Ok(mut driver) => Ok(Box::new(move |call| driver.answer(call))),
        Err(error) => {
            eprintln!("wavescope-software-kfd: no GPU: {}", error::chain(&error));
            Err(Errno(libc::ENODEV))
        }
    }
}

impl Driver {
    fn new() -> Result<Self, Error> {
        let nodes = topology::read(&topology::folder())?;
        let options = DeviceOptions::from_environment()?;
        let backing = Rc::new(Backing::new()?);
        let map = Arc::new(AddressMap::new());
        let watch = Arc::default();
        let gpu = |node| Gpu::new(node, &map, &watch, &backing, options.clone());
        let gpus = nodes.into_iter().map(gpu).collect::<Result<_, _>>()?;
        Ok(Self {
            queues: Queues::default(),
            gpus,
            memory: Memory::new(backing, map),
            gem: Gem::default(),
            shared: SharedMemory::default(),
            silent: Vec::new(),
        })
    }

    /// The result of a call, or an error number negated.
    fn answer(&mut self, call: Call) -> c_int {
        let answer = match call {
            Call::Look { device } => self.file(device).map(|_| 0),
            Call::Open { device, flags } => self.open(device, flags),
            Call::Ioctl { file, request, argument } => self.ioctl(file, request, argument).map(|()| 0),
        };
        answer.unwrap_or_else(|Errno(number)| -number)
    }

    fn file(&self, device: Device) -> Result<File, Errno> {
        match device {
            Device::Kfd => Ok(File::Kfd),
            Device::Render { minor } => {
                let gpu = self.render_node(minor).ok_or(Errno(libc::ENOENT))?;
                Ok(File::Render(gpu as u8))
            }
        }
    }

    fn open(&self, device: Device, flags: c_int) -> Result<c_int, Errno> {
        let file = self.file(device)?;
        let fd = self.memory.backing.duplicate(flags & libc::O_CLOEXEC != 0)?;
        if fds::insert(fd, file) {
            return Ok(fd);
        }
        // SAFETY: the descriptor was made above and nobody else knows it.
        unsafe { crate::next::close(fd) };
        Err(Errno(libc::EMFILE))
    }

    fn ioctl(&mut self, file: File, request: u32, argument: u64) -> Answer {
        match file {
            File::Kfd => self.kfd(request, argument),
            File::Render(gpu) => self.render(usize::from(gpu), request, argument),
            File::DmaBuf(_) | File::Backing => Err(Errno(libc::ENOTTY)),
        }
    }
}

/// The GPU with an id.
fn find(gpus: &[Gpu], id: u32) -> Result<&Gpu, Errno> {
    gpus.iter().find(|gpu| gpu.id() == id).ok_or(Errno(libc::EINVAL))
}

/// Index of the GPU with an id.
fn find_index(gpus: &[Gpu], id: u32) -> Result<usize, Errno> {
    find(gpus, id).map(|gpu| gpu.index)
}
