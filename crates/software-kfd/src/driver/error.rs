//! Why there is no device, and the kernel's number for what the model refuses.

use std::path::PathBuf;

use crate::errno::Errno;

/// Why the driver could not start. Shown once on standard error; the application sees `ENODEV`.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The topology folder cannot be used.
    #[error("topology")]
    Topology(#[from] wavescope_core::Error),
    /// A number of GPUs that the driver does not serve.
    #[error("{folder} describes {gpus} GPUs; between 1 and {limit} can be served", folder = .folder.display())]
    GpuCount {
        /// The topology folder.
        folder: PathBuf,
        /// GPUs in it.
        gpus: usize,
        /// Most that are served.
        limit: usize,
    },
    /// A value of a node that the model has no room for.
    #[error("node {node}: {property} is {value}")]
    Property {
        /// The topology node.
        node: u32,
        /// Name in its `properties` file.
        property: &'static str,
        /// What stands there.
        value: u64,
    },
    /// A node's own properties cannot be read.
    #[error("{path}", path = .path.display())]
    Node {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The model refuses the topology.
    #[error("software GPU")]
    Model(#[from] wavescope_software_gpu::Error),
    /// The memory file cannot be made.
    #[error("device memory: {call}")]
    Backing {
        /// The system call.
        call: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// The number with which the kernel driver refuses what the model refuses.
pub(super) fn number(error: &wavescope_software_gpu::Error) -> Errno {
    use wavescope_software_gpu::Error as Model;
    Errno(match error {
        // `pqm_create_queue`: no queue slot is left.
        Model::TooManyQueues { .. } => libc::ENOSPC,
        Model::Ring { .. } => libc::EINVAL,
        Model::Memory { .. } => libc::EFAULT,
        Model::Thread { .. } => libc::EAGAIN,
        // `init_user_queue` and its like.
        Model::Injected(_) => libc::ENOMEM,
        _ => libc::EIO,
    })
}

/// An error with its causes, in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
