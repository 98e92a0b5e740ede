//! A small HSA application: it opens an agent, loads kernels, and submits batches of dispatches, all through an API
//! table, so that whoever has replaced entries of the table sees every call.
//!
//! [`Application`] initialises the runtime and lists its GPUs; [`Module`] is loaded code with its [`Kernel`]s;
//! [`Queue`] takes a [`Batch`] with one doorbell and returns a [`Submission`] to wait for. [`kernels`] embeds code
//! objects of our own for five targets. Errors name the call and keep the raw status; waits have time limits.
//!
//! It must not know who watches it: no interception, no counters, no traces, no software GPU.
//!
//! ```no_run
//! use std::time::Duration;
//! use wavescope_workload::{Application, Batch, Launch, kernels};
//!
//! # fn table() -> *const hsa_sys::HsaApiTable { std::ptr::null() }
//! // SAFETY: the table of a runtime that outlives the application; nobody replaces entries meanwhile.
//! let application = unsafe { Application::open(table()) }?;
//! let gpu = &application.gpus()[0];
//! let module = application.load(gpu, kernels::vectors(gpu.target())?)?;
//! let queue = application.queue(gpu, 64)?;
//!
//! let mut batch = Batch::new();
//! batch.launch(Launch::new(module.kernel("empty")?, [1024, 1, 1], [256, 1, 1]));
//! queue.submit(&batch)?.wait(Duration::from_secs(10))?;
//! # Ok::<(), wavescope_workload::Error>(())
//! ```

mod api;
mod application;
mod arguments;
mod batch;
mod buffer;
mod error;
mod gpu;
pub mod kernels;
mod module;
mod queue;
pub mod sample;
mod signal;
mod submission;

pub use application::Application;
pub use arguments::Arguments;
pub use batch::{Batch, Dependency, Launch};
pub use buffer::Buffer;
pub use error::Error;
pub use gpu::Gpu;
pub use module::{Kernel, Module};
pub use queue::Queue;
pub use signal::Signal;
pub use submission::{DispatchTimes, Submission};
