//! A GPU in software: it takes AQL packets from queues in memory, executes their PM4, places the waves of kernels,
//! counts them and writes thread traces, as the hardware of the configured target does.
//!
//! Main types: [`Device`] (one agent), made from a [`DeviceConfig`] and a [`Host`]; [`Queue`] (one hardware queue
//! with its own consumer thread); [`TruthSink`] (what really ran: the judge for every counter and trace);
//! [`FaultPlan`] (what goes wrong on purpose).
//!
//! GPU virtual addresses are CPU addresses. The model sees packets and memory only: it must not know the trace
//! decoder, the packet programs, counting or thread-trace resources. Kernels take time and place, but their
//! results are not computed.
//!
//! ```
//! use wavescope_software_gpu::{DeviceConfig, Fault, FaultPlan, Harvest};
//!
//! let config = DeviceConfig::mi300x();
//! assert_eq!((config.shader_engines(), config.compute_units, config.cycles_per_tick()), (32, 304, 21));
//! // Every device takes a plan of what goes wrong; this one misses a compute unit.
//! let plan = FaultPlan { faults: vec![Fault::Harvest(Harvest { xcc: 0, se: 1, sa: 0, cu: 3 })] };
//! assert_eq!(FaultPlan::parse(r#"[{"harvest": {"xcc": 0, "se": 1, "sa": 0, "cu": 3}}]"#)?, plan);
//! # Ok::<(), wavescope_software_gpu::Error>(())
//! ```
#![doc = "\n"]
#![doc = include_str!("counters/modelled.md")]

mod config;
mod counters;
mod device;
mod error;
pub mod face;
mod fault;
mod host;
mod kernel;
mod machine;
mod memory;
mod mix;
mod place;
mod pm4;
mod queue;
mod signal;
pub mod sqtt;
mod sync;
mod trace;
mod truth;
pub mod walk;

pub use config::{DeviceConfig, Harvest};
pub use device::{Device, DeviceOptions};
pub use error::{Error, QueueFault};
pub use fault::{CompletionFault, Fault, FaultPlan, StatusLie, TraceLoss};
pub use host::{Access, ClockHost, Host, TICKS_PER_SECOND};
pub use queue::{Doorbell, Queue, QueueConfig, QueueId};
pub use truth::{DispatchTruth, PathTruth, Truth, TruthFile, TruthSink, WalkTruth, WaveTruth};
