//! The AMD GPU kernel driver (KFD and render nodes) in user space: `LD_PRELOAD` this library and the real, unmodified
//! ROCm runtime finds the software GPU of `wavescope-software-gpu` behind `/dev/kfd`.
//!
//! ```text
//! WAVESCOPE_GPU_TOPOLOGY=topology/gfx942 LD_PRELOAD=libwavescope_software_kfd.so rocminfo
//! ```
//!
//! Environment: `WAVESCOPE_GPU_TOPOLOGY` names the topology folder that describes the GPUs (1 to 8; default: the
//! system's own), `WAVESCOPE_GPU_TRUTH`, `WAVESCOPE_GPU_FAULTS` and `WAVESCOPE_GPU_SEED` are the model's.
//!
//! # How it works
//!
//! `interpose` defines the C library's calls that touch device files. A call that is not about a device goes on to
//! the next library untouched. A call about a device is handed over to one *driver thread* (`mailbox`), so that our code
//! on the application's thread never allocates, never takes a lock of the standard library and never touches a
//! thread-local of ours: it may be inside a constructor, in a signal handler, or hold the allocator's lock. The first
//! device call of a process is the exception: it creates the driver thread, for which the C library allocates. Only
//! setting, resetting and waiting for events (`events`) happens on the caller's thread, over static tables and futexes.
//!
//! All device files are duplicates of one memory file; buffers are ranges of it, so the runtime's own `mmap` calls
//! make GPU addresses equal CPU addresses without a hook. Compute queues are the model's; SDMA queues are threads of
//! this library. Both find work by their doorbells, and sleep behind one watching thread when there is none.
//!
//! # Limits
//!
//! One private device per process: memory is not shared with other processes, and a forked child gets `ENODEV` from
//! every device call. An argument must stay mapped during its call (`user`). Must not know packet programs, counting, traces or their decoder.

mod abi;
mod driver;
mod errno;
mod events;
mod fds;
mod futex;
mod interpose;
mod mailbox;
mod next;
mod paths;
mod user;
