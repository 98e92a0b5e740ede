//! The GPUs of a machine, from the folder in which the kernel driver describes them.
//!
//! The folder is `/sys/class/kfd/kfd/topology` or a copy of one (layout: `libhsakmt/src/topology.c` in
//! ROCm/rocm-systems). No HSA call is made, so agents are known before any runtime is loaded.
//!
//! ```no_run
//! use wavescope_core::Topology;
//!
//! for agent in Topology::read(Topology::SYSFS.as_ref())?.agents() {
//!     println!("{} {} with {} CUs", agent.target, agent.marketing_name, agent.compute_units);
//! }
//! # Ok::<(), wavescope_core::Error>(())
//! ```

mod agent;
mod names;
mod properties;

use std::io;
use std::path::{Path, PathBuf};

pub use agent::{Agent, PciLocation};

use agent::DeviceMemory;
use properties::{Properties, single_number};

use crate::{AgentId, Error};

/// Kinds of memory bank that are device memory (`HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC`, `_PRIVATE`).
const DEVICE_HEAPS: [u64; 2] = [1, 2];

/// The GPU agents of a machine, in node order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    agents: Vec<Agent>,
}

impl Topology {
    /// Where the kernel driver publishes it.
    pub const SYSFS: &str = "/sys/class/kfd/kfd/topology";

    /// Reads the folder `root`.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Malformed`], [`Error::MissingProperty`] or [`Error::Inconsistent`], each with
    /// the file. A machine without a GPU is no error: it has no agents.
    pub fn read(root: &Path) -> Result<Self, Error> {
        Self::read_with(root, |path| std::fs::read(root.join(path)))
    }

    /// Reads a topology through `file`, which returns the content of a path below the folder: an embedded copy.
    /// `root` only serves the messages. Nodes end where `file` answers [`io::ErrorKind::NotFound`].
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_with(root: &Path, file: impl Fn(&str) -> io::Result<Vec<u8>>) -> Result<Self, Error> {
        let files = Files { root, file };
        files.number("generation_id")?;
        let mut agents = Vec::new();
        for node in 0.. {
            match files.gpu_id(node)? {
                Node::Absent if node == 0 => return Err(files.no_node()),
                Node::Absent => break,
                Node::WithoutGpu => {}
                Node::Gpu(gpu_id) => agents.push(files.agent(AgentId(agents.len() as u32), node, gpu_id)?),
            }
        }
        Ok(Self { agents })
    }

    /// All GPU agents; the position is the [`AgentId`].
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// One agent.
    pub fn agent(&self, id: AgentId) -> Option<&Agent> {
        self.agents.get(id.0 as usize)
    }
}

enum Node {
    Absent,
    WithoutGpu,
    Gpu(u32),
}

struct Files<'a, F> {
    root: &'a Path,
    file: F,
}

impl<F: Fn(&str) -> io::Result<Vec<u8>>> Files<'_, F> {
    fn number(&self, name: &str) -> Result<u64, Error> {
        single_number(&self.path(name), &self.bytes(name)?)
    }

    fn properties(&self, name: &str) -> Result<Properties, Error> {
        Properties::parse(&self.path(name), &self.bytes(name)?)
    }

    fn gpu_id(&self, node: u32) -> Result<Node, Error> {
        let name = format!("nodes/{node}/gpu_id");
        let bytes = match (self.file)(&name) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Node::Absent),
            // A container that may not use this GPU: the driver hides it, and so does libhsakmt.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(Node::WithoutGpu),
            Err(source) => return Err(Error::Read { path: self.path(&name), source }),
        };
        let path = self.path(&name);
        match u32::try_from(single_number(&path, &bytes)?) {
            Ok(0) => Ok(Node::WithoutGpu),
            Ok(gpu_id) => Ok(Node::Gpu(gpu_id)),
            Err(_) => Err(Error::Inconsistent { path, what: "the GPU id exceeds 32 bits".to_owned() }),
        }
    }

    fn agent(&self, id: AgentId, node: u32, gpu_id: u32) -> Result<Agent, Error> {
        let properties = self.properties(&format!("nodes/{node}/properties"))?;
        let banks = properties.required_u32("mem_banks_count")?;
        let mut memory = DeviceMemory::default();
        for bank in 0..banks {
            self.add_bank(&mut memory, &format!("nodes/{node}/mem_banks/{bank}/properties"))?;
        }
        Agent::from_properties(id, node, gpu_id, &properties, memory)
    }

    fn add_bank(&self, memory: &mut DeviceMemory, name: &str) -> Result<(), Error> {
        let bank = self.properties(name)?;
        if DEVICE_HEAPS.contains(&bank.required("heap_type")?) {
            let size = bank.required("size_in_bytes")?;
            let sum = memory.bytes.checked_add(size);
            memory.bytes = sum.ok_or_else(|| bank.inconsistent(format!("size_in_bytes {size} overflows")))?;
            memory.max_clock_mhz = memory.max_clock_mhz.max(bank.required_u32("mem_clk_max")?);
        }
        Ok(())
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, Error> {
        (self.file)(name).map_err(|source| Error::Read { path: self.path(name), source })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn no_node(&self) -> Error {
        Error::Inconsistent { path: self.root.join("nodes"), what: "the topology has no node 0".to_owned() }
    }
}
